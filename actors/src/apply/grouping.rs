//! Which transactions go into the next group: whole ones, in commit order, from the applied position on.
//! One that is larger than every limit still goes, alone; nothing is ever left out.

/// Limits of one apply group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupLimits {
    pub transactions: usize,
    pub changes: u64,
    pub bytes: u64,
}

/// What a transaction adds to a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Weight {
    pub(super) changes: u64,
    pub(super) bytes: u64,
    /// Must not share a target transaction: it lies in chunk parts, or stands under a decision.
    pub(super) alone: bool,
}

/// What becomes of the transaction offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// In the group, which has room for more.
    Taken,
    /// In the group, which is complete with it.
    TakenLast,
    /// Not in the group, which was complete before it.
    Refused,
}

/// A group being filled.
#[derive(Debug)]
pub(super) struct Grouping {
    room: GroupLimits,
    empty: bool,
}

impl Grouping {
    pub(super) fn new(limits: GroupLimits) -> Self {
        Self { room: limits, empty: true }
    }

    /// Offers the next transaction in commit order. After anything but `Taken` the group is closed.
    pub(super) fn offer(&mut self, weight: Weight) -> Admission {
        let fits = self.room.transactions > 0
            && weight.changes <= self.room.changes
            && weight.bytes <= self.room.bytes;
        if !self.empty && (weight.alone || !fits) {
            return Admission::Refused;
        }
        self.empty = false;
        self.room.transactions = self.room.transactions.saturating_sub(1);
        self.room.changes = self.room.changes.saturating_sub(weight.changes);
        self.room.bytes = self.room.bytes.saturating_sub(weight.bytes);
        if weight.alone || self.room.transactions == 0 || self.room.changes == 0 || self.room.bytes == 0 {
            Admission::TakenLast
        } else {
            Admission::Taken
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests")]

    use proptest::prelude::*;

    use super::*;

    const LIMITS: GroupLimits = GroupLimits { transactions: 3, changes: 10, bytes: 100 };

    fn weight(changes: u64, bytes: u64) -> Weight {
        Weight { changes, bytes, alone: false }
    }

    /// The sizes of the groups that a log of these weights is cut into.
    fn cut(limits: GroupLimits, log: &[Weight]) -> Vec<Vec<Weight>> {
        let mut groups = Vec::new();
        let mut rest = log;
        while !rest.is_empty() {
            let mut grouping = Grouping::new(limits);
            let mut group = Vec::new();
            for weight in rest {
                let admission = grouping.offer(*weight);
                if admission != Admission::Refused {
                    group.push(*weight);
                }
                if admission != Admission::Taken {
                    break;
                }
            }
            rest = &rest[group.len()..];
            groups.push(group);
        }
        groups
    }

    #[test]
    fn a_group_ends_at_the_first_limit_that_is_reached() {
        assert_eq!(cut(LIMITS, &[weight(1, 1); 4]).first().unwrap().len(), 3);
        assert_eq!(cut(LIMITS, &[weight(5, 1); 4]).first().unwrap().len(), 2);
        assert_eq!(cut(LIMITS, &[weight(1, 60); 4]).first().unwrap().len(), 1);
    }

    #[test]
    fn a_transaction_larger_than_every_limit_goes_alone() {
        let groups = cut(LIMITS, &[weight(1, 1), weight(1000, 100_000), weight(1, 1)]);
        assert_eq!(groups.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1, 1]);
    }

    #[test]
    fn a_transaction_that_must_stand_alone_does() {
        let alone = Weight { alone: true, ..weight(1, 1) };
        let groups = cut(LIMITS, &[weight(1, 1), weight(1, 1), alone, weight(1, 1)]);
        assert_eq!(groups.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1, 1]);
    }

    proptest! {
        #[test]
        fn every_transaction_is_in_exactly_one_group_in_order_and_limits_hold(
            log in proptest::collection::vec((0_u64..20, 0_u64..200, proptest::bool::weighted(0.1)), 0..60),
        ) {
            let log: Vec<Weight> =
                log.into_iter().map(|(changes, bytes, alone)| Weight { changes, bytes, alone }).collect();
            let groups = cut(LIMITS, &log);
            prop_assert_eq!(groups.concat(), log);
            for group in groups.into_iter().filter(|group| group.len() > 1) {
                prop_assert!(group.len() <= LIMITS.transactions);
                prop_assert!(group.iter().map(|weight| weight.changes).sum::<u64>() <= LIMITS.changes);
                prop_assert!(group.iter().map(|weight| weight.bytes).sum::<u64>() <= LIMITS.bytes);
                prop_assert!(group.iter().all(|weight| !weight.alone));
            }
        }
    }
}
