//! What every store does alike. One case is one promise, named by its function; each gets an empty store.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::ops::ControlFlow;

use crate::families::{audit, chunks, flows, log};
use crate::records::{AuditRecord, ChangeBlock, FlowIdentity, FlowPart};
use crate::store::Order;
use crate::{
    Batch, CaptureSession, Durability, Error, Family, FlowId, Incarnation, Lsn, Store, Timestamp, Xid,
};

/// Checks one promise.
pub type Case = fn(&dyn Store);

pub const CASES: &[Case] = &[
    nothing_is_there_before_it_is_written,
    a_batch_applies_whole_and_in_order,
    families_do_not_see_each_other,
    a_scan_visits_a_half_open_range_in_byte_order,
    a_scan_ends_when_its_visitor_says_so,
    a_scan_does_not_see_later_writes,
    a_range_deletion_is_half_open,
    the_log_is_read_in_commit_order,
    damage_takes_its_place_in_the_order,
    a_part_is_the_one_its_manifest_pins,
    flow_numbers_are_not_used_again,
    the_audit_trail_is_a_chain,
];

fn put(store: &dyn Store, family: Family, pairs: &[(&[u8], &[u8])]) {
    let mut batch = Batch::new();
    for (key, value) in pairs {
        batch.put(family, key.to_vec(), value.to_vec());
    }
    store.write(batch, Durability::Synced).unwrap();
}

fn keys(store: &dyn Store, from: &[u8], to: &[u8], order: Order) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    let mut visit = |key: &[u8], _: &[u8]| {
        keys.push(key.to_vec());
        Ok(ControlFlow::Continue(()))
    };
    store.scan(Family::Events, from, to, order, &mut visit).unwrap();
    keys
}

fn nothing_is_there_before_it_is_written(store: &dyn Store) {
    for family in Family::ALL {
        assert_eq!(store.get(family, b"key").unwrap(), None);
        assert!(keys(store, &[], &[0xFF; 8], Order::Ascending).is_empty());
    }
}

fn a_batch_applies_whole_and_in_order(store: &dyn Store) {
    let mut batch = Batch::new();
    batch.put(Family::Events, b"a".to_vec(), b"1".to_vec());
    batch.put(Family::Events, b"a".to_vec(), b"2".to_vec());
    batch.put(Family::Events, b"b".to_vec(), b"1".to_vec());
    batch.delete(Family::Events, b"b".to_vec());
    batch.put(Family::Events, b"c".to_vec(), b"1".to_vec());
    batch.delete_range(Family::Events, b"c".to_vec(), b"d".to_vec());
    batch.put(Family::Events, b"empty".to_vec(), Vec::new());
    store.write(batch, Durability::Buffered).unwrap();
    assert_eq!(store.get(Family::Events, b"a").unwrap().unwrap(), b"2");
    assert_eq!(store.get(Family::Events, b"b").unwrap(), None);
    assert_eq!(store.get(Family::Events, b"c").unwrap(), None);
    assert_eq!(store.get(Family::Events, b"empty").unwrap().unwrap(), b"");
}

fn families_do_not_see_each_other(store: &dyn Store) {
    for family in Family::ALL {
        put(store, family, &[(b"same", family.name().as_bytes())]);
    }
    for family in Family::ALL {
        assert_eq!(store.get(family, b"same").unwrap().unwrap(), family.name().as_bytes());
    }
}

fn a_scan_visits_a_half_open_range_in_byte_order(store: &dyn Store) {
    let all: [&[u8]; 5] = [&[0], &[1], &[1, 0], &[0x7F], &[0x80]];
    put(store, Family::Events, &all.map(|key| (key, b"v".as_slice())));
    assert_eq!(keys(store, &[1], &[0x80], Order::Ascending), all[1..4]);
    let mut backwards = all[1..4].to_vec();
    backwards.reverse();
    assert_eq!(keys(store, &[1], &[0x80], Order::Descending), backwards);
    for (from, to) in [(5u8, 5u8), (9, 3)] {
        assert!(keys(store, &[from], &[to], Order::Ascending).is_empty());
        assert!(keys(store, &[from], &[to], Order::Descending).is_empty());
    }
}

