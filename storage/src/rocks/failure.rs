//! RocksDB's errors to ours. RocksDB tells a full disk by its text only.

use rocksdb::ErrorKind;

use crate::families::damaged;
use crate::{Error, Family, FlowId};

const NO_SPACE: &str = "No space left on device";
const LOCK_HELD: &str = "lock ";

/// A failed write. Damage found while writing is a failed write like any other: nothing may be assumed.
pub(super) fn writing(error: &rocksdb::Error) -> Error {
    let message = error.as_ref();
    if error.kind() == ErrorKind::IOError && message.contains(NO_SPACE) {
        return Error::DiskFull;
    }
    Error::WriteFailed(message.to_owned())
}

/// A failed read at or behind `key`.
pub(super) fn reading(error: &rocksdb::Error, family: Family, key: &[u8]) -> Error {
    if error.kind() == ErrorKind::Corruption {
        return damaged(family, flow_of(family, key), key, &error.as_ref());
    }
    Error::ReadFailed(error.as_ref().to_owned())
}

/// A failed open of the store at `path`.
pub(super) fn opening(error: &rocksdb::Error, path: &std::path::Path) -> Error {
    let message = error.as_ref();
    if error.kind() == ErrorKind::Corruption {
        return Error::StoreDamaged { path: path.display().to_string(), what: message.to_owned() };
    }
    if error.kind() == ErrorKind::IOError && message.contains(NO_SPACE) {
        return Error::DiskFull;
    }
    if error.kind() == ErrorKind::IOError && message.contains(LOCK_HELD) {
        return Error::Locked { path: path.display().to_string() };
    }
    Error::ReadFailed(message.to_owned())
}

fn flow_of(family: Family, key: &[u8]) -> Option<FlowId> {
    match family {
        Family::Flows
        | Family::Log
        | Family::Chunks
        | Family::Dedup
        | Family::Quarantine
        | Family::Relations
        | Family::Events => crate::codec::key::read_u32(key, 0).map(FlowId::new),
        Family::Default | Family::Audit => None,
    }
}
