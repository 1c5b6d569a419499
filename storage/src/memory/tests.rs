#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use super::{Keep, MemoryStore};
use crate::{Batch, Durability, Error, Family, Store};

fn put(store: &MemoryStore, key: &str, durability: Durability) -> Result<(), Error> {
    let mut batch = Batch::new();
    batch.put(Family::Events, key.as_bytes().to_vec(), b"value".to_vec());
    batch.put(Family::Audit, key.as_bytes().to_vec(), b"value".to_vec());
    store.write(batch, durability)
}

fn holds(store: &MemoryStore, key: &str) -> bool {
    let events = store.get(Family::Events, key.as_bytes()).unwrap().is_some();
    let audit = store.get(Family::Audit, key.as_bytes()).unwrap().is_some();
    assert_eq!(events, audit, "a batch is there as a whole or not at all");
    events
}

#[test]
fn a_crash_takes_what_was_not_synced() {
    let store = MemoryStore::new();
    put(&store, "a", Durability::Synced).unwrap();
    put(&store, "b", Durability::Buffered).unwrap();
    assert!(holds(&store, "b"));
    store.crash(Keep::Synced);
    assert!(holds(&store, "a"));
    assert!(!holds(&store, "b"));
}

#[test]
fn a_sync_covers_everything_written_before_it() {
    let store = MemoryStore::new();
    put(&store, "a", Durability::Buffered).unwrap();
    put(&store, "b", Durability::Synced).unwrap();
    assert_eq!(store.unsynced_bytes(), 0);
    store.crash(Keep::Synced);
    assert!(holds(&store, "a"));
    assert!(holds(&store, "b"));
}

#[test]
fn a_torn_batch_goes_as_a_whole_and_the_ones_before_it_stay() {
    let store = MemoryStore::new();
    put(&store, "a", Durability::Buffered).unwrap();
    let first = store.unsynced_bytes();
    put(&store, "b", Durability::Buffered).unwrap();
    store.crash(Keep::Bytes(first + 3));
    assert!(holds(&store, "a"));
    assert!(!holds(&store, "b"));
}

#[test]
fn a_crash_brings_back_what_lost_batches_replaced_and_deleted() {
    let store = MemoryStore::new();
    let mut batch = Batch::new();
    for key in [b"a", b"b", b"c"] {
        batch.put(Family::Log, key.to_vec(), b"old".to_vec());
    }
    store.write(batch, Durability::Synced).unwrap();
    let mut batch = Batch::new();
    batch.put(Family::Log, b"a".to_vec(), b"new".to_vec());
    batch.delete(Family::Log, b"b".to_vec());
    batch.delete_range(Family::Log, b"a".to_vec(), b"z".to_vec());
    store.write(batch, Durability::Buffered).unwrap();
    assert_eq!(store.get(Family::Log, b"a").unwrap(), None);
    store.crash(Keep::Synced);
    for key in [b"a", b"b", b"c"] {
        assert_eq!(store.get(Family::Log, key).unwrap().as_deref(), Some(b"old".as_slice()));
    }
}

#[test]
fn after_a_failed_sync_nothing_is_written_and_the_crash_decides_what_was() {
    for (keep, survives) in [(Keep::Synced, false), (Keep::Everything, true)] {
        let store = MemoryStore::new();
        store.fail_next_sync();
        assert!(matches!(put(&store, "a", Durability::Synced), Err(Error::WriteFailed(_))));
        assert!(matches!(put(&store, "b", Durability::Synced), Err(Error::WriteFailed(_))));
        store.crash(keep);
        assert_eq!(holds(&store, "a"), survives);
        assert!(!holds(&store, "b"));
        put(&store, "c", Durability::Synced).unwrap();
    }
}

#[test]
fn a_full_disk_refuses_writes_answers_reads_and_recovers() {
    let store = MemoryStore::new();
    put(&store, "a", Durability::Synced).unwrap();
    store.set_disk_full(true);
    assert!(matches!(put(&store, "b", Durability::Synced), Err(Error::DiskFull)));
    assert!(holds(&store, "a"));
    assert!(!holds(&store, "b"));
    store.set_disk_full(false);
    put(&store, "b", Durability::Synced).unwrap();
}

#[test]
fn a_disk_that_lies_about_syncs_loses_what_it_acknowledged() {
    let store = MemoryStore::new();
    store.ignore_syncs();
    put(&store, "a", Durability::Synced).unwrap();
    store.crash(Keep::Synced);
    assert!(!holds(&store, "a"));
}
