//! What leaves a flow's log, and what stays whatever its age.

use std::ops::ControlFlow;
use std::time::Duration;

use trellara_storage::families::{dedup, events, flows, quarantine};
use trellara_storage::log::keeper::{Circumstances, Keeper, Pass, Retention};
use trellara_storage::log::locate::{Place, Standing, Wanted, locate};
use trellara_storage::log::prune;
use trellara_storage::log::retention::RetainApplied;
use trellara_storage::records::{
    EventRecord, FlowPart, Outcome, PruneRule, QuarantineRecord, QuarantineState,
};
use trellara_storage::store::Order;
use trellara_storage::testing::{StoredFlow, quarantined};
use trellara_storage::{Batch, Durability, Family, FlowId, Lsn, MemoryStore, Store, Timestamp, Xid};

const FLOW: FlowId = FlowId::new(1);
const HOUR: i64 = 3_600_000_000;
const RETENTION: Retention = Retention {
    applied: RetainApplied { time: Duration::from_secs(3600), bytes: u64::MAX },
    dedup: Duration::from_secs(7 * 86_400),
};

fn at(micros: i64) -> Circumstances {
    Circumstances { now: Timestamp::from_unix_micros(micros), restart_lsn: None, pinned_from: None }
}

fn pass(keeper: &mut Keeper, store: &dyn Store, now: Circumstances) -> Pass {
    let mut pass = keeper.pass(store, FLOW, RETENTION, now).unwrap().unwrap();
    store.write(std::mem::take(&mut pass.batch), Durability::Synced).unwrap();
    pass
}

fn count(store: &dyn Store, family: Family) -> usize {
    let mut count = 0;
    store
        .scan(family, &[], &[0xFF; 24], Order::Ascending, &mut |_, _| {
            count += 1;
            Ok(ControlFlow::Continue(()))
        })
        .unwrap();
    count
}

/// 10 old transactions of 2 MiB, each a bucket of its own, the third and the fourth in parts.
fn filled(store: &MemoryStore) -> StoredFlow<'_> {
    let mut flow = StoredFlow::new(store, FLOW);
    for n in 1..=10 {
        match n {
            3 | 4 => flow.capture_chunked(n * 1000, 8, 256 * 1024, 0),
            _ => flow.capture(n * 1000, 2 * 1024 * 1024, 0),
        }
    }
    flow
}

#[test]
fn applied_transactions_leave_with_their_parts_and_the_floor_says_so() {
    let store = MemoryStore::new();
    let flow = filled(&store);
    flow.applied(3000);
    let mut keeper = Keeper::new();
    let young = pass(&mut keeper, &store, at(HOUR));
    assert_eq!((young.floor, flow.logged().len()), (None, 10));
    let old = pass(&mut keeper, &store, at(HOUR + 1));
    let floor = old.floor.unwrap();
    assert_eq!(flow.logged(), (4..=10).map(|n| n * 1000).collect::<Vec<_>>());
    assert_eq!(count(&store, Family::Chunks), 8, "the parts of 3000 are gone, those of 4000 stay");
    assert_eq!(
        (floor.pruned_below, floor.rule, floor.pruned.transactions),
        (Lsn::new(3001), PruneRule::RetainApplied, 3)
    );
    assert_eq!(old.event.unwrap().kind, "log.pruned");
    let parts = flows::parts(&store, FLOW).unwrap().unwrap();
    assert_eq!(parts.used(), old.used);
    assert_eq!(old.unapplied, old.used, "nothing that is left is applied");
    assert_eq!(old.used.transactions, 7);
}

#[test]
fn pruning_takes_back_exactly_what_appending_counted() {
    let store = MemoryStore::new();
    let flow = filled(&store);
    flow.applied(10_000);
    let pass = pass(&mut Keeper::new(), &store, at(2 * HOUR));
    assert!(flow.logged().is_empty());
    assert_eq!(count(&store, Family::Chunks), 0);
    assert_eq!((pass.used.bytes, pass.used.transactions), (0, 0));
}

#[test]
fn a_new_process_counts_on_from_the_floor() {
    let store = MemoryStore::new();
    let flow = filled(&store);
    flow.applied(3000);
    pass(&mut Keeper::new(), &store, at(2 * HOUR));
    flow.applied(5000);
    let second = pass(&mut Keeper::new(), &store, at(2 * HOUR));
    assert_eq!(flow.logged().first(), Some(&6000));
    assert!(second.event.is_none(), "one event for one rule");
    assert_eq!(second.floor.unwrap().pruned.transactions, 5);
}

