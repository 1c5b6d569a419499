//! Positions and counters of a flow as its tasks report them, and the proof that it runs (I12).
//!
//! Reports of the two halves travel apart, so for a moment `applied` may be shown ahead of `durable`; lag
//! is therefore a saturating difference, and nothing here decides what is confirmed or applied.

use std::time::Duration;

use trellara_storage::{Lsn, Progress, Timestamp};

use crate::apply::ApplyProgress;
use crate::capture::CaptureProgress;

/// How long a proof counts: three heartbeats of the default interval.
pub const PROOF_WINDOW: Duration = Duration::from_secs(90);

/// A count that goes on over the tasks that each count from zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    ended: u64,
    running: u64,
}

/// What the tasks of one generation have reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    pub captured_transactions: u64,
    pub captured_bytes: u64,
    pub redelivered: u64,
    pub applied_transactions: u64,
    pub applied_changes: u64,
    pub capture_failures: u64,
    pub apply_failures: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Tracker {
    pub(super) captured: Progress,
    pub(super) durable: Progress,
    pub(super) applied: Progress,
    pub(super) source_seen: Option<Timestamp>,
    pub(super) heartbeat: Option<Timestamp>,
    pub(super) target_seen: Option<Timestamp>,
    pub(super) applied_commit_time: Option<Timestamp>,
    /// Monotonic time of the newest report of apply.
    apply_heard: Duration,
    /// Monotonic time at which apply fell behind what is durable.
    behind_since: Duration,
    pub(super) capture_failures: u64,
    pub(super) apply_failures: u64,
    captured_transactions: Count,
    captured_bytes: Count,
    redelivered: Count,
    applied_transactions: Count,
    applied_changes: Count,
    proof: Proof,
}

/// What was durable at some moment has been applied since: `mark` is what is waited for and the moment it
/// was durable, `proven` the newest such moment that has come true.
#[derive(Clone, Copy, Debug, Default)]
struct Proof {
    mark: Option<(Lsn, Duration)>,
    proven: Option<Duration>,
}

impl Tracker {
    pub(super) fn new(durable: Progress, applied: Progress) -> Self {
        Self { captured: durable, durable, applied, ..Self::default() }
    }

    /// True when something new became durable.
    pub(super) fn capture(&mut self, progress: &CaptureProgress, now: Duration) -> bool {
        let advanced = progress.durable > self.durable;
        self.durable_is(progress.durable, now);
        self.captured = self.durable.max(progress.captured);
        self.source_seen = Some(progress.source_seen);
        self.heartbeat = progress.heartbeat.or(self.heartbeat);
        self.captured_transactions.running = progress.transactions;
        self.captured_bytes.running = progress.bytes;
        self.redelivered.running = progress.redelivered;
        if self.proof.mark.is_none() {
            self.proof.mark = Some((self.durable.commit_lsn, now));
        }
        self.prove();
        advanced
    }

    /// The checkpoint as it was found at connect, lower or higher (I8).
    pub(super) fn claimed(&mut self, applied: Progress, at: Timestamp, now: Duration) {
        self.applied = applied;
        self.target_seen = Some(at);
        self.apply_heard = now;
        self.prove();
    }

    /// True when the target moved forward.
    pub(super) fn apply(&mut self, progress: &ApplyProgress, now: Duration) -> bool {
        let advanced = progress.applied > self.applied;
        self.applied = self.applied.max(progress.applied);
        self.target_seen = Some(progress.at);
        if progress.transactions > 0 {
            self.applied_commit_time = Some(progress.commit_time);
        }
        self.applied_transactions.running = progress.transactions;
        self.applied_changes.running = progress.changes;
        self.apply_heard = now;
        self.prove();
        advanced
    }

    pub(super) fn durable_is(&mut self, durable: Progress, now: Duration) {
        let caught_up = self.caught_up();
        self.durable = self.durable.max(durable);
        self.captured = self.captured.max(self.durable);
        if caught_up && !self.caught_up() {
            self.behind_since = now;
        }
    }

    /// Apply is at it, though it moved nothing.
    pub(super) fn apply_spoke(&mut self, now: Duration) {
        self.apply_heard = now;
    }

