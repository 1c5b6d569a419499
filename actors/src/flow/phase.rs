//! The one phase that is shown, and every condition that holds.
//!
//! The phase is the first that holds in `Phase::ORDER`; the conditions list them all, so that a slot lost
//! while a transaction is quarantined hides neither. `Streaming` is never set: it is what remains when
//! nothing else holds and both halves run, *and* a proof says so (I12): what was durable at some moment of
//! the last `proof` window has been applied at the target since. Connected without that proof is
//! `CatchingUp`.

use serde::{Deserialize, Serialize};

use super::state::{Apply, Capture, Fault, Operator, State, Whole};
use crate::failure::{Class, Code};

/// The fieldless twin of everything that a flow can be, and its name.
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
    NotSeeded,
    Connecting,
    CatchingUp,
    Streaming,
}

impl Phase {
    /// First that holds wins.
    pub const ORDER: [Phase; 14] = [
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

    /// The name in records, API, CLI and metrics.
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
        }
    }

    /// The number in metrics, counted from 1 in the order above.
    pub fn number(self) -> u8 {
        self as u8 + 1
    }

    /// Needs someone: nothing here goes on by itself.
    pub const fn blocked(self) -> bool {
        match self {
            Phase::Failed | Phase::Fenced | Phase::LineageLost | Phase::Quarantined => true,
            Phase::Removing
            | Phase::Detached
            | Phase::Unavailable
            | Phase::LogFull
            | Phase::Paused
            | Phase::Retrying
            | Phase::NotSeeded
            | Phase::Connecting
            | Phase::CatchingUp
            | Phase::Streaming => false,
        }
    }
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Phase {
    type Err = UnknownPhase;

    fn from_str(text: &str) -> Result<Self, UnknownPhase> {
        Phase::ORDER.into_iter().find(|phase| phase.name() == text).ok_or(UnknownPhase)
    }
}

/// The text names no phase.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not a phase of a flow")]
pub struct UnknownPhase;

/// One thing that holds, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    pub phase: Phase,
    pub class: Option<Class>,
    /// Stable code as shown, `TRL-0401`.
    pub code: Option<String>,
    pub sqlstate: Option<String>,
    pub constraint: Option<String>,
    /// One line without row values.
    pub cause: String,
    /// Short id of the evidence.
    pub evidence: Option<String>,
}

impl Reason {
    pub(crate) fn plain(phase: Phase, cause: impl Into<String>) -> Self {
        Self {
            phase,
            class: None,
            code: None,
            sqlstate: None,
            constraint: None,
            cause: cause.into(),
            evidence: None,
        }
    }

    fn coded(phase: Phase, class: Class, code: Code, cause: impl Into<String>) -> Self {
        Self { class: Some(class), code: Some(code.to_string()), ..Self::plain(phase, cause) }
    }

    pub(crate) fn fault(phase: Phase, fault: &Fault) -> Self {
        Self {
            sqlstate: fault.sqlstate.clone(),
            constraint: fault.constraint.clone(),
            ..Self::coded(phase, fault.class, fault.code, &fault.what)
        }
    }
}

/// Everything that holds, in the order of `Phase::ORDER`; the first is the phase. Never empty.
pub fn reasons(state: &State, proven: bool) -> Vec<Reason> {
    let mut reasons: Vec<Reason> = whole(&state.whole)
        .into_iter()
        .chain(capture(&state.capture))
        .chain(apply(&state.apply))
        .chain(operator(&state.operator))
        .chain(running(state))
        .collect();
    if reasons.is_empty() {
        reasons.push(if proven {
            Reason::plain(Phase::Streaming, "source to target proven")
        } else {
            Reason::plain(Phase::CatchingUp, "connected on both sides, target behind the log")
        });
    }
    reasons.sort_by_key(|reason| reason.phase);
    reasons
}

fn whole(whole: &Whole) -> Option<Reason> {
    match whole {
        Whole::Active => None,
        Whole::Fenced(holder) => Some(Reason::coded(
            Phase::Fenced,
            Class::Fence,
            Code::Fenced,
            format!("applied by {}", holder.name),
        )),
        Whole::Failed(fault) => Some(Reason::fault(Phase::Failed, fault)),
        Whole::Removing { .. } => Some(Reason::plain(Phase::Removing, "being removed")),
        Whole::Detached => Some(Reason::plain(Phase::Detached, "not configured")),
    }
}

fn capture(capture: &Capture) -> Option<Reason> {
    match capture {
        Capture::Connecting | Capture::Capturing => None,
        Capture::Retrying(trouble) => Some(Reason::fault(Phase::Retrying, &trouble.fault)),
        Capture::Unavailable { trouble, .. } => Some(Reason::fault(Phase::Unavailable, &trouble.fault)),
        Capture::LogFull => Some(Reason {
            code: Some(Code::LogFull.to_string()),
            ..Reason::plain(Phase::LogFull, "log budget is used up, capture closed its connection")
        }),
        Capture::LineageLost(loss) => {
            Some(Reason::coded(Phase::LineageLost, Class::Lineage, loss.code, &loss.what))
        }
    }
}

fn apply(apply: &Apply) -> Option<Reason> {
    match apply {
        Apply::Claiming | Apply::Applying | Apply::Drained => None,
        Apply::NotSeeded => Some(Reason::plain(Phase::NotSeeded, "no incarnation is durable here yet")),
        Apply::Retrying(trouble) => Some(Reason::fault(Phase::Retrying, &trouble.fault)),
        Apply::Unavailable { trouble, .. } => Some(Reason::fault(Phase::Unavailable, &trouble.fault)),
        Apply::Quarantined(parked) => Some(Reason {
            code: Some(parked.code.clone()),
            sqlstate: parked.sqlstate.clone(),
            constraint: parked.constraint.clone(),
            evidence: Some(parked.id.clone()),
            ..Reason::plain(
                Phase::Quarantined,
                format!("transaction at {} cannot be applied", parked.transaction.commit_lsn),
            )
        }),
        Apply::LineageLost(loss) => {
            Some(Reason::coded(Phase::LineageLost, Class::Lineage, loss.code, &loss.what))
        }
    }
}

fn operator(operator: &Operator) -> Option<Reason> {
    match operator {
        Operator::Running => None,
        Operator::Paused(pause) => {
            Some(Reason::plain(Phase::Paused, format!("paused by {}: {}", pause.who, pause.why)))
        }
    }
}

/// Halves that are on their way; one that may not run is no news.
fn running(state: &State) -> Vec<Reason> {
    let wanted = state.wanted();
    let mut reasons = Vec::new();
    if wanted.capture && state.capture == Capture::Connecting {
        reasons.push(Reason::plain(Phase::Connecting, "connecting to the source"));
    }
    if wanted.apply && state.apply == Apply::Claiming {
        reasons.push(Reason::plain(Phase::Connecting, "claiming the checkpoint at the target"));
    }
    reasons
}
