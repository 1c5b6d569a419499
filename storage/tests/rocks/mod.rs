//! What only RocksDB can show: files, locks, damage, kills.

mod backup;
mod crash;
mod damage;
mod opening;
mod pruning;

use std::path::{Path, PathBuf};

use trellara_storage::records::StoreIdentity;
use trellara_storage::rocks::RocksSettings;
use trellara_storage::{Batch, Durability, Error, Family, InstanceId, RocksStore, Store, Timestamp};

pub(crate) const SETTINGS: RocksSettings = RocksSettings { memory: 32 * 1024 * 1024 };

pub(crate) fn identity() -> StoreIdentity {
    StoreIdentity { instance: InstanceId::new([7; 16]), created: Timestamp::from_unix_micros(1) }
}

pub(crate) fn try_open(path: &Path) -> Result<RocksStore, Error> {
    RocksStore::open(path, SETTINGS, identity()).map(|(store, _)| store)
}

pub(crate) fn open(path: &Path) -> RocksStore {
    try_open(path).unwrap()
}

/// Key and value of the n-th record of these tests.
pub(crate) fn record(n: u32) -> (Vec<u8>, Vec<u8>) {
    let mut value = vec![b'v'; 200];
    value[..4].copy_from_slice(&n.to_be_bytes());
    ([vec![0, 0, 0, 1], n.to_be_bytes().to_vec()].concat(), value)
}

pub(crate) fn write(store: &dyn Store, n: u32) {
    let (key, value) = record(n);
    let mut batch = Batch::new();
    batch.put(Family::Log, key.clone(), value.clone());
    batch.put(Family::Dedup, key, value);
    store.write(batch, Durability::Synced).unwrap();
}

/// Whether the record is there, in both families or in none.
pub(crate) fn holds(store: &dyn Store, n: u32) -> bool {
    let (key, value) = record(n);
    let log = store.get(Family::Log, &key).unwrap();
    let dedup = store.get(Family::Dedup, &key).unwrap();
    assert_eq!(log, dedup, "a batch is there as a whole or not at all");
    log.is_some_and(|found| found == value)
}

/// What the disk holds of a store in use at this moment: what a kill would leave.
pub(crate) fn image(from: &Path) -> tempfile::TempDir {
    let to = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.path().join(entry.file_name())).unwrap();
    }
    to
}

/// The largest file of this kind: the one that holds the records.
pub(crate) fn file(directory: &Path, extension: &str) -> PathBuf {
    std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|found| found == extension))
        .max_by_key(|path| path.metadata().unwrap().len())
        .unwrap()
}

/// Flips one bit of the first byte of `pattern` in the file.
pub(crate) fn flip(path: &Path, pattern: &[u8]) {
    let mut bytes = std::fs::read(path).unwrap();
    let at = bytes.windows(pattern.len()).position(|window| window == pattern).unwrap();
    bytes[at] ^= 0x01;
    std::fs::write(path, bytes).unwrap();
}