#[test]
fn quarantined_and_pinned_transactions_stay_whatever_their_age() {
    let store = MemoryStore::new();
    let flow = filled(&store);
    flow.applied(10_000);
    let mut batch = Batch::new();
    let open = quarantined(FLOW, Lsn::new(6000), QuarantineState::Open);
    quarantine::put(&mut batch, &open);
    store.write(batch, Durability::Synced).unwrap();
    let mut keeper = Keeper::new();
    let pinned = Circumstances { pinned_from: Some(Lsn::new(4000)), ..at(99 * HOUR) };
    pass(&mut keeper, &store, pinned);
    assert_eq!(flow.logged().first(), Some(&4000));
    pass(&mut keeper, &store, at(99 * HOUR));
    assert_eq!(flow.logged().first(), Some(&6000));
    let mut batch = Batch::new();
    quarantine::put(&mut batch, &QuarantineRecord { state: QuarantineState::Replayed, ..open });
    store.write(batch, Durability::Synced).unwrap();
    pass(&mut keeper, &store, at(99 * HOUR));
    assert!(flow.logged().is_empty());
}

#[test]
fn a_target_that_went_back_keeps_what_it_needs_again() {
    let store = MemoryStore::new();
    let flow = filled(&store);
    flow.applied(8000);
    let mut keeper = Keeper::new();
    pass(&mut keeper, &store, at(0));
    flow.applied(2000);
    pass(&mut keeper, &store, at(99 * HOUR));
    assert_eq!(flow.logged().first(), Some(&3000));
}

#[test]
fn the_dedup_index_outlives_the_log_down_to_the_restart_position_and_for_its_time() {
    let store = MemoryStore::new();
    let flow = filled(&store);
    flow.applied(5000);
    let mut keeper = Keeper::new();
    let week = 8 * 24 * HOUR;
    pass(&mut keeper, &store, at(week));
    assert_eq!(count(&store, Family::Dedup), 10, "an unknown restart position keeps everything");
    let young = Circumstances { restart_lsn: Some(Lsn::new(9000)), ..at(24 * HOUR) };
    pass(&mut keeper, &store, young);
    assert_eq!(count(&store, Family::Dedup), 10);
    let restart = Circumstances { restart_lsn: Some(Lsn::new(3000)), ..at(week) };
    pass(&mut keeper, &store, restart);
    assert_eq!(count(&store, Family::Dedup), 8, "1000 and 2000 lie before the restart position");
    let ahead = Circumstances { restart_lsn: Some(Lsn::new(9000)), ..at(week) };
    pass(&mut keeper, &store, ahead);
    assert_eq!(count(&store, Family::Dedup), 5, "what the log holds stays in the index");
    assert!(dedup::get(&store, FLOW, flow.incarnation, Lsn::new(6000)).unwrap().is_some());
}

#[test]
fn the_newest_ten_thousand_events_stay() {
    let store = MemoryStore::new();
    let _flow = filled(&store);
    let event = EventRecord {
        at: Timestamp::from_unix_micros(1),
        kind: "capture.connected".to_owned(),
        from: "connecting".to_owned(),
        to: "capturing".to_owned(),
        cause: "the stream is open".to_owned(),
        code: None,
        evidence: None,
    };
    let mut batch = Batch::new();
    for sequence in 1..=10_050 {
        events::put(&mut batch, FLOW, sequence, &event);
    }
    store.write(batch, Durability::Synced).unwrap();
    pass(&mut Keeper::new(), &store, at(0));
    assert_eq!(count(&store, Family::Events), 10_000);
    assert_eq!(events::newest(&store, FLOW, 1).unwrap()[0].0, 10_050);
}

#[test]
fn a_long_pruning_goes_by_range_and_leaves_the_same() {
    let store = MemoryStore::new();
    let mut flow = StoredFlow::new(&store, FLOW);
    for n in 1..=12_000 {
        flow.capture(n * 100, 10, 0);
    }
    flow.applied(1_100_000);
    pass(&mut Keeper::new(), &store, at(2 * HOUR));
    assert_eq!(flow.logged().first(), Some(&1_100_100));
    assert_eq!(flow.logged().len(), 1000);
}

#[test]
fn a_removed_flow_leaves_its_tombstone_its_evidence_and_no_one_elses() {
    let store = MemoryStore::new();
    filled(&store).applied(3000);
    let mut other = StoredFlow::new(&store, FlowId::new(2));
    other.capture(1000, 10, 0);
    let mut batch = Batch::new();
    quarantine::put(&mut batch, &quarantined(FLOW, Lsn::new(4000), QuarantineState::Open));
    prune::remove_flow(&mut batch, &store, FLOW, Timestamp::from_unix_micros(9)).unwrap();
    store.write(batch, Durability::Synced).unwrap();
    let parts = flows::parts(&store, FLOW).unwrap().unwrap();
    assert_eq!(parts.identity.removed, Some(Timestamp::from_unix_micros(9)));
    assert_eq!((parts.lineage, parts.floor.unwrap().rule), (None, PruneRule::FlowRemoved));
    assert_eq!(quarantine::of_flow(&store, FLOW).unwrap().len(), 1);
    assert_eq!(other.logged(), [1000]);
    assert_eq!((count(&store, Family::Log), count(&store, Family::Chunks)), (1, 0));
    assert_eq!(flows::next_id(&store).unwrap(), FlowId::new(3));
}