fn a_scan_ends_when_its_visitor_says_so(store: &dyn Store) {
    put(store, Family::Events, &[(b"a", b"v"), (b"b", b"v")]);
    let mut seen = 0;
    let mut once = |_: &[u8], _: &[u8]| {
        seen += 1;
        Ok(ControlFlow::Break(()))
    };
    store.scan(Family::Events, b"a", b"z", Order::Ascending, &mut once).unwrap();
    assert_eq!(seen, 1);
    let mut refuse = |_: &[u8], _: &[u8]| Err(Error::Closed);
    let refused = store.scan(Family::Events, b"a", b"z", Order::Descending, &mut refuse);
    assert!(matches!(refused, Err(Error::Closed)));
}

fn a_scan_does_not_see_later_writes(store: &dyn Store) {
    put(store, Family::Events, &[(b"a", b"v"), (b"c", b"v")]);
    let mut seen = Vec::new();
    let mut visit = |key: &[u8], _: &[u8]| {
        put(store, Family::Events, &[(b"b", b"v")]);
        seen.push(key.to_vec());
        Ok(ControlFlow::Continue(()))
    };
    store.scan(Family::Events, b"a", b"z", Order::Ascending, &mut visit).unwrap();
    assert_eq!(seen, [b"a", b"c"]);
    assert_eq!(keys(store, b"a", b"z", Order::Ascending).len(), 3);
}

fn a_range_deletion_is_half_open(store: &dyn Store) {
    put(store, Family::Events, &[(b"a", b"v"), (b"b", b"v"), (b"c", b"v")]);
    let mut batch = Batch::new();
    batch.delete_range(Family::Events, b"a".to_vec(), b"c".to_vec());
    batch.delete_range(Family::Events, b"z".to_vec(), b"a".to_vec());
    store.write(batch, Durability::Synced).unwrap();
    assert_eq!(keys(store, b"a", b"z", Order::Ascending), [b"c"]);
}

const FLOW: FlowId = FlowId::new(7);

/// Commit LSNs that differ in their high and low halves, out of order.
const COMMITS: [u64; 4] = [0x2_0000_0000, 0x1_0000_0000, 0xFF, 0x1_0000_0001];

fn log_of(store: &dyn Store, from: Lsn) -> Vec<(Lsn, bool)> {
    let mut found = Vec::new();
    log::read_from(store, FLOW, Incarnation::FIRST, from, &mut |lsn, transaction| {
        found.push((lsn, transaction.is_ok()));
        Ok(ControlFlow::Continue(()))
    })
    .unwrap();
    found
}

fn fill_log(store: &dyn Store) {
    let mut batch = Batch::new();
    for commit in COMMITS {
        log::put(&mut batch, FLOW, Incarnation::FIRST, &super::inline(Lsn::new(commit), 2, 10));
    }
    log::put(&mut batch, FLOW, Incarnation::FIRST.next(), &super::inline(Lsn::new(5), 1, 1));
    log::put(&mut batch, FlowId::new(8), Incarnation::FIRST, &super::inline(Lsn::new(5), 1, 1));
    store.write(batch, Durability::Synced).unwrap();
}

fn the_log_is_read_in_commit_order(store: &dyn Store) {
    fill_log(store);
    let mut sorted = COMMITS.map(|commit| (Lsn::new(commit), true));
    sorted.sort();
    assert_eq!(log_of(store, Lsn::ZERO), sorted);
    assert_eq!(log_of(store, Lsn::new(0x1_0000_0001)), sorted[2..]);
    let one = log::get(store, FLOW, Incarnation::FIRST, Lsn::new(0xFF)).unwrap().unwrap();
    assert_eq!(one.record().header.changes.to_native(), 2);
    assert_eq!(one.end_lsn(), Lsn::new(0xFF + 48));
}

