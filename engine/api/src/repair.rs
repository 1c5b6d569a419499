//! The repair plan: what is blocked, and exactly how to unblock it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Time;

/// Kinds of blockage, worst first: data loss possible, then quarantined, then unavailable, then at risk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockageKind {
    LineageLost,
    LogFull,
    Failed,
    Fenced,
    Integrity,
    ConstraintViolation,
    RowMissing,
    RowDuplicate,
    RowData,
    SchemaContract,
    Unclassified,
    SlotInUse,
    Unavailable,
    Detached,
    PausedLong,
    #[serde(other)]
    Unknown,
}

impl BlockageKind {
    pub const fn name(self) -> &'static str {
        match self {
            BlockageKind::LineageLost => "lineage lost",
            BlockageKind::LogFull => "log full",
            BlockageKind::Failed => "failed",
            BlockageKind::Fenced => "fenced",
            BlockageKind::Integrity => "integrity",
            BlockageKind::ConstraintViolation => "constraint violation",
            BlockageKind::RowMissing => "row missing",
            BlockageKind::RowDuplicate => "row duplicate",
            BlockageKind::RowData => "row data",
            BlockageKind::SchemaContract => "schema contract",
            BlockageKind::Unclassified => "unclassified",
            BlockageKind::SlotInUse => "slot in use",
            BlockageKind::Unavailable => "unavailable",
            BlockageKind::Detached => "detached",
            BlockageKind::PausedLong => "paused long",
            BlockageKind::Unknown => "unknown",
        }
    }
}

impl fmt::Display for BlockageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepKind {
    /// A `trellara` command.
    Command,
    /// A `psql` line.
    Sql,
}

/// One step. Steps are done in order, up to the first whose title begins with "or": that one begins another
/// way out, instead of the steps before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    pub kind: StepKind,
    pub title: String,
    /// Shell line, quoted, complete.
    pub text: String,
    /// Where it runs.
    pub host: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precondition: Option<String>,
    /// What it changes; none for a step that only looks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<String>,
    /// The command that proves it worked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blockage {
    pub flow: String,
    pub kind: BlockageKind,
    pub since: Time,
    pub what: String,
    /// Without row values.
    pub why: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    #[serde(default)]
    pub evidence: Vec<String>,
    /// What would unblock it, in one sentence.
    pub unblocks: String,
    /// What no command of this build can do, and notes that belong to the steps.
    #[serde(default)]
    pub notes: Vec<String>,
    pub steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// `P-` and the first digits of the digest.
    pub id: String,
    /// Plan digest, hexadecimal SHA-256: the same blockages with the same steps have the same one.
    pub digest: String,
    pub at: Time,
    /// Flows that were looked at.
    pub flows: u64,
    /// Worst first.
    pub blockages: Vec<Blockage>,
    #[serde(default)]
    pub partial: Vec<String>,
}
