//! What was received. Key: flow, incarnation, commit LSN.

use std::ops::ControlFlow;

use crate::codec::key::{Key, read_u64};
use crate::codec::value;
use crate::records::{ArchivedDedupRecord, DedupRecord};
use crate::store::Order;
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
    decode(flow, &key, &value).map(Some)
}

/// Visits records with commit LSN at or above `from`, in commit order, until `visit` breaks.
///
/// # Errors
/// `ReadFailed`, and whatever `visit` returns.
pub fn read_from(
    store: &dyn Store,
    flow: FlowId,
    incarnation: Incarnation,
    from: Lsn,
    visit: &mut dyn FnMut(Lsn, Result<DedupRecord, Error>) -> Result<ControlFlow<()>, Error>,
) -> Result<(), Error> {
    let (_, end) = Key::history(flow, incarnation).range();
    store.scan(Family::Dedup, &key(flow, incarnation, from), &end, Order::Ascending, &mut |key, value| {
        let commit_lsn = read_u64(key, 8)
            .map(Lsn::new)
            .ok_or_else(|| super::damaged(Family::Dedup, Some(flow), key, &"key is too short"))?;
        visit(commit_lsn, decode(flow, key, value))
    })
}

fn decode(flow: FlowId, key: &[u8], value: &[u8]) -> Result<DedupRecord, Error> {
    let damage = |what: &dyn std::fmt::Display| super::damaged(Family::Dedup, Some(flow), key, what);
    let payload = value::open_archived(value).map_err(|error| damage(&error))?;
    let archived =
        rkyv::access::<ArchivedDedupRecord, rkyv::rancor::Error>(payload).map_err(|error| damage(&error))?;
    rkyv::deserialize::<DedupRecord, rkyv::rancor::Error>(archived).map_err(|error| damage(&error))
}
