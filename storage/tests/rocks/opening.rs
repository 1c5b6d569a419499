use std::collections::BTreeMap;
use std::path::Path;

use trellara_storage::families::default;
use trellara_storage::records::StoreIdentity;
use trellara_storage::{Batch, Durability, Error, Family, InstanceId, RocksStore, Store, Timestamp};

use super::{SETTINGS, holds, identity, open, try_open, write};

#[test]
fn a_new_store_keeps_its_first_identity() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("store");
    drop(open(&path));
    let other = StoreIdentity { instance: InstanceId::new([8; 16]), created: Timestamp::from_unix_micros(2) };
    let (store, found) = RocksStore::open(&path, SETTINGS, other).unwrap();
    assert_eq!(found, identity());
    assert_eq!(default::identity(&store).unwrap(), Some(identity()));
}

#[test]
fn a_second_engine_on_the_same_store_gets_a_clear_error() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    write(&store, 1);
    assert!(matches!(try_open(directory.path()), Err(Error::Locked { .. })));
    drop(store);
    assert!(holds(&open(directory.path()), 1));
}

#[test]
fn a_store_in_use_can_be_looked_at_without_its_lock() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    write(&store, 1);
    let (seen, found) = RocksStore::open_read_only(directory.path(), SETTINGS).unwrap();
    assert_eq!(found, identity());
    assert!(holds(&seen, 1));
    let refused = seen.write(Batch::new(), Durability::Synced);
    assert!(refused.is_err(), "a store opened to be looked at takes no writes");
    write(&store, 2);
}

fn contents(path: &Path) -> BTreeMap<std::ffi::OsString, Vec<u8>> {
    let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap());
    entries
        // RocksDB's own diagnostics are not part of the store.
        .filter(|entry| !entry.file_name().to_string_lossy().starts_with("LOG"))
        .map(|entry| (entry.file_name(), std::fs::read(entry.path()).unwrap()))
        .collect()
}

#[test]
fn an_unknown_format_version_is_refused_before_anything_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let mut batch = Batch::new();
    batch.put(Family::Default, b"format".to_vec(), 2u32.to_be_bytes().to_vec());
    store.write(batch, Durability::Synced).unwrap();
    drop(store);
    let before = contents(directory.path());
    assert!(matches!(try_open(directory.path()), Err(Error::FormatVersion { found: 2, supported: 1 })));
    assert_eq!(contents(directory.path()), before);
}

#[test]
fn records_without_an_identity_are_nobodys_store() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    write(&store, 1);
    let mut batch = Batch::new();
    batch.delete(Family::Default, b"format".to_vec());
    batch.delete(Family::Default, b"identity".to_vec());
    store.write(batch, Durability::Synced).unwrap();
    drop(store);
    assert!(matches!(try_open(directory.path()), Err(Error::Corruption { .. })));
}

#[test]
fn usage_names_every_family() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    for n in 0..10 {
        write(&store, n);
    }
    let usage = store.usage().unwrap();
    assert_eq!(usage.iter().map(|usage| usage.family).collect::<Vec<_>>(), Family::ALL);
    let log = usage.iter().find(|usage| usage.family == Family::Log).unwrap();
    assert_eq!(log.keys, 10);
    assert!(log.bytes >= 2000);
}
