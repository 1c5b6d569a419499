//! Evidence of one transaction that could not be applied, and what became of it.
//!
//! PostgreSQL's own texts carry row values, so message, detail, hint and context count as values: they
//! are kept here, shown to the operator, never logged or exported unasked.

use serde::{Deserialize, Serialize};

use crate::{Lsn, RelationDigest, Timestamp, TransactionDigest, TransactionId};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuarantineState {
    Open,
    Replaying,
    Replayed,
    ReplayedInPart,
    Discarded,
    Superseded,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuarantineAction {
    Replay,
    Discard,
}

/// One column of a row image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ColumnValue {
    Null,
    /// The source left the stored value out of the stream because the row change did not touch it.
    UnchangedToast,
    Text(String),
    /// Bytes that are not text in the source's encoding, hexadecimal.
    Bytes(String),
}

/// The failing change as it was received.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeImage {
    pub operation: String,
    pub schema: String,
    pub table: String,
    /// Replica identity columns of the row.
    pub key: Vec<(String, ColumnValue)>,
    pub old: Vec<(String, ColumnValue)>,
    pub new: Vec<(String, ColumnValue)>,
}

/// What the target, or the check before it, said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureDetail {
    /// Failure class (`row_data`, `schema_contract`, ...) and stable code (`TRL-0107`).
    pub class: String,
    pub code: String,
    pub sqlstate: Option<String>,
    pub message: String,
    pub detail: Option<String>,
    pub hint: Option<String>,
    pub context: Option<String>,
    pub constraint: Option<String>,
    pub schema: Option<String>,
    pub table: Option<String>,
    pub column: Option<String>,
    /// SQL for the target that satisfies a broken contract, exact and complete.
    pub remedy: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    pub at: Timestamp,
    pub failure: FailureDetail,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resolution {
    pub action: QuarantineAction,
    pub actor: String,
    pub reason: Option<String>,
    pub at: Timestamp,
}

/// The value of the `quarantine` family.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarantineRecord {
    /// Short id (`Q-7F3K`), unique in this store.
    pub id: String,
    pub transaction: TransactionId,
    pub digest: TransactionDigest,
    pub end_lsn: Lsn,
    pub commit_time: Timestamp,
    pub at: Timestamp,
    pub state: QuarantineState,
    pub failure: FailureDetail,
    /// Which change failed, counted from 1, of how many; none when the transaction as a whole did.
    pub change: Option<u64>,
    pub changes: u64,
    pub image: Option<ChangeImage>,
    /// The target row that stands in the way, where a constraint names one.
    pub conflicting_row: Option<Vec<(String, ColumnValue)>>,
    pub source_relation: Option<RelationDigest>,
    pub target_relation: Option<RelationDigest>,
    /// Applied commit LSN in the target's checkpoint when it failed.
    pub checkpoint: Lsn,
    pub engine_version: String,
    pub source_version: Option<String>,
    pub target_version: Option<String>,
    pub attempts: Vec<Attempt>,
    pub resolution: Option<Resolution>,
}
