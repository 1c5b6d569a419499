//! What each family takes on disk, as RocksDB estimates it.

use std::ffi::CStr;

use super::failure;
use super::store::RocksStore;
use crate::{Error, Family};

/// One family's share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FamilyUsage {
    pub family: Family,
    /// Estimated number of keys.
    pub keys: u64,
    /// Data and blob files, and what is still in memory.
    pub bytes: u64,
}

impl RocksStore {
    /// # Errors
    /// `ReadFailed`.
    pub fn usage(&self) -> Result<Vec<FamilyUsage>, Error> {
        Family::ALL.into_iter().map(|family| self.family_usage(family)).collect()
    }

    fn family_usage(&self, family: Family) -> Result<FamilyUsage, Error> {
        let handle = self.family(family).map_err(Error::ReadFailed)?;
        let value = |name: &CStr| {
            let value = self.db().property_int_value_cf(handle, name);
            value.map(|value| value.unwrap_or(0)).map_err(|error| failure::reading(&error, family, &[]))
        };
        let files = value(c"rocksdb.total-sst-files-size")? + value(c"rocksdb.total-blob-file-size")?;
        Ok(FamilyUsage {
            family,
            keys: value(c"rocksdb.estimate-num-keys")?,
            bytes: files + value(c"rocksdb.size-all-mem-tables")?,
        })
    }
}
