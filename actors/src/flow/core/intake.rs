//! What the tasks report and how they end, translated into events of the machines.

use trellara_storage::{Batch, Error};

use super::super::event::{ApplyEnd, CaptureEnd, Event};
use super::super::state::{Apply, Capture, Fault, Half, Holder, Loss, Parked};
use super::schedule::Slot;
use super::{Action, FlowCore, Moment, Surroundings};
use crate::apply::{ApplyExit, ApplyReport};
use crate::capture::{CaptureExit, CaptureReport};
use crate::failure::{Class, Code};
use crate::runtime::{FlowExit, TaskExit};

impl FlowCore {
    /// What the shell sees; before the reports of the same moment.
    pub fn look(&mut self, around: Surroundings, now: Moment) {
        self.tracker.durable_is(around.durable, now.elapsed);
        self.log.max = around.log_max_bytes;
        self.log.used = around.log_used.unwrap_or(self.log.used);
    }

    /// After everything of one moment was taken in.
    pub fn taken_in(&mut self, now: Moment) {
        self.look_for_room(now);
        self.look_whether_drained(now);
        self.look_at_proof(now);
        self.publish();
    }

    pub fn capture_report(&mut self, report: CaptureReport, now: Moment) {
        // A task that was told to stop has only its end to report.
        if self.schedule.slot(Half::Capture) != Slot::Running {
            return;
        }
        match report {
            CaptureReport::Lineage { lineage, .. } => {
                self.lineage = Some(lineage);
                self.happen(&Event::LineageKnown, now);
            }
            CaptureReport::Capturing => self.happen(&Event::Capturing, now),
            CaptureReport::PublicationsChanged(publications) => {
                let cause = format!("definition changed: {}", publications.join(", "));
                self.publications_changed = publications;
                self.record("capture.publications_changed", Some(cause), Some(Batch::new()), now);
            }
            CaptureReport::Progress(progress) => {
                if self.tracker.capture(&progress, now.elapsed) && self.state.tries.capture > 0 {
                    self.happen(&Event::CaptureAdvanced, now);
                }
            }
        }
    }

    pub fn apply_report(&mut self, report: ApplyReport, now: Moment) {
        if self.schedule.slot(Half::Apply) != Slot::Running {
            return;
        }
        match report {
            ApplyReport::Claimed(checkpoint) => {
                self.take_over = false;
                self.tracker.claimed(checkpoint.applied, now.at, now.elapsed);
                self.happen(&Event::Claimed, now);
            }
            ApplyReport::Progress(progress) => {
                let advanced = self.tracker.apply(&progress, now.elapsed);
                if advanced && (self.state.apply != Apply::Applying || self.state.tries.apply > 0) {
                    self.happen(&Event::ApplyAdvanced, now);
                }
            }
            ApplyReport::Retrying(failure) => {
                self.tracker.apply_failures += 1;
                self.tracker.apply_spoke(now.elapsed);
                self.happen(&Event::ApplyTrouble(failure.into()), now);
            }
            // Recorded by the task, together with the record's new state.
            ApplyReport::Resolved(_) => self.tracker.apply_spoke(now.elapsed),
        }
    }

    pub fn capture_ended(&mut self, exit: TaskExit<CaptureExit>, now: Moment) {
        let told = self.ended(Half::Capture);
        let end = match exit {
            TaskExit::Broken if told => CaptureEnd::Stopped,
            TaskExit::Broken => return self.end(FlowExit::Panicked, now),
            TaskExit::Ended(CaptureExit::Stopped) if told => CaptureEnd::Stopped,
            TaskExit::Ended(CaptureExit::Stopped) => CaptureEnd::Failed(ended_by_itself()),
            TaskExit::Ended(CaptureExit::Failed(failure)) => CaptureEnd::Failed(failure.into()),
            TaskExit::Ended(CaptureExit::LineageLost { code, what }) => {
                CaptureEnd::LineageLost(Loss { code, what })
            }
            TaskExit::Ended(CaptureExit::LogFull) => {
                // Whatever was read before says nothing of now.
                self.log.used = self.log.used.max(self.log.max);
                CaptureEnd::LogFull
            }
            TaskExit::Ended(CaptureExit::Store(error)) => return self.end(store_failed(&error), now),
        };
        self.tracker.capture_failures += u64::from(matches!(end, CaptureEnd::Failed(_)));
        self.happen(&Event::CaptureEnded(end), now);
        self.exit_when_still();
    }

    pub fn apply_ended(&mut self, exit: TaskExit<ApplyExit>, now: Moment) {
        let told = self.ended(Half::Apply);
        let end = match exit {
            TaskExit::Broken if told => ApplyEnd::Stopped,
            TaskExit::Broken => return self.end(FlowExit::Panicked, now),
            TaskExit::Ended(ApplyExit::Stopped) if told => ApplyEnd::Stopped,
            TaskExit::Ended(ApplyExit::Stopped) => ApplyEnd::Failed(ended_by_itself()),
            TaskExit::Ended(ApplyExit::Quarantined(record)) => {
                ApplyEnd::Quarantined(Box::new(Parked::from(&*record)))
            }
            TaskExit::Ended(ApplyExit::Failed(failure)) => ApplyEnd::Failed(failure.into()),
            TaskExit::Ended(ApplyExit::Fenced(checkpoint)) => ApplyEnd::Fenced(Holder::from(&*checkpoint)),
            TaskExit::Ended(ApplyExit::LineageLost { code, what }) => {
                ApplyEnd::LineageLost(Loss { code, what })
            }
            TaskExit::Ended(ApplyExit::Store(error)) => return self.end(store_failed(&error), now),
        };
        self.tracker.apply_failures += u64::from(matches!(end, ApplyEnd::Failed(_)));
        self.happen(&Event::ApplyEnded(end), now);
        self.exit_when_still();
    }

    /// The flow's own record could not be written: its memory is ahead of what is durable, so this
    /// generation is over at once and its tasks are cut off.
    pub fn not_persisted(&mut self, error: &Error) {
        self.ended = true;
        self.actions = vec![Action::Exit(store_failed(error))];
    }

    /// True when the task had been told to stop.
    fn ended(&mut self, half: Half) -> bool {
        let told = self.schedule.slot(half) != Slot::Running;
        self.schedule.clear(half);
        match half {
            Half::Capture => self.tracker.capture_ended(),
            Half::Apply => self.tracker.apply_ended(),
        }
        told
    }

    fn look_whether_drained(&mut self, now: Moment) {
        let lost = matches!(self.state.capture, Capture::LineageLost(_));
        if lost && self.state.apply == Apply::Applying && self.tracker.caught_up() {
            self.happen(&Event::Drained, now);
        }
    }
}

pub(super) fn defect(what: String) -> Fault {
    Fault::new(Class::Defect, Code::Panicked, what)
}

fn ended_by_itself() -> Fault {
    Fault::new(Class::Unknown, Code::Unclassified, "the task ended without being told to")
}

pub(crate) fn store_failed(error: &Error) -> FlowExit {
    let code = match error {
        Error::DiskFull => return FlowExit::NoRoom,
        Error::Corruption { .. } | Error::StoreDamaged { .. } => Code::StoreDamaged,
        Error::FormatVersion { .. } => Code::StoreFormat,
        Error::Locked { .. } => Code::StoreLocked,
        Error::WriteFailed(_) | Error::ReadFailed(_) | Error::BackupFailed(_) | Error::Closed => {
            Code::StoreFailed
        }
    };
    FlowExit::Failed(Fault::new(Class::Unknown, code, error.to_string()))
}
