//! Pruning again and again must not slow reads down: many small range deletions would.

use std::time::{Duration, Instant};

use trellara_storage::log::keeper::{Circumstances, Keeper, Retention};
use trellara_storage::log::retention::RetainApplied;
use trellara_storage::testing::StoredFlow;
use trellara_storage::{Durability, FlowId, RocksStore, Store, Timestamp};

use super::open;

const FLOWS: u32 = 200;
const ROUNDS: u64 = 20;
const RETENTION: Retention = Retention {
    applied: RetainApplied { time: Duration::ZERO, bytes: u64::MAX },
    dedup: Duration::from_secs(3600),
};

/// The shortest of a few tries: the machine may be busy with something else.
fn read_all(flows: &[StoredFlow<'_>]) -> Duration {
    let once = || {
        let start = Instant::now();
        for flow in flows {
            assert_eq!(flow.logged().len(), 1);
        }
        start.elapsed()
    };
    (0..5).map(|_| once()).min().unwrap()
}

fn prune(store: &RocksStore, keeper: &mut Keeper, flow: FlowId) {
    let now = Timestamp::from_unix_micros(1);
    let now = Circumstances { now, restart_lsn: None, pinned_from: None };
    let pass = keeper.pass(store, flow, RETENTION, now).unwrap().unwrap();
    assert!(!pass.batch.is_empty());
    store.write(pass.batch, Durability::Buffered).unwrap();
}

#[test]
fn reads_stay_as_fast_when_every_flow_was_pruned_twenty_times() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let mut flows: Vec<_> = (1..=FLOWS).map(|n| StoredFlow::new(&store, FlowId::new(n))).collect();
    for flow in &mut flows {
        flow.capture(1000, 100, 0);
    }
    let fresh = read_all(&flows);
    let mut keeper = Keeper::new();
    for round in 1..=ROUNDS {
        for flow in &mut flows {
            flow.applied(round * 1000);
            flow.capture((round + 1) * 1000, 100, 0);
            prune(&store, &mut keeper, flow.flow);
        }
    }
    let pruned = read_all(&flows);
    // Range deletions made this a ratio of several hundred.
    assert!(pruned < fresh * 25 + Duration::from_millis(20), "{pruned:?} against {fresh:?}");
}
