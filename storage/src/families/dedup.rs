//! What was received. Key: flow, incarnation, commit LSN.

use crate::codec::key::Key;
use crate::codec::value;
use crate::records::{ArchivedDedupRecord, DedupRecord};
use crate::{Batch, Error, Family, FlowId, Incarnation, Lsn, Store};

pub fn key(flow: FlowId, incarnation: Incarnation, commit_lsn: Lsn) -> Vec<u8> {
    Key::history(flow, incarnation).u64(commit_lsn.get()).bytes()
}

/// # Panics
/// Never: archiving into memory does not fail.
pub fn put(batch: &mut Batch, flow: FlowId, incarnation: Incarnation, commit_lsn: Lsn, record: &DedupRecord) {
    let payload = rkyv::to_bytes::<rkyv::rancor::Error>(record).expect("archiving into memory");
    batch.put(Family::Dedup, key(flow, incarnation, commit_lsn), value::seal_archived(&payload));
}

/// # Errors
/// `ReadFailed`, `Corruption`.
pub fn get(
    store: &dyn Store,
    flow: FlowId,
    incarnation: Incarnation,
    commit_lsn: Lsn,
) -> Result<Option<DedupRecord>, Error> {
    let key = key(flow, incarnation, commit_lsn);
    let Some(value) = store.get(Family::Dedup, &key)? else { return Ok(None) };
    let damage = |what: &dyn std::fmt::Display| super::damaged(Family::Dedup, Some(flow), &key, what);
    let payload = value::open_archived(&value).map_err(|error| damage(&error))?;
    let archived =
        rkyv::access::<ArchivedDedupRecord, rkyv::rancor::Error>(payload).map_err(|error| damage(&error))?;
    rkyv::deserialize::<DedupRecord, rkyv::rancor::Error>(archived).map(Some).map_err(|error| damage(&error))
}
