//! Flows: their lines, one flow in full, events, and the commands about them.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::quarantine::QuarantineLine;
use crate::{Known, Problem, Selector, Time};

/// What a flow is shown as: the first that holds, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    Failed,
    Fenced,
    Removing,
    Detached,
    LineageLost,
    Quarantined,
    Unavailable,
    LogFull,
    Paused,
    Retrying,
    /// No history is durable here yet.
    NotSeeded,
    Connecting,
    CatchingUp,
    /// Proven by what came from the source through the log to the target, never set.
    Streaming,
    /// A phase of a newer engine.
    #[serde(other)]
    Unknown,
}

impl Phase {
    pub const ALL: [Phase; 14] = [
        Phase::Failed,
        Phase::Fenced,
        Phase::Removing,
        Phase::Detached,
        Phase::LineageLost,
        Phase::Quarantined,
        Phase::Unavailable,
        Phase::LogFull,
        Phase::Paused,
        Phase::Retrying,
        Phase::NotSeeded,
        Phase::Connecting,
        Phase::CatchingUp,
        Phase::Streaming,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Phase::Failed => "failed",
            Phase::Fenced => "fenced",
            Phase::Removing => "removing",
            Phase::Detached => "detached",
            Phase::LineageLost => "lineage_lost",
            Phase::Quarantined => "quarantined",
            Phase::Unavailable => "unavailable",
            Phase::LogFull => "log_full",
            Phase::Paused => "paused",
            Phase::Retrying => "retrying",
            Phase::NotSeeded => "not_seeded",
            Phase::Connecting => "connecting",
            Phase::CatchingUp => "catching_up",
            Phase::Streaming => "streaming",
            Phase::Unknown => "unknown",
        }
    }

    /// Needs someone: what `--exit-code` turns into a finding.
    pub const fn is_finding(self) -> bool {
        match self {
            Phase::Failed
            | Phase::Fenced
            | Phase::Detached
            | Phase::LineageLost
            | Phase::Quarantined
            | Phase::Unavailable
            | Phase::LogFull
            | Phase::Unknown => true,
            Phase::Removing
            | Phase::Paused
            | Phase::Retrying
            | Phase::NotSeeded
            | Phase::Connecting
            | Phase::CatchingUp
            | Phase::Streaming => false,
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The text names no phase.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no such phase; one of {}", Phase::ALL.map(Phase::name).join(", "))]
pub struct InvalidPhase;

impl FromStr for Phase {
    type Err = InvalidPhase;

    fn from_str(text: &str) -> Result<Self, InvalidPhase> {
        let wanted = text.replace('-', "_");
        Phase::ALL.into_iter().find(|phase| phase.name() == wanted).ok_or(InvalidPhase)
    }
}

/// One flow in one line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowLine {
    /// `source:dataset`.
    pub flow: String,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    pub phase: Phase,
    pub since: Time,
    /// Of the condition that gives the phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// One line, without row values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// Source WAL that is durable here and not yet applied at the target.
    pub lag_bytes: Known<u64>,
    /// Age of the oldest such transaction; zero when caught up.
    pub lag_seconds: Known<f64>,
    pub open_quarantine: u64,
    /// The next command, complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowList {
    pub at: Time,
    pub flows: Vec<FlowLine>,
    /// What could not be asked, and why.
    #[serde(default)]
    pub partial: Vec<String>,
}

/// One condition that holds for a flow; several may at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    pub phase: Phase,
    pub since: Time,
    pub cause: String,
    /// `source` or `target`, where it is about one of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sqlstate: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constraint: Option<String>,
    /// PostgreSQL's own line; may carry row values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Short id of the evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Who paused a flow, and until when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    pub capture_too: bool,
    pub who: String,
    pub reason: String,
    pub since: Time,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,
}

/// One side of a flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Side {
    /// `host:port/database`.
    pub address: String,
    /// Last answer.
    pub seen: Known<Time>,
}

/// Where the flow's present history began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beginning {
    pub incarnation: u32,
    pub start_lsn: String,
    /// `empty`, `from_now` or `adopted`.
    pub start_mode: String,
    pub started: Time,
    pub system_identifier: String,
    pub timeline: u32,
}

/// Positions, worst known last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Positions {
    pub captured_lsn: Known<String>,
    pub durable_lsn: Known<String>,
    /// Commit LSN of the last applied transaction.
    pub applied_lsn: Known<String>,
    /// Commit time at the source of that transaction.
    pub applied_commit_time: Known<Time>,
}

/// The flow's share of the durable log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogUse {
    pub bytes: u64,
    pub max_bytes: u64,
}

/// One flow in full: answers why on one screen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowDetail {
    /// When this was put together; ages count from here.
    pub at: Time,
    #[serde(flatten)]
    pub line: FlowLine,
    pub conditions: Vec<Condition>,
    /// How often the flow was started since the engine was.
    pub generation: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<Pause>,
    /// Who applies a fenced flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    pub source: Known<Side>,
    pub target: Known<Side>,
    pub slot: Known<String>,
    pub publications: Vec<String>,
    pub beginning: Known<Beginning>,
    pub positions: Positions,
    /// Commit time of the newest heartbeat that came through source, log and target.
    pub heartbeat: Known<Time>,
    pub log: Known<LogUse>,
    /// Since the engine started.
    pub applied_transactions: u64,
    pub quarantine: Vec<QuarantineLine>,
    pub events: Vec<Event>,
}

/// One state change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    pub sequence: u64,
    pub at: Time,
    pub kind: String,
    pub from: String,
    pub to: String,
    pub cause: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
}

/// Newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventList {
    pub flow: String,
    pub events: Vec<Event>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PauseRequest {
    pub select: Selector,
    /// Pause capture as well; the slot then holds the source's WAL.
    #[serde(default)]
    pub capture: bool,
    pub reason: String,
    #[serde(default)]
    pub for_seconds: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResumeRequest {
    pub select: Selector,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestartRequest {
    pub select: Selector,
    /// Claim the target although another engine's lease is live.
    #[serde(default)]
    pub take_over: bool,
}

/// What became of a command for one flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowOutcome {
    pub flow: String,
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowOutcomes {
    pub flows: Vec<FlowOutcome>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RemoveRequest {
    /// Say what would go, and change nothing.
    pub dry_run: bool,
    pub keep_slot: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RemovalState {
    Planned,
    Done,
    Kept,
    /// An orphan: not reachable now, named with the SQL that removes it.
    Left,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemovalStep {
    /// With the host: `replication slot trellara_store_0001_retail_sales at store1`.
    pub what: String,
    pub state: RemovalState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sql: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removal {
    pub flow: String,
    pub dry_run: bool,
    pub steps: Vec<RemovalStep>,
}