    /// Since when apply has had something to do and has not been heard of.
    pub(super) fn silent_since(&self) -> Duration {
        self.apply_heard.max(self.behind_since)
    }

    pub(super) fn capture_ended(&mut self) {
        for count in [&mut self.captured_transactions, &mut self.captured_bytes, &mut self.redelivered] {
            count.end();
        }
    }

    pub(super) fn apply_ended(&mut self) {
        for count in [&mut self.applied_transactions, &mut self.applied_changes] {
            count.end();
        }
    }

    /// Everything durable has been applied.
    pub(super) fn caught_up(&self) -> bool {
        self.applied.commit_lsn >= self.durable.commit_lsn
    }

    /// A half went down: what was proven of this connection says nothing of the next.
    pub(super) fn disprove(&mut self) {
        self.proof = Proof::default();
    }

    pub(super) fn proven(&self, now: Duration) -> bool {
        self.proof.proven.is_some_and(|at| now.saturating_sub(at) <= PROOF_WINDOW)
    }

    /// When the proof runs out unless it is renewed.
    pub(super) fn proven_until(&self) -> Option<Duration> {
        self.proof.proven.map(|at| at + PROOF_WINDOW)
    }

    pub(super) fn counters(&self) -> Counters {
        Counters {
            captured_transactions: self.captured_transactions.total(),
            captured_bytes: self.captured_bytes.total(),
            redelivered: self.redelivered.total(),
            applied_transactions: self.applied_transactions.total(),
            applied_changes: self.applied_changes.total(),
            capture_failures: self.capture_failures,
            apply_failures: self.apply_failures,
        }
    }

    fn prove(&mut self) {
        if let Some((lsn, at)) = self.proof.mark
            && self.applied.commit_lsn >= lsn
        {
            self.proof = Proof { mark: None, proven: Some(at) };
        }
    }
}

impl Count {
    fn total(self) -> u64 {
        self.ended + self.running
    }

    fn end(&mut self) {
        *self = Count { ended: self.total(), running: 0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(commit: u64) -> Progress {
        Progress { commit_lsn: Lsn::new(commit), position: Lsn::new(commit + 1) }
    }

    fn captured(commit: u64) -> CaptureProgress {
        CaptureProgress { captured: at(commit), durable: at(commit), ..CaptureProgress::default() }
    }

    fn applied(commit: u64) -> ApplyProgress {
        ApplyProgress { applied: at(commit), ..ApplyProgress::default() }
    }

    const fn second(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn i12_the_proof_is_what_was_durable_and_has_been_applied_since() {
        let mut tracker = Tracker::new(at(10), at(10));
        assert!(!tracker.proven(second(0)));
        tracker.capture(&captured(20), second(1));
        assert!(!tracker.proven(second(1)));
        tracker.capture(&captured(90), second(2));
        tracker.apply(&applied(20), second(3));
        assert!(tracker.proven(second(3)), "what was durable at second 1 is applied");
        assert_eq!(tracker.proven_until(), Some(second(1) + PROOF_WINDOW));
        assert!(!tracker.proven(second(2) + PROOF_WINDOW));
    }

    #[test]
    fn i12_a_target_far_behind_proves_nothing() {
        let mut tracker = Tracker::new(at(1_000), at(10));
        for n in 1..100 {
            tracker.capture(&captured(1_000 + n), second(n));
            tracker.apply(&applied(10 + n), second(n));
        }
        assert!(!tracker.proven(second(100)));
    }

    #[test]
    fn a_checkpoint_at_connect_may_lie_lower_and_progress_only_moves_forward() {
        let mut tracker = Tracker::new(at(100), at(100));
        tracker.claimed(at(50), Timestamp::default(), second(1));
        assert_eq!(tracker.applied, at(50));
        assert!(!tracker.apply(&applied(40), second(2)));
        assert_eq!(tracker.applied, at(50));
    }

    #[test]
    fn counters_go_on_over_tasks() {
        let mut tracker = Tracker::default();
        tracker.apply(&ApplyProgress { transactions: 5, ..applied(1) }, second(1));
        tracker.apply_ended();
        tracker.apply(&ApplyProgress { transactions: 2, ..applied(2) }, second(2));
        assert_eq!(tracker.counters().applied_transactions, 7);
    }
}
