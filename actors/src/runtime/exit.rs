//! How a flow's generation ended, reported exactly once whatever ended it.
//!
//! The report is made by `Drop` of a guard that the actor or the task owns, and says "panicked" unless an
//! orderly end wrote its own reason before. Handler panics, task panics, timer panics and stopped threads
//! all drop the guard; the actor framework's own hooks are not called in all of those cases.

use crate::flow::state::Fault;

/// Why one generation of a flow is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FlowExit {
    /// Nothing is left to do for it.
    Completed,
    /// It was told to stop.
    Stopped,
    Failed(Fault),
    /// The store has no room left.
    NoRoom,
    Panicked,
    /// No progress while work was pending, or no answer.
    Stalled,
    /// It never answered after its start.
    Lost,
}

impl FlowExit {
    /// The name in logs and metrics.
    pub const fn name(&self) -> &'static str {
        match self {
            FlowExit::Completed => "completed",
            FlowExit::Stopped => "stopped",
            FlowExit::Failed(_) => "failed",
            FlowExit::NoRoom => "no_room",
            FlowExit::Panicked => "panicked",
            FlowExit::Stalled => "stalled",
            FlowExit::Lost => "lost",
        }
    }
}

/// Reports `E` when it is dropped.
pub struct ExitGuard<E> {
    exit: Option<E>,
    report: Option<Box<dyn FnOnce(E) + Send>>,
}

impl<E> ExitGuard<E> {
    /// `otherwise` is what is reported unless `set` was called: the disorderly end.
    pub fn new(otherwise: E, report: impl FnOnce(E) + Send + 'static) -> Self {
        Self { exit: Some(otherwise), report: Some(Box::new(report)) }
    }

    /// To be called before an orderly end.
    pub fn set(&mut self, exit: E) {
        self.exit = Some(exit);
    }
}

impl<E> Drop for ExitGuard<E> {
    fn drop(&mut self) {
        if let (Some(exit), Some(report)) = (self.exit.take(), self.report.take()) {
            report(exit);
        }
    }
}

impl<E> std::fmt::Debug for ExitGuard<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExitGuard").finish_non_exhaustive()
    }
}