fn places(store: &dyn Store, wanted: Wanted) -> Vec<(Place, Option<Standing>)> {
    let found = locate(store, FLOW, wanted).unwrap().unwrap().found;
    found.into_iter().map(|located| (located.place, located.standing)).collect()
}

fn one(store: &dyn Store, lsn: u64) -> (Place, Option<Standing>) {
    places(store, Wanted::Lsn(Lsn::new(lsn))).remove(0)
}

#[test]
fn locate_tells_in_the_log_pruned_damaged_and_never_received_apart() {
    let store = MemoryStore::new();
    let flow = filled(&store);
    flow.applied(2000);
    pass(&mut Keeper::new(), &store, at(2 * HOUR));
    let mut batch = Batch::new();
    quarantine::put(&mut batch, &quarantined(FLOW, Lsn::new(3000), QuarantineState::Open));
    let decided = dedup::get(&store, FLOW, flow.incarnation, Lsn::new(5000)).unwrap().unwrap();
    let decided = trellara_storage::records::DedupRecord { outcome: Some(Outcome::Discarded), ..decided };
    dedup::put(&mut batch, FLOW, flow.incarnation, Lsn::new(5000), &decided);
    let damaged = trellara_storage::families::log::key(FLOW, flow.incarnation, Lsn::new(7000));
    batch.put(Family::Log, damaged, b"not a record".to_vec());
    store.write(batch, Durability::Synced).unwrap();

    let (place, standing) = one(&store, 1000);
    assert!(matches!(place, Place::Pruned { floor, .. } if floor.rule == PruneRule::RetainApplied));
    assert_eq!(standing, Some(Standing::Applied));
    let (place, standing) = one(&store, 3000);
    assert!(matches!(place, Place::InLog { parts: 8, .. }), "{place:?}");
    assert_eq!(standing, Some(Standing::Quarantined(QuarantineState::Open)));
    let (place, standing) = one(&store, 3500);
    assert!(
        matches!(place, Place::InLog { transaction, .. } if transaction.commit_lsn == Lsn::new(4000)),
        "a position means the first transaction behind it"
    );
    assert_eq!(standing, Some(Standing::Waiting));
    assert_eq!(one(&store, 5000).1, Some(Standing::Decided(Outcome::Discarded)));
    assert!(matches!(one(&store, 7000).0, Place::Damaged { commit_lsn, .. } if commit_lsn == Lsn::new(7000)));
    let (place, standing) = one(&store, 20_000);
    assert_eq!((place, standing), (Place::NotReceived { position: Lsn::new(10_048) }, None));
}

#[test]
fn locate_names_the_part_of_a_large_transaction_that_is_missing() {
    let store = MemoryStore::new();
    let _flow = filled(&store);
    let mut keys = Vec::new();
    store
        .scan(Family::Chunks, &[], &[0xFF; 24], Order::Ascending, &mut |key, _| {
            keys.push(key.to_vec());
            Ok(ControlFlow::Continue(()))
        })
        .unwrap();
    let mut batch = Batch::new();
    batch.delete(Family::Chunks, keys[5].clone());
    store.write(batch, Durability::Synced).unwrap();
    assert!(matches!(one(&store, 4000).0, Place::InLog { parts: 8, .. }));
    let (place, _) = one(&store, 3000);
    assert!(matches!(place, Place::PartDamaged { part: 5, .. }), "{place:?}");
}

#[test]
fn locate_finds_by_xid_and_by_time_and_says_what_can_be_replayed() {
    let store = MemoryStore::new();
    let flow = filled(&store);
    assert_eq!(places(&store, Wanted::Xid(Xid::new(3000))).len(), 1);
    assert_eq!(places(&store, Wanted::Xid(Xid::new(3001))).len(), 0);
    let early = places(&store, Wanted::At(Timestamp::from_unix_micros(5)));
    assert!(matches!(&early[..], [(Place::InLog { transaction, .. }, _)]
        if transaction.commit_lsn == Lsn::new(1000)));
    flow.applied(2000);
    pass(&mut Keeper::new(), &store, at(2 * HOUR));
    let location = locate(&store, FLOW, Wanted::Lsn(Lsn::new(5000))).unwrap().unwrap();
    assert_eq!((location.first, location.last), (Some(Lsn::new(3000)), Some(Lsn::new(10_000))));
    assert!(!location.reaches(Lsn::new(2000)), "replay from there misses what was pruned");
    assert!(location.reaches(Lsn::new(2001)));
    assert!(location.reaches(Lsn::new(10_048)));
    assert!(!location.reaches(Lsn::new(10_049)), "that was never received");
    assert!(flows::get::<trellara_storage::Progress>(&store, FLOW, FlowPart::Durable).unwrap().is_some());
}
