//! The store as everything above sees it: point reads, ordered scans, atomic batches.
//!
//! Two implementations, one conformance suite: RocksDB and the in-memory twin. One `Batch` is one
//! crash-consistent unit. Typed puts and reads live with their record (`log`, `families`), so that keys
//! are built in one place.

mod batch;

use std::ops::ControlFlow;

pub use batch::{Batch, Entry};

use crate::{Error, Family};

/// What a successful `write` promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// On disk when the call returns, with everything written before it.
    Synced,
    /// On disk with the next synced write; lost with a crash before it.
    Buffered,
}

/// Direction of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Ascending,
    Descending,
}

/// Ordered, atomic key-value storage by family.
pub trait Store: Send + Sync + 'static {
    /// # Errors
    /// `ReadFailed`; `Corruption` where the backend finds damage below the record.
    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, Error>;

    /// Visits keys in `[from, to)` in the given order until `visit` breaks.
    ///
    /// # Errors
    /// As `get`, and whatever `visit` returns.
    fn scan(
        &self,
        family: Family,
        from: &[u8],
        to: &[u8],
        order: Order,
        visit: &mut Visitor<'_>,
    ) -> Result<(), Error>;

    /// Applies the whole batch or nothing of it.
    ///
    /// # Errors
    /// `DiskFull` may be tried again; after `WriteFailed` nothing may be assumed and the process ends.
    fn apply(&self, batch: &Batch, durability: Durability) -> Result<(), Error>;

    /// As `apply`, for a batch that is not needed afterwards.
    ///
    /// # Errors
    /// As `apply`.
    fn write(&self, batch: Batch, durability: Durability) -> Result<(), Error> {
        self.apply(&batch, durability)
    }
}

/// Called with each key and value of a scan.
pub type Visitor<'a> = dyn FnMut(&[u8], &[u8]) -> Result<ControlFlow<()>, Error> + 'a;
