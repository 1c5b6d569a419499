use std::ops::ControlFlow;
use std::path::Path;

use trellara_storage::families::{audit, default, flows};
use trellara_storage::records::{AuditRecord, FlowIdentity, FlowPart};
use trellara_storage::store::Order;
use trellara_storage::{Batch, Durability, Error, Family, FlowId, RocksStore, Store, Timestamp};

use super::{SETTINGS, file, flip, holds, image, open, record, try_open, write};

/// A store with a flow and 100 synced records, as a kill would leave it: all of it in the WAL.
fn killed_store() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let identity = FlowIdentity {
        name: "store-1:sales".parse().unwrap(),
        created: Timestamp::from_unix_micros(1),
        removed: None,
        spec_digest: String::new(),
    };
    let mut batch = Batch::new();
    flows::put(&mut batch, FlowId::new(1), FlowPart::Identity, &identity);
    store.write(batch, Durability::Synced).unwrap();
    for n in 0..100 {
        write(&store, n);
    }
    image(directory.path())
}

#[test]
fn a_torn_tail_opens_with_everything_before_it() {
    let killed = killed_store();
    let wal = file(killed.path(), "log");
    let length = wal.metadata().unwrap().len();
    std::fs::OpenOptions::new().write(true).open(&wal).unwrap().set_len(length - 100).unwrap();
    let store = open(killed.path());
    assert!((0..99).all(|n| holds(&store, n)));
    assert!(!holds(&store, 99));
}

#[test]
fn a_flipped_byte_in_the_wal_is_refused_and_named_and_nothing_is_written() {
    let killed = killed_store();
    let wal = file(killed.path(), "log");
    flip(&wal, &record(50).1);
    let damaged = std::fs::read(&wal).unwrap();
    for _ in 0..2 {
        let refused = try_open(killed.path()).unwrap_err();
        assert!(matches!(refused, Error::StoreDamaged { .. }), "{refused}");
        assert!(refused.to_string().contains("checksum"), "{refused}");
        assert_eq!(std::fs::read(&wal).unwrap(), damaged);
    }
}

#[test]
fn a_flipped_length_near_the_end_of_the_wal_is_not_taken_for_a_torn_tail() {
    let killed = killed_store();
    let wal = file(killed.path(), "log");
    let mut bytes = std::fs::read(&wal).unwrap();
    // The last block of 32 KiB begins with a record's header; RocksDB alone would open without the 20 and
    // more records that follow.
    let length = bytes.len() / 32_768 * 32_768 + 5;
    bytes[length] ^= 0x40;
    std::fs::write(&wal, bytes).unwrap();
    let refused = try_open(killed.path()).unwrap_err();
    assert!(matches!(refused, Error::StoreDamaged { .. }), "{refused}");
    assert!(refused.to_string().contains("length of the record at offset 32768 of"), "{refused}");
    RocksStore::recover(killed.path(), SETTINGS, &asked()).unwrap();
    assert!(holds(&open(killed.path()), 50));
}

#[test]
fn a_missing_wal_file_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path());
    let mut batch = Batch::new();
    batch.put(Family::Audit, b"early".to_vec(), b"only in the first file".to_vec());
    store.write(batch, Durability::Synced).unwrap();
    // Flushes of `log` switch to new files, while the first is still needed for `audit`.
    let needed = file(directory.path(), "log");
    let noise =
        |n: u32| (0..65_536u32).map(|i| (i.wrapping_mul(2_654_435_761).rotate_left(n) >> 24) as u8).collect();
    for n in 0u32..100 {
        let mut batch = Batch::new();
        batch.put(Family::Log, record(n).0, noise(n));
        store.write(batch, Durability::Synced).unwrap();
    }
    let killed = image(directory.path());
    let logs = std::fs::read_dir(killed.path()).unwrap().map(|entry| entry.unwrap().path());
    assert!(logs.filter(|path| path.extension().is_some_and(|found| found == "log")).count() >= 2);
    std::fs::remove_file(killed.path().join(needed.file_name().unwrap())).unwrap();
    let refused = try_open(killed.path()).unwrap_err();
    assert!(matches!(refused, Error::StoreDamaged { .. }), "{refused}");
}

#[test]
fn a_flipped_byte_in_a_data_file_is_refused_with_family_and_key() {
    let directory = tempfile::tempdir().unwrap();
    let backup = tempfile::tempdir().unwrap();
    let path = backup.path().join("backup");
    {
        let store = open(directory.path());
        for n in 0..100 {
            write(&store, n);
        }
        store.backup(&path).unwrap();
    }
    // Hard links share their content with the store: damage a copy.
    let copy = image(&path);
    damage_the_largest_data_files(copy.path());
    let (key, _) = record(0);
    let (store, _) = RocksStore::open_read_only(copy.path(), SETTINGS).unwrap();
    let refused = store.get(Family::Log, &key).unwrap_err();
    let Error::Corruption { family, flow, .. } = &refused else { panic!("{refused}") };
    assert_eq!((*family, *flow), (Family::Log, Some(FlowId::new(1))));
    let mut nothing = |_: &[u8], _: &[u8]| Ok(ControlFlow::Continue(()));
    let scanned = store.scan(Family::Log, &[], &[0xFF], Order::Ascending, &mut nothing);
    assert!(matches!(scanned, Err(Error::Corruption { .. })), "a scan does not just end early");
}

/// Flips a bit in the first block of the files of `log` and `dedup`.
fn damage_the_largest_data_files(directory: &Path) {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|found| found == "sst")).collect();
    files.sort_by_key(|path| std::cmp::Reverse(path.metadata().unwrap().len()));
    for file in &files[..2] {
        let mut bytes = std::fs::read(file).unwrap();
        bytes[60] ^= 0x01;
        std::fs::write(file, bytes).unwrap();
    }
}

fn asked() -> AuditRecord {
    AuditRecord {
        at: Timestamp::from_unix_micros(9),
        actor: "operator".to_owned(),
        origin: "tool".to_owned(),
        action: "store.recover".to_owned(),
        subject: "store".to_owned(),
        reason: Some("disk replaced".to_owned()),
        outcome: "done".to_owned(),
        previous: String::new(),
    }
}

#[test]
fn recovery_on_request_keeps_what_lies_before_the_damage_and_marks_every_flow() {
    let killed = killed_store();
    flip(&file(killed.path(), "log"), &record(50).1);
    let recovered = RocksStore::recover(killed.path(), SETTINGS, &asked()).unwrap();
    assert_eq!(recovered.marked, [FlowId::new(1)]);
    let store = open(killed.path());
    assert!((0..50).all(|n| holds(&store, n)));
    assert!((50..100).all(|n| !holds(&store, n)));
    let mark = default::mark(&store, FlowId::new(1)).unwrap().unwrap();
    assert_eq!(mark.reason, "disk replaced");
    assert_eq!(audit::verify(&store).unwrap(), 1);
    let mut batch = Batch::new();
    default::clear_mark(&mut batch, FlowId::new(1));
    store.write(batch, Durability::Synced).unwrap();
    assert_eq!(default::mark(&store, FlowId::new(1)).unwrap(), None);
}

#[test]
fn recovery_of_an_undamaged_store_loses_nothing() {
    let killed = killed_store();
    RocksStore::recover(killed.path(), SETTINGS, &asked()).unwrap();
    let store = open(killed.path());
    assert!((0..100).all(|n| holds(&store, n)));
}

#[test]
fn recovery_where_there_is_no_store_makes_none() {
    let directory = tempfile::tempdir().unwrap();
    assert!(RocksStore::recover(directory.path(), SETTINGS, &asked()).is_err());
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}
