//! What can happen to a flow.

use super::state::{Fault, Half, Holder, Loss, Parked, Pause};

/// How a capture task ended. Store failures and panics end the flow's generation and never get here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaptureEnd {
    Stopped,
    Failed(Fault),
    LineageLost(Loss),
    LogFull,
}

/// How an apply task ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApplyEnd {
    Stopped,
    Failed(Fault),
    Quarantined(Box<Parked>),
    Fenced(Holder),
    LineageLost(Loss),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    // Of the capture task.
    LineageKnown,
    Capturing,
    /// Something new became durable: the failures before it are history.
    CaptureAdvanced,
    CaptureEnded(CaptureEnd),
    /// Apply and retention have freed enough of the log budget.
    RoomAgain,
    // Of the apply task.
    Claimed,
    ApplyAdvanced,
    /// Tried again inside the task.
    ApplyTrouble(Fault),
    ApplyEnded(ApplyEnd),
    /// Capture lost its lineage and everything durable has been applied.
    Drained,
    // Of time.
    RetryDue(Half),
    PauseRanOut,
    // Of the operator.
    Pause(Pause),
    Resume,
    /// The parked transaction was released by a recorded decision, named by its evidence.
    Decided {
        evidence: String,
    },
    Restart,
    Remove {
        keep_slot: bool,
    },
    // Of the supervisor.
    Detach,
    Attach,
    /// The flow kept dying.
    GaveUp(Fault),
}

impl Event {
    /// What happened, in records (`flow events`).
    pub const fn kind(&self) -> &'static str {
        match self {
            Event::LineageKnown => "capture.lineage",
            Event::Capturing => "capture.connected",
            Event::CaptureAdvanced => "capture.advanced",
            Event::CaptureEnded(CaptureEnd::Stopped) => "capture.stopped",
            Event::CaptureEnded(CaptureEnd::Failed(_)) => "capture.failed",
            Event::CaptureEnded(CaptureEnd::LineageLost(_)) => "capture.lineage_lost",
            Event::CaptureEnded(CaptureEnd::LogFull) => "capture.log_full",
            Event::RoomAgain => "capture.room_again",
            Event::Claimed => "apply.claimed",
            Event::ApplyAdvanced => "apply.advanced",
            Event::ApplyTrouble(_) | Event::ApplyEnded(ApplyEnd::Failed(_)) => "apply.failed",
            Event::ApplyEnded(ApplyEnd::Stopped) => "apply.stopped",
            Event::ApplyEnded(ApplyEnd::Quarantined(_)) => "apply.quarantined",
            Event::ApplyEnded(ApplyEnd::Fenced(_)) => "apply.fenced",
            Event::ApplyEnded(ApplyEnd::LineageLost(_)) => "apply.lineage_lost",
            Event::Drained => "apply.drained",
            Event::RetryDue(Half::Capture) => "capture.retry",
            Event::RetryDue(Half::Apply) => "apply.retry",
            Event::PauseRanOut => "operator.pause_ran_out",
            Event::Pause(_) => "operator.paused",
            Event::Resume => "operator.resumed",
            Event::Decided { .. } => "quarantine.decided",
            Event::Restart => "operator.restarted",
            Event::Remove { .. } => "operator.removed",
            Event::Detach => "fleet.detached",
            Event::Attach => "fleet.attached",
            Event::GaveUp(_) => "fleet.gave_up",
        }
    }
}
