//! What may leave a flow's log, decided without touching the store.
//!
//! Applied transactions stay for a time and up to a number of bytes, so that a target restored from a
//! backup can be followed again. What is not applied, or pinned, never leaves by age or size.

use std::collections::VecDeque;
use std::time::Duration;

use crate::records::LoggedBytes;
use crate::{Lsn, Timestamp};

/// Applied transactions are counted in buckets of at most so many, or so many bytes: what leaves the log
/// leaves in whole buckets.
const BUCKET_TRANSACTIONS: u64 = 1000;
const BUCKET_BYTES: u64 = 1024 * 1024;

/// How long, and how much of, applied transactions stay; the first limit that is passed counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetainApplied {
    pub time: Duration,
    pub bytes: u64,
}

/// Neighbouring transactions.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    last: Lsn,
    newest: Timestamp,
    logged: LoggedBytes,
}

/// The applied transactions that are still in the log, oldest first, as far as they were counted.
#[derive(Debug, Default)]
pub struct AppliedIndex {
    buckets: VecDeque<Bucket>,
    total: LoggedBytes,
}

impl AppliedIndex {
    /// Counts the next transaction in commit order.
    pub fn add(&mut self, commit_lsn: Lsn, received: Timestamp, bytes: u64) {
        let one = LoggedBytes { bytes, transactions: 1 };
        self.total = self.total.plus(one);
        match self.buckets.back_mut() {
            Some(bucket)
                if bucket.logged.transactions < BUCKET_TRANSACTIONS
                    && bucket.logged.bytes + bytes <= BUCKET_BYTES =>
            {
                bucket.last = commit_lsn;
                bucket.newest = bucket.newest.max(received);
                bucket.logged = bucket.logged.plus(one);
            }
            Some(_) | None => {
                self.buckets.push_back(Bucket { last: commit_lsn, newest: received, logged: one });
            }
        }
    }

    /// Applied bytes that the log still holds.
    pub fn total(&self) -> LoggedBytes {
        self.total
    }

    /// The commit LSN up to which, itself included, the log may be pruned; none when everything stays.
    /// `below` is the first position that must stay whatever its age: not applied, quarantined or pinned.
    pub fn prunable(&self, now: Timestamp, retain: RetainApplied, below: Lsn) -> Option<Lsn> {
        let mut left = self.total.bytes;
        let mut last = None;
        for bucket in &self.buckets {
            let old = u128::from(now.micros_since(bucket.newest)) > retain.time.as_micros();
            if bucket.last >= below || !(old || left > retain.bytes) {
                break;
            }
            left = left.saturating_sub(bucket.logged.bytes);
            last = Some(bucket.last);
        }
        last
    }

    /// Everything up to `last`, itself included, has left the log.
    pub fn pruned(&mut self, last: Lsn) {
        while let Some(bucket) = self.buckets.front()
            && bucket.last <= last
        {
            self.total = self.total.minus(bucket.logged);
            self.buckets.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOUR: u64 = 3_600_000_000;
    const RETAIN: RetainApplied = RetainApplied { time: Duration::from_secs(3600), bytes: 10 * BUCKET_BYTES };

    fn at(micros: u64) -> Timestamp {
        Timestamp::from_unix_micros(i64::try_from(micros).expect("small"))
    }

    fn index(entries: &[(u64, u64, u64)]) -> AppliedIndex {
        let mut index = AppliedIndex::default();
        for (lsn, received, bytes) in entries {
            index.add(Lsn::new(*lsn), at(*received), *bytes);
        }
        index
    }

    #[test]
    fn what_is_young_and_small_stays() {
        let index = index(&[(1, HOUR, BUCKET_BYTES), (2, HOUR, BUCKET_BYTES)]);
        assert_eq!(index.prunable(at(2 * HOUR), RETAIN, Lsn::MAX), None);
    }

    #[test]
    fn what_is_older_than_the_limit_goes() {
        let index = index(&[(1, 0, BUCKET_BYTES), (2, HOUR, BUCKET_BYTES)]);
        assert_eq!(index.prunable(at(HOUR + 1), RETAIN, Lsn::MAX), Some(Lsn::new(1)));
    }

    #[test]
    fn what_is_beyond_the_byte_limit_goes_oldest_first() {
        let entries: Vec<_> = (1..=12).map(|lsn| (lsn, HOUR, BUCKET_BYTES)).collect();
        let mut index = index(&entries);
        assert_eq!(index.prunable(at(HOUR), RETAIN, Lsn::MAX), Some(Lsn::new(2)));
        index.pruned(Lsn::new(2));
        assert_eq!(index.total().bytes, 10 * BUCKET_BYTES);
        assert_eq!(index.prunable(at(HOUR), RETAIN, Lsn::MAX), None);
    }

    #[test]
    fn what_is_not_applied_or_is_pinned_stays_whatever_its_age() {
        let index = index(&[(1, 0, BUCKET_BYTES), (5, 0, BUCKET_BYTES)]);
        assert_eq!(index.prunable(at(9 * HOUR), RETAIN, Lsn::new(5)), Some(Lsn::new(1)));
        assert_eq!(index.prunable(at(9 * HOUR), RETAIN, Lsn::new(1)), None);
    }

    proptest! {
        #[test]
        fn nothing_at_or_above_the_limit_ever_goes(
            entries in prop::collection::vec((1u64..50, 0u64..3 * HOUR, 0u64..3 * BUCKET_BYTES), 0..100),
            below in 0u64..3000, now in 0u64..5 * HOUR,
        ) {
            let mut lsn = 0;
            let mut index = AppliedIndex::default();
            for (step, received, bytes) in entries {
                lsn += step;
                index.add(Lsn::new(lsn), at(received), bytes);
            }
            if let Some(last) = index.prunable(at(now), RETAIN, Lsn::new(below)) {
                prop_assert!(last < Lsn::new(below));
                let before = index.total();
                index.pruned(last);
                prop_assert!(index.total().bytes <= before.bytes);
            }
        }
    }
}