fn damage_takes_its_place_in_the_order(store: &dyn Store) {
    fill_log(store);
    let key = log::key(FLOW, Incarnation::FIRST, Lsn::new(0xFF));
    let value = store.get(Family::Log, &key).unwrap().unwrap();
    for at in [0, 5, 9, 20, 33, value.len() - 1] {
        let mut flipped = value.clone();
        flipped[at] ^= 0x10;
        put(store, Family::Log, &[(&key, &flipped)]);
        let found = log_of(store, Lsn::ZERO);
        assert_eq!(found[0], (Lsn::new(0xFF), false), "a flipped byte at {at} is noticed");
        assert!(found[1..].iter().all(|(_, whole)| *whole));
        let refused = log::get(store, FLOW, Incarnation::FIRST, Lsn::new(0xFF)).unwrap_err();
        assert!(refused.to_string().contains("log at key 0000000700000001"), "{refused}");
    }
}

fn a_part_is_the_one_its_manifest_pins(store: &dyn Store) {
    let key = |n| chunks::PartKey {
        flow: FLOW,
        incarnation: Incarnation::FIRST,
        session: CaptureSession::new(1),
        xid: Xid::new(9),
        n,
    };
    let block = |byte| ChangeBlock { heads: Vec::new(), body: vec![byte; 100] };
    let mut batch = Batch::new();
    let pinned = chunks::put(&mut batch, key(0), &block(1));
    let other = chunks::put(&mut batch, key(1), &block(2));
    store.write(batch, Durability::Synced).unwrap();
    assert_eq!(chunks::get(store, key(0), &pinned).unwrap().block().body.len(), 100);
    for (n, pinned) in [(0, &other), (2, &pinned)] {
        assert!(matches!(chunks::get(store, key(n), pinned), Err(Error::Corruption { .. })));
    }
}

fn flow_numbers_are_not_used_again(store: &dyn Store) {
    for (n, name) in ["a:sales", "b:sales", "c:sales"].iter().enumerate() {
        let id = flows::next_id(store).unwrap();
        assert_eq!(id, FlowId::new(u32::try_from(n).unwrap() + 1));
        let removed = (n == 2).then_some(Timestamp::from_unix_micros(5));
        let identity = FlowIdentity {
            name: name.parse().unwrap(),
            created: Timestamp::from_unix_micros(1),
            removed,
            spec_digest: String::new(),
        };
        let mut batch = Batch::new();
        flows::put(&mut batch, id, FlowPart::Identity, &identity);
        store.write(batch, Durability::Synced).unwrap();
    }
    put(store, Family::Flows, &[(&flows::key(FlowId::new(2), FlowPart::Identity), b"damaged")]);
    let all = flows::all(store).unwrap();
    assert_eq!(
        all.iter().map(|(id, parts)| (id.get(), parts.is_ok())).collect::<Vec<_>>(),
        [(1, true), (2, false), (3, true)]
    );
    assert_eq!(flows::next_id(store).unwrap(), FlowId::new(4), "the last one left a tombstone");
}

fn the_audit_trail_is_a_chain(store: &dyn Store) {
    let record = |subject: &str| AuditRecord {
        at: Timestamp::from_unix_micros(1),
        actor: "operator".to_owned(),
        origin: "socket".to_owned(),
        action: "flow.pause".to_owned(),
        subject: subject.to_owned(),
        reason: None,
        outcome: "done".to_owned(),
        previous: String::new(),
    };
    for n in 1..=3 {
        let mut batch = Batch::new();
        assert_eq!(audit::append(store, &mut batch, &record(&format!("flow {n}"))).unwrap(), n);
        store.write(batch, Durability::Synced).unwrap();
    }
    assert_eq!(audit::verify(store).unwrap(), 3);
    let (_, second) = audit::newest(store, 2).unwrap().remove(1);
    let mut batch = Batch::new();
    audit::put(&mut batch, 2, &AuditRecord { outcome: "refused".to_owned(), ..second });
    store.write(batch, Durability::Synced).unwrap();
    assert!(matches!(audit::verify(store), Err(Error::Corruption { .. })), "a rewritten record is noticed");
}
