//! Where a position stands: in the local log or not, applied or not.

use serde::{Deserialize, Serialize};

use crate::{Known, Time};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogPlace {
    /// A transaction with this commit LSN is in the log.
    InLog,
    /// It was received and is pruned since.
    Pruned,
    /// At or beyond the durable position.
    NotReceived,
    /// Covered by what was received, but no transaction has this commit LSN.
    NoTransaction,
    /// Below the position at which this incarnation began.
    BeforeStart,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    pub flow: String,
    pub incarnation: u32,
    pub lsn: String,
    pub place: LogPlace,
    /// One sentence: place, and why where it is gone.
    pub text: String,
    /// `applied`, `waiting`, `quarantined`, `discarded`, ...; none where there is no transaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xid: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_time: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quarantine: Option<String>,
    pub start_lsn: String,
    pub durable_lsn: String,
    pub applied_lsn: Known<String>,
    /// Nearest transactions in the log on both sides, where there is none at the LSN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_lsn: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_lsn: Option<String>,
}

impl Location {
    /// A received transaction that the target holds, or that is on its way there.
    pub fn is_accounted_for(&self) -> bool {
        match self.place {
            LogPlace::InLog | LogPlace::Pruned => true,
            LogPlace::NotReceived | LogPlace::NoTransaction | LogPlace::BeforeStart => false,
        }
    }
}
