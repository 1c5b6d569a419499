//! Opening: lock, format, damage, and only then the first write.

use std::fs::File;
use std::path::Path;

use rocksdb::{ColumnFamilyDescriptor, DB};
use rustix::fs::{FlockOperation, flock};

use super::failure;
use super::options::{RANGE_DELETED, RANGE_DELETIONS, Recovery, RocksSettings, StoreOptions};
use super::store::RocksStore;
use super::tail;
use crate::families::{damaged, default};
use crate::records::StoreIdentity;
use crate::store::Order;
use crate::{Batch, Durability, Error, Family, Store};

/// RocksDB's pointer to its manifest: present in every database, absent in an empty directory.
const CURRENT: &str = "CURRENT";

impl RocksStore {
    /// Opens the store in `path`, or makes it there with the given identity. Returns it with the identity
    /// that it has.
    ///
    /// # Errors
    /// `Locked`, `FormatVersion`, `Corruption` before anything is written; `DiskFull`, `ReadFailed`,
    /// `WriteFailed`.
    pub fn open(
        path: &Path,
        settings: RocksSettings,
        new: StoreIdentity,
    ) -> Result<(Self, StoreIdentity), Error> {
        open(path, settings, Recovery::Refuse, Some(new))
    }

    /// Opens what is there to be looked at. Takes no lock and writes nothing.
    ///
    /// # Errors
    /// `FormatVersion`, `Corruption`, `ReadFailed`.
    pub fn open_read_only(path: &Path, settings: RocksSettings) -> Result<(Self, StoreIdentity), Error> {
        let options = StoreOptions::new(settings, Recovery::Refuse);
        tail::check(path)?;
        identity_before_opening(path, &options)?;
        let db = DB::open_cf_descriptors_read_only(&options.database, path, options.families(), false)
            .map_err(|error| failure::opening(&error, path))?;
        let store = RocksStore::new(db, None);
        let identity = default::identity(&store)?.ok_or_else(|| not_a_store(path))?;
        Ok((store, identity))
    }
}

/// `new` is the identity that an empty directory gets; none where there must be a store already.
pub(super) fn open(
    path: &Path,
    settings: RocksSettings,
    recovery: Recovery,
    new: Option<StoreIdentity>,
) -> Result<(RocksStore, StoreIdentity), Error> {
    if new.is_some() {
        std::fs::create_dir_all(path).map_err(|error| cannot_use(path, &error))?;
    }
    let lock = lock(path)?;
    let mut options = StoreOptions::new(settings, recovery);
    if path.join(CURRENT).exists() {
        match recovery {
            Recovery::Refuse => tail::check(path)?,
            Recovery::CutAtDamage => {}
        }
        identity_before_opening(path, &options)?;
    } else if new.is_none() {
        return Err(not_a_store(path));
    }
    options.database.create_if_missing(true);
    options.database.create_missing_column_families(true);
    let db = DB::open_cf_descriptors(&options.database, path, options.families())
        .map_err(|error| failure::opening(&error, path))?;
    let store = RocksStore::new(db, Some(lock));
    for family in RANGE_DELETED {
        store.set_option(family, RANGE_DELETIONS)?;
    }
    let identity = match (default::identity(&store)?, new) {
        (Some(identity), _) => identity,
        (None, Some(identity)) => initialise(&store, identity)?,
        (None, None) => return Err(not_a_store(path)),
    };
    Ok((store, identity))
}

/// The directory itself is the lock: nothing has to be written to take it.
fn lock(path: &Path) -> Result<File, Error> {
    let directory = File::open(path).map_err(|error| cannot_use(path, &error))?;
    match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(directory),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(Error::Locked { path: path.display().to_string() }),
        Err(error) => Err(cannot_use(path, &error.into())),
    }
}

/// Reads format and identity through a read-only handle, which changes nothing on disk.
fn identity_before_opening(path: &Path, options: &StoreOptions) -> Result<(), Error> {
    let family = ColumnFamilyDescriptor::new(Family::Default.name(), options.family(Family::Default));
    let db = DB::open_cf_descriptors_read_only(&options.database, path, [family], false)
        .map_err(|error| failure::opening(&error, path))?;
    default::identity(&RocksStore::new(db, None)).map(|_| ())
}

/// A store without identity is one whose making was interrupted, so it must be empty.
fn initialise(store: &RocksStore, identity: StoreIdentity) -> Result<StoreIdentity, Error> {
    for family in Family::ALL {
        let mut found = None;
        store.scan(family, &[], &[0xFF; 32], Order::Ascending, &mut |key, _| {
            found = Some(key.to_vec());
            Ok(std::ops::ControlFlow::Break(()))
        })?;
        if let Some(key) = found {
            return Err(damaged(family, None, &key, &"the store holds records but no identity"));
        }
    }
    let mut batch = Batch::new();
    default::put_identity(&mut batch, &identity);
    store.write(batch, Durability::Synced)?;
    Ok(identity)
}

fn not_a_store(path: &Path) -> Error {
    Error::ReadFailed(format!("{} holds no store", path.display()))
}

fn cannot_use(path: &Path, error: &std::io::Error) -> Error {
    Error::ReadFailed(format!("{}: {error}", path.display()))
}
