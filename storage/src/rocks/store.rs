//! `RocksStore`: the store trait on an open database.

use std::fmt;
use std::fs::File;
use std::ops::ControlFlow;

use rocksdb::{ColumnFamily, DB, Range, ReadOptions, WriteBatch, WriteOptions};

use super::failure;
use crate::store::{Entry, Order, Visitor};
use crate::{Batch, Durability, Error, Family, Store};

/// Deleted ranges above this size give their files back at once instead of at some compaction.
const DROP_FILES_ABOVE: u64 = 256 * 1024 * 1024;

/// An open database and the lock that keeps others out.
pub struct RocksStore {
    db: DB,
    _lock: Option<File>,
}

impl fmt::Debug for RocksStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RocksStore").field("path", &self.db.path()).finish_non_exhaustive()
    }
}

impl RocksStore {
    pub(super) fn new(db: DB, lock: Option<File>) -> Self {
        Self { db, _lock: lock }
    }

    pub(super) fn db(&self) -> &DB {
        &self.db
    }

    pub(super) fn set_option(&self, family: Family, option: (&str, &str)) -> Result<(), Error> {
        let family = self.family(family).map_err(Error::WriteFailed)?;
        self.db.set_options_cf(family, &[option]).map_err(|error| failure::writing(&error))
    }

    /// A read-only handle of `default` alone has no other family.
    pub(super) fn family(&self, family: Family) -> Result<&ColumnFamily, String> {
        self.db.cf_handle(family.name()).ok_or_else(|| format!("family {family} is not open"))
    }

    fn add(&self, batch: &mut WriteBatch, entry: &Entry) -> Result<(), String> {
        match entry {
            Entry::Put { family, key, value } => batch.put_cf(self.family(*family)?, key, value),
            Entry::Delete { family, key } => batch.delete_cf(self.family(*family)?, key),
            Entry::DeleteRange { family, from, to } if from < to => {
                batch.delete_range_cf(self.family(*family)?, from, to);
            }
            Entry::DeleteRange { .. } => {}
        }
        Ok(())
    }

    /// After the deletion is durable: whole files inside a large deleted range are dropped.
    fn drop_files(&self, batch: &Batch) -> Result<(), Error> {
        for entry in batch.entries() {
            let Entry::DeleteRange { family, from, to } = entry else { continue };
            let handle = self.family(*family).map_err(Error::WriteFailed)?;
            let sizes = self.db.get_approximate_sizes_cf(handle, &[Range::new(from, to)]);
            if sizes.iter().sum::<u64>() > DROP_FILES_ABOVE {
                let dropped = self.db.delete_file_in_range_cf(handle, from, to);
                dropped.map_err(|error| failure::writing(&error))?;
            }
        }
        Ok(())
    }
}

impl Store for RocksStore {
    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let handle = self.family(family).map_err(Error::ReadFailed)?;
        self.db.get_cf(handle, key).map_err(|error| failure::reading(&error, family, key))
    }

    fn scan(
        &self,
        family: Family,
        from: &[u8],
        to: &[u8],
        order: Order,
        visit: &mut Visitor<'_>,
    ) -> Result<(), Error> {
        if from >= to {
            return Ok(());
        }
        let mut options = ReadOptions::default();
        options.set_iterate_lower_bound(from);
        options.set_iterate_upper_bound(to);
        let handle = self.family(family).map_err(Error::ReadFailed)?;
        let mut at = self.db.raw_iterator_cf_opt(handle, options);
        let mut last = from.to_vec();
        match order {
            Order::Ascending => at.seek_to_first(),
            Order::Descending => at.seek_to_last(),
        }
        while let Some((key, value)) = at.item() {
            last.clear();
            last.extend_from_slice(key);
            if let ControlFlow::Break(()) = visit(key, value)? {
                return Ok(());
            }
            match order {
                Order::Ascending => at.next(),
                Order::Descending => at.prev(),
            }
        }
        // The iterator stops at the end and at damage alike; its status tells which.
        at.status().map_err(|error| failure::reading(&error, family, &last))
    }

    fn apply(&self, batch: &Batch, durability: Durability) -> Result<(), Error> {
        let mut write = WriteBatch::default();
        for entry in batch.entries() {
            self.add(&mut write, entry).map_err(Error::WriteFailed)?;
        }
        let mut options = WriteOptions::default();
        options.set_sync(durability == Durability::Synced);
        self.db.write_opt(write, &options).map_err(|error| failure::writing(&error))?;
        match durability {
            Durability::Synced => self.drop_files(batch),
            Durability::Buffered => Ok(()),
        }
    }
}
