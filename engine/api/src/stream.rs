//! Where a position stands: in the local log or not, applied or not.

use serde::{Deserialize, Serialize};

use crate::{Known, Time};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogPlace {
    /// A transaction with this commit LSN is in the log, whole.
    InLog,
    /// It is there, but does not carry what was written.
    Damaged,
    /// It was received and is pruned since.
    Pruned,
    /// At or beyond the durable position.
    NotReceived,
    /// No transaction has this commit LSN; `after_lsn` is the next one.
    NoTransaction,
    #[serde(other)]
    Unknown,
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
    pub end_lsn: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_time: Option<Time>,
    pub start_lsn: Known<String>,
    pub durable_lsn: String,
    pub applied_lsn: Known<String>,
    /// First and last transaction that the log holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_lsn: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_lsn: Option<String>,
    /// The next transaction, where there is none at the LSN.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_lsn: Option<String>,
}

impl Location {
    /// A received transaction that can be trusted to be at the target or on its way there.
    pub fn is_accounted_for(&self) -> bool {
        match self.place {
            LogPlace::InLog | LogPlace::Pruned => true,
            LogPlace::Damaged | LogPlace::NotReceived | LogPlace::NoTransaction | LogPlace::Unknown => false,
        }
    }
}
