//! A store backup while the store is in use: hard links on one file system, copies elsewhere.

use std::path::{Path, PathBuf};

use rocksdb::checkpoint::Checkpoint;

use super::options::RocksSettings;
use super::store::RocksStore;
use crate::Error;
use crate::records::StoreIdentity;

/// A store backup that was made and opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backup {
    pub path: PathBuf,
    /// Bytes of its files; hard-linked ones take no room of their own until the store drops them.
    pub bytes: u64,
    pub identity: StoreIdentity,
}

impl RocksStore {
    /// Makes a store backup in `path`, which must not exist, and opens it once to know that it can be.
    /// Holds every write that was done before the call.
    ///
    /// # Errors
    /// `BackupFailed`; the store itself is unharmed.
    pub fn backup(&self, path: &Path) -> Result<Backup, Error> {
        let failed =
            |what: &dyn std::fmt::Display| Error::BackupFailed(format!("{}: {what}", path.display()));
        if path.exists() {
            return Err(failed(&"exists already"));
        }
        let checkpoint = Checkpoint::new(self.db()).map_err(|error| failed(&error))?;
        checkpoint.create_checkpoint(path).map_err(|error| failed(&error))?;
        let (_, identity) = RocksStore::open_read_only(path, RocksSettings { memory: 16 * 1024 * 1024 })
            .map_err(|error| failed(&error))?;
        let bytes = bytes_of(path).map_err(|error| failed(&error))?;
        Ok(Backup { path: path.to_owned(), bytes, identity })
    }
}

fn bytes_of(directory: &Path) -> std::io::Result<u64> {
    std::fs::read_dir(directory)?.map(|entry| Ok(entry?.metadata()?.len())).sum()
}
