//! Who may claim a flow's checkpoint (I11). The same instance claims again at once; a live lease of
//! another is waited out once; what was ours and is another's now is not fought over.

use std::time::Duration;

use crate::ports::{Checkpoint, Claim, Claimed};

/// How long a claim stays good without renewal, by the target's clock.
pub const LEASE: Duration = Duration::from_secs(30);

/// The lease and a little more, for clocks and round trips.
const PATIENCE: Duration = Duration::from_secs(33);

/// Whether the row's state lets this claim through. The target adapter asks it under the row's lock.
pub fn may_claim(row: &Checkpoint, claim: &Claim) -> bool {
    row.token.instance == claim.instance || !row.lease_live || claim.take_over
}

/// What to do after an attempt to claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Ours(Checkpoint),
    /// Ask again in a moment: the lease of another is being waited out.
    Wait(Checkpoint),
    Fenced(Checkpoint),
    /// No row, where there was one before.
    Lost,
}

/// The claims of one apply task.
#[derive(Debug)]
pub(super) struct Claiming {
    take_over: bool,
    /// The row was ours during this task.
    held: bool,
    /// Since when a lease is being waited out.
    waiting: Option<Duration>,
}

impl Claiming {
    pub(super) fn new(take_over: bool) -> Self {
        Self { take_over, held: false, waiting: None }
    }

    /// Whether the next claim may break a live lease: only until the first success, so that two engines
    /// that were both told to take over do not take turns.
    pub(super) fn take_over(&self) -> bool {
        self.take_over && !self.held
    }

    /// `now` is monotonic time.
    pub(super) fn on(&mut self, claimed: Claimed, now: Duration) -> Verdict {
        match claimed {
            Claimed::Ours(row) => {
                self.held = true;
                self.waiting = None;
                Verdict::Ours(row)
            }
            Claimed::Missing => Verdict::Lost,
            Claimed::Held(row) if self.held => Verdict::Fenced(row),
            Claimed::Held(row) => {
                let since = *self.waiting.get_or_insert(now);
                if now.saturating_sub(since) < PATIENCE { Verdict::Wait(row) } else { Verdict::Fenced(row) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use trellara_storage::{Incarnation, InstanceId, Progress};

    use super::*;
    use crate::ports::Token;

    fn instance(n: u8) -> InstanceId {
        InstanceId::new([n; 16])
    }

    fn row(holder: u8, lease_live: bool) -> Checkpoint {
        Checkpoint {
            incarnation: Incarnation::FIRST,
            lineage: String::new(),
            applied: Progress::ZERO,
            digest: None,
            token: Token { instance: instance(holder), boot: 1, generation: 1 },
            holder: String::new(),
            lease_live,
        }
    }

    fn claim(instance_number: u8, take_over: bool) -> Claim {
        Claim {
            instance: instance(instance_number),
            boot: 2,
            holder: String::new(),
            take_over,
            initial: None,
        }
    }

    #[test]
    fn i11_only_a_live_lease_of_another_instance_keeps_a_claim_out() {
        assert!(may_claim(&row(1, true), &claim(1, false)), "its own, from an earlier boot");
        assert!(may_claim(&row(2, false), &claim(1, false)), "another's that ran out");
        assert!(!may_claim(&row(2, true), &claim(1, false)));
        assert!(may_claim(&row(2, true), &claim(1, true)), "told to take over");
    }

    #[test]
    fn i11_a_live_lease_is_waited_out_once_and_then_fences() {
        let mut claiming = Claiming::new(false);
        let start = Duration::from_secs(100);
        assert_eq!(claiming.on(Claimed::Held(row(2, true)), start), Verdict::Wait(row(2, true)));
        let almost = start + LEASE;
        assert_eq!(claiming.on(Claimed::Held(row(2, true)), almost), Verdict::Wait(row(2, true)));
        let over = start + PATIENCE;
        assert_eq!(claiming.on(Claimed::Held(row(2, true)), over), Verdict::Fenced(row(2, true)));
    }

    #[test]
    fn i11_a_lease_that_runs_out_during_the_wait_is_claimed() {
        let mut claiming = Claiming::new(false);
        claiming.on(Claimed::Held(row(2, true)), Duration::ZERO);
        assert_eq!(claiming.on(Claimed::Ours(row(1, true)), LEASE), Verdict::Ours(row(1, true)));
    }

    #[test]
    fn i11_what_was_ours_and_is_held_by_another_fences_at_once_without_taking_turns() {
        let mut claiming = Claiming::new(true);
        assert!(claiming.take_over());
        claiming.on(Claimed::Ours(row(1, true)), Duration::ZERO);
        assert!(!claiming.take_over());
        assert_eq!(claiming.on(Claimed::Held(row(2, true)), Duration::ZERO), Verdict::Fenced(row(2, true)));
    }

    #[test]
    fn a_row_that_is_missing_means_that_the_target_was_lost() {
        assert_eq!(Claiming::new(true).on(Claimed::Missing, Duration::ZERO), Verdict::Lost);
    }
}
