//! One state change of a flow: what `flow events` and every "why?" read.

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// The value of the `events` family.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventRecord {
    pub at: Timestamp,
    /// What happened, in the vocabulary of the flow machines (`apply.quarantined`, `capture.connected`).
    pub kind: String,
    pub from: String,
    pub to: String,
    /// One line for a person, without row values.
    pub cause: String,
    /// Stable code (`TRL-0007`) where a failure caused it.
    pub code: Option<String>,
    /// Short id of the evidence (`Q-7F3K`).
    pub evidence: Option<String>,
}
