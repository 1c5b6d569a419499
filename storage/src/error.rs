//! Everything that can go wrong with the store, named by what the caller may still trust.

use crate::{Family, FlowId};

/// Errors of the store.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A stored value does not carry what was written. Never skipped, never guessed (I10).
    #[error("damaged record in {family} at key {key}: {what}")]
    Corruption { family: Family, flow: Option<FlowId>, key: String, what: String },
    /// The store cannot be opened without losing what it acknowledged. `store recover` or a store backup.
    #[error("the store at {path} is damaged: {what}")]
    StoreDamaged { path: String, what: String },
    /// The store was written by another version of this program.
    #[error("store format version {found} is not the supported {supported}")]
    FormatVersion { found: u32, supported: u32 },
    /// Another engine holds the store's lock.
    #[error("the store at {path} is in use by another engine")]
    Locked { path: String },
    /// No room left; writing goes on by itself once there is room again.
    #[error("no space left for the store")]
    DiskFull,
    /// A write or fsync failed in a way after which nothing may be assumed about the disk.
    #[error("write to the store failed: {0}")]
    WriteFailed(String),
    /// A read failed.
    #[error("read from the store failed: {0}")]
    ReadFailed(String),
    /// A store backup was not made; what it was made of is unharmed.
    #[error("store backup failed: {0}")]
    BackupFailed(String),
    /// The store is stopped or stopping.
    #[error("the store is closed")]
    Closed,
}
