//! Quarantined transactions: lines, the whole evidence, replay and discard.

use serde::{Deserialize, Serialize};

use crate::Time;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuarantineState {
    Open,
    Replaying,
    Replayed,
    ReplayedInPart,
    Discarded,
    Superseded,
    #[serde(other)]
    Unknown,
}

impl QuarantineState {
    pub const fn name(self) -> &'static str {
        match self {
            QuarantineState::Open => "open",
            QuarantineState::Replaying => "replaying",
            QuarantineState::Replayed => "replayed",
            QuarantineState::ReplayedInPart => "replayed in part",
            QuarantineState::Discarded => "discarded",
            QuarantineState::Superseded => "superseded",
            QuarantineState::Unknown => "unknown",
        }
    }

    /// Still in the flow's way.
    pub const fn is_open(self) -> bool {
        match self {
            QuarantineState::Open | QuarantineState::Replaying => true,
            QuarantineState::Replayed
            | QuarantineState::ReplayedInPart
            | QuarantineState::Discarded
            | QuarantineState::Superseded
            | QuarantineState::Unknown => false,
        }
    }
}

/// One column of a row image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    pub column: String,
    pub value: CellValue,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CellValue {
    Null,
    /// The source did not send it, because the change did not touch it.
    UnchangedToast,
    Text(String),
    /// Not text in the source's encoding; hexadecimal.
    Bytes(String),
}

/// One record in one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarantineLine {
    /// `Q-7F3K`.
    pub id: String,
    pub flow: String,
    pub state: QuarantineState,
    pub at: Time,
    pub class: String,
    pub code: String,
    /// Of the code.
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sqlstate: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constraint: Option<String>,
    /// `schema.table` at the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<String>,
    /// Key of the failing row.
    #[serde(default)]
    pub key: Vec<Cell>,
    pub commit_lsn: String,
    pub attempts: u64,
    /// The next command while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarantineList {
    /// When this was put together.
    pub at: Time,
    pub records: Vec<QuarantineLine>,
    #[serde(default)]
    pub partial: Vec<String>,
}

/// PostgreSQL's own words, or the check's; they may carry row values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FailureText {
    pub code: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sqlstate: Option<String>,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// SQL for the target that satisfies a broken contract.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remedy: Vec<String>,
}

/// The failing change as it was received.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub operation: String,
    pub schema: String,
    pub table: String,
    pub key: Vec<Cell>,
    pub old: Vec<Cell>,
    pub new: Vec<Cell>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    pub at: Time,
    pub failure: FailureText,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resolution {
    /// `replay` or `discard`.
    pub action: String,
    pub actor: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub at: Time,
}

/// The whole evidence of one transaction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarantineDetail {
    #[serde(flatten)]
    pub line: QuarantineLine,
    pub incarnation: u32,
    pub xid: u32,
    pub end_lsn: String,
    pub commit_time: Time,
    /// Transaction digest, hexadecimal.
    pub digest: String,
    pub failure: FailureText,
    /// Which change failed, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change_number: Option<u64>,
    pub changes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conflicting_row: Option<Vec<Cell>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_relation_digest: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_relation_digest: Option<String>,
    /// Applied commit LSN at the target when it failed.
    pub checkpoint_lsn: String,
    pub engine_version: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_version: Option<String>,
    pub attempt_list: Vec<Attempt>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution: Option<Resolution>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReplayRequest {
    /// Try and roll back: would it apply now?
    pub check: bool,
}

/// How a replay, or the check of one, ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replay {
    pub id: String,
    pub flow: String,
    pub check: bool,
    /// It was applied; for a check: it would have been.
    pub applied: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailureText>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiscardRequest {
    pub reason: String,
    /// First digits of the transaction digest, at least eight: proof that the evidence was read.
    pub digest: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Discard {
    pub id: String,
    pub flow: String,
    pub text: String,
}
