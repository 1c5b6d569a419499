//! From a failed group to the one transaction that failed, and to a verdict on it.
//!
//! ```text
//! Normal --a set-based group of n fails--> Together(n) --m-th fails, change by change--> Before(m) --applied--> Alone
//!    ^------------all n applied---------------'                                                  '--m = 0-----^  |
//!    '-------------------------------------------applied---------------------------------------------------------'
//! Alone --fails--> parked, or tried again: row_missing once, unknown failures twice
//! ```
//! Counts are of transactions from the applied position on, so they survive a new connection. Nothing is
//! classified from a set-based statement, and transient failures count nowhere.
//!
//! The danger: parking a transaction for what the server or another transaction did.

use std::time::Duration;

use crate::failure::{Class, Code, Failure, Place, raised_in_function};
use crate::ports::Applying;

/// Tries of an unknown failure, the first included.
const UNKNOWN_TRIES: u32 = 3;

/// A serialization failure or deadlock that a target function raises itself is believed after this long.
const RETRY_MAX_AGE: Duration = Duration::from_secs(600);

/// What to try next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// At most so many transactions; none for the configured limits.
    pub(super) transactions: Option<usize>,
    pub(super) how: Applying,
}

/// An attempt that was rolled back.
#[derive(Debug)]
pub(super) struct Failed {
    /// Transactions in the group.
    pub(super) size: usize,
    pub(super) how: Applying,
    /// Index of the one that failed, where one did.
    pub(super) member: Option<usize>,
    pub(super) failure: Failure,
}

/// What a failure leads to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Try again at once on the same plan or a finer one.
    Again,
    /// Try again on a new connection, at once.
    Reconnect,
    /// Try again on a new connection after a pause that grows.
    Pause(Failure),
    /// The transaction at the applied position cannot be applied.
    Park(Failure),
    /// Not for apply to decide.
    End(Failure),
}

/// What is suspected of the transactions ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Normal,
    Together(usize),
    Before(usize),
    Alone,
}

/// The search for the transaction that fails.
#[derive(Debug)]
pub(super) struct Isolation {
    step: Step,
    row_missing: bool,
    unknown: u32,
    stale_plan: bool,
    raising_since: Option<Duration>,
}

impl Isolation {
    pub(super) fn new() -> Self {
        Self::at(Step::Normal)
    }

    /// The transaction ahead failed before: it stands alone from the start, and keeps its count of tries.
    pub(super) fn suspect(&mut self) {
        if self.step != Step::Alone {
            *self = Self::at(Step::Alone);
        }
    }

    fn at(step: Step) -> Self {
        Self { step, row_missing: false, unknown: 0, stale_plan: false, raising_since: None }
    }

    pub(super) fn plan(&self) -> Plan {
        let (transactions, how) = match self.step {
            Step::Normal => (None, Applying::SetBased),
            Step::Together(count) | Step::Before(count) => (Some(count), Applying::ChangeByChange),
            Step::Alone => (Some(1), Applying::ChangeByChange),
        };
        Plan { transactions, how }
    }

    /// A group of `size` transactions was applied.
    pub(super) fn applied(&mut self, size: usize) {
        let next = match self.step {
            Step::Together(count) if size < count => Step::Together(count - size),
            Step::Before(count) if size < count => Step::Before(count - size),
            Step::Before(_) => Step::Alone,
            Step::Normal | Step::Together(_) | Step::Alone => Step::Normal,
        };
        *self = Self::at(next);
    }

    /// `now` is monotonic time.
    pub(super) fn failed(&mut self, failed: Failed, now: Duration) -> Verdict {
        let at_change = matches!(failed.failure.place, Place::Change(_));
        match failed.failure.class {
            Class::Transient if failed.failure.code == Code::StalePlan => self.stale(failed, at_change),
            Class::Transient => self.transient(failed, now),
            Class::Endpoint(_) | Class::Lineage | Class::Fence => Verdict::End(failed.failure),
            Class::RowData | Class::SchemaContract | Class::Integrity | Class::Defect | Class::Unknown => {
                if !at_change {
                    Verdict::End(failed.failure)
                } else if failed.size > 1 || failed.how == Applying::SetBased {
                    self.narrow(&failed)
                } else {
                    self.judge(failed.failure)
                }
            }
        }
    }

    fn narrow(&mut self, failed: &Failed) -> Verdict {
        let next = match (failed.how, failed.member) {
            _ if failed.size == 1 => Step::Alone,
            (Applying::SetBased, _) => Step::Together(failed.size),
            (Applying::ChangeByChange | Applying::Check, Some(0)) => Step::Alone,
            (Applying::ChangeByChange | Applying::Check, Some(member)) => Step::Before(member),
            (Applying::ChangeByChange | Applying::Check, None) => Step::Together(failed.size / 2),
        };
        *self = Self::at(next);
        Verdict::Again
    }

    /// The one transaction, alone, change by change: this result counts.
    fn judge(&mut self, failure: Failure) -> Verdict {
        match failure.class {
            Class::RowData if failure.code == Code::RowMissing && !self.row_missing => {
                self.row_missing = true;
                Verdict::Again
            }
            Class::RowData | Class::SchemaContract | Class::Integrity => Verdict::Park(failure),
            Class::Unknown | Class::Transient => {
                self.unknown += 1;
                if self.unknown < UNKNOWN_TRIES {
                    Verdict::Pause(failure)
                } else {
                    Verdict::Park(failure.unclassified())
                }
            }
            Class::Endpoint(_) | Class::Lineage | Class::Fence | Class::Defect => Verdict::End(failure),
        }
    }

    /// A statement or plan that outlived its object is made anew, once; the second time it is a failure
    /// like another.
    fn stale(&mut self, failed: Failed, at_change: bool) -> Verdict {
        if !self.stale_plan {
            self.stale_plan = true;
            Verdict::Reconnect
        } else if !at_change {
            Verdict::Pause(failed.failure)
        } else if failed.size > 1 || failed.how == Applying::SetBased {
            self.narrow(&failed)
        } else {
            self.judge(failed.failure)
        }
    }

    fn transient(&mut self, failed: Failed, now: Duration) -> Verdict {
        let raised = matches!(failed.failure.place, Place::Change(_)) && raised_in_function(&failed.failure);
        if !raised {
            return Verdict::Pause(failed.failure);
        }
        let since = *self.raising_since.get_or_insert(now);
        if now.saturating_sub(since) < RETRY_MAX_AGE {
            Verdict::Pause(failed.failure)
        } else if failed.size > 1 || failed.how == Applying::SetBased {
            // The age belongs to the suspicion, not to the step that it leads to.
            let verdict = self.narrow(&failed);
            self.raising_since = Some(since);
            verdict
        } else {
            Verdict::Park(failed.failure.unclassified())
        }
    }
}

#[cfg(test)]
mod tests;
