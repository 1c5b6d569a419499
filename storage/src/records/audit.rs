//! Who did what, when, from where and why; hash chained, append only.

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// The value of the `audit` family. `previous` is the hexadecimal SHA-256 of the record before,
/// as stored; empty for the first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRecord {
    pub at: Timestamp,
    pub actor: String,
    pub origin: String,
    pub action: String,
    pub subject: String,
    pub reason: Option<String>,
    pub outcome: String,
    pub previous: String,
}
