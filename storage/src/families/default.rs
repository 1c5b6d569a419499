//! The store itself: format version, identity, recovery marks. Keys are names.
//!
//! The format version stands outside every envelope, as four bytes, so that every version of this program
//! can read it and refuse before it writes.

use crate::codec::key::Key;
use crate::codec::value;
use crate::records::{RecoveryMark, StoreIdentity};
use crate::{Batch, Error, Family, FlowId, Store};

/// The format that this program reads and writes.
pub const FORMAT: u32 = 1;

const FORMAT_KEY: &[u8] = b"format";
const IDENTITY_KEY: &[u8] = b"identity";
const RECOVERED_KEY: &[u8] = b"recovered/";

/// Makes an empty store this program's.
pub fn put_identity(batch: &mut Batch, identity: &StoreIdentity) {
    batch.put(Family::Default, FORMAT_KEY.to_vec(), FORMAT.to_be_bytes().to_vec());
    batch.put(Family::Default, IDENTITY_KEY.to_vec(), value::seal_json(identity));
}

/// None for a store that nobody has written yet.
///
/// # Errors
/// `FormatVersion`, `Corruption`, `ReadFailed`.
pub fn identity(store: &dyn Store) -> Result<Option<StoreIdentity>, Error> {
    let Some(format) = store.get(Family::Default, FORMAT_KEY)? else { return Ok(None) };
    check_format(&format)?;
    let damage = |what: &dyn std::fmt::Display| super::damaged(Family::Default, None, IDENTITY_KEY, what);
    let identity = store.get(Family::Default, IDENTITY_KEY)?.ok_or_else(|| damage(&"identity is missing"))?;
    value::open_json(&identity).map(Some).map_err(|error| damage(&error))
}

fn check_format(bytes: &[u8]) -> Result<(), Error> {
    let bytes = bytes.try_into().map_err(|_| {
        super::damaged(Family::Default, None, FORMAT_KEY, &"format version is not four bytes")
    })?;
    match u32::from_be_bytes(bytes) {
        FORMAT => Ok(()),
        found => Err(Error::FormatVersion { found, supported: FORMAT }),
    }
}

fn mark_key(flow: FlowId) -> Vec<u8> {
    Key::named(RECOVERED_KEY).u32(flow.get()).bytes()
}

pub fn put_mark(batch: &mut Batch, flow: FlowId, mark: &RecoveryMark) {
    batch.put(Family::Default, mark_key(flow), value::seal_json(mark));
}

/// The flow passed the lineage check after a recovery.
pub fn clear_mark(batch: &mut Batch, flow: FlowId) {
    batch.delete(Family::Default, mark_key(flow));
}

/// # Errors
/// `ReadFailed`, `Corruption`.
pub fn mark(store: &dyn Store, flow: FlowId) -> Result<Option<RecoveryMark>, Error> {
    let key = mark_key(flow);
    let Some(value) = store.get(Family::Default, &key)? else { return Ok(None) };
    value::open_json(&value)
        .map(Some)
        .map_err(|error| super::damaged(Family::Default, Some(flow), &key, &error))
}
