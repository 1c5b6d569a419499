//! What a flow shows of itself, complete, at one moment.

use std::time::Duration;

use trellara_storage::records::Lineage;
use trellara_storage::{FlowId, FlowName, Progress, Timestamp};

use super::phase::{Phase, Reason};
use super::progress::Counters;
use super::state::{Apply, Holder, Parked, Pause, State, Tries, Whole};
use crate::ports::LogBudget;

/// One thing that holds, why, and since when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    pub reason: Reason,
    pub since: Timestamp,
}

/// A snapshot of one flow, published after each change became durable.
#[derive(Clone, Debug)]
pub struct FlowStatus {
    pub flow: FlowName,
    /// None before the flow was opened for the first time.
    pub id: Option<FlowId>,
    pub generation: u64,
    /// Everything that holds, worst first; never empty, the first is the phase.
    pub conditions: Vec<Condition>,
    /// None before an incarnation is durable.
    pub lineage: Option<Lineage>,
    /// Publications found with another definition than at an earlier connect of this generation; rows that
    /// they stopped or began to cover are not reconciled by the stream.
    pub publications_changed: Vec<String>,
    pub captured: Progress,
    pub durable: Progress,
    pub applied: Progress,
    pub counters: Counters,
    pub source_seen: Option<Timestamp>,
    pub target_seen: Option<Timestamp>,
    /// Commit time of the newest heartbeat that came back.
    pub heartbeat: Option<Timestamp>,
    /// Commit time at the source of the newest applied transaction of this generation.
    pub applied_commit_time: Option<Timestamp>,
    /// Failures in a row of each half.
    pub tries: Tries,
    /// Generations that died since the process started.
    pub deaths: u64,
    pub pause: Option<Pause>,
    pub quarantine: Option<Parked>,
    pub holder: Option<Holder>,
    pub log: LogBudget,
    pub work: Work,
}

/// What the supervisor's stall detection looks at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Apply is at it, and there is something to apply.
    pub pending: bool,
    /// Monotonic time since which it has not been heard of.
    pub silent_since: Duration,
}

impl FlowStatus {
    /// Of a flow without an actor: waiting for its start, detached, or parked.
    pub fn bare(flow: FlowName, generation: u64, condition: Condition) -> Self {
        Self {
            flow,
            id: None,
            generation,
            conditions: vec![condition],
            lineage: None,
            publications_changed: Vec::new(),
            captured: Progress::ZERO,
            durable: Progress::ZERO,
            applied: Progress::ZERO,
            counters: Counters::default(),
            source_seen: None,
            target_seen: None,
            heartbeat: None,
            applied_commit_time: None,
            tries: Tries::default(),
            deaths: 0,
            pause: None,
            quarantine: None,
            holder: None,
            log: LogBudget::default(),
            work: Work::default(),
        }
    }

    pub fn phase(&self) -> Phase {
        self.condition().reason.phase
    }

    /// The condition that the phase stands for.
    pub fn condition(&self) -> &Condition {
        self.conditions.first().expect("a status holds at least one condition")
    }

    pub fn holds(&self, phase: Phase) -> bool {
        self.conditions.iter().any(|condition| condition.reason.phase == phase)
    }
}

pub(super) fn parked(state: &State) -> Option<Parked> {
    match &state.apply {
        Apply::Quarantined(parked) => Some((**parked).clone()),
        Apply::NotSeeded
        | Apply::Claiming
        | Apply::Applying
        | Apply::Retrying(_)
        | Apply::Unavailable { .. }
        | Apply::LineageLost(_)
        | Apply::Drained => None,
    }
}

pub(super) fn holder(state: &State) -> Option<Holder> {
    match &state.whole {
        Whole::Fenced(holder) => Some(holder.clone()),
        Whole::Active | Whole::Failed(_) | Whole::Removing { .. } | Whole::Detached => None,
    }
}
