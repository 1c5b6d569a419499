//! Versions of relation descriptions. Key: flow, incarnation, relation, version.

use std::ops::ControlFlow;

use crate::codec::key::Key;
use crate::codec::value;
use crate::records::RelationRecord;
use crate::store::Order;
use crate::{Batch, Error, Family, FlowId, Incarnation, RelationId, RelationVersion, Store};

pub fn key(
    flow: FlowId,
    incarnation: Incarnation,
    relation: RelationId,
    version: RelationVersion,
) -> Vec<u8> {
    Key::history(flow, incarnation).u32(relation.get()).u32(version.get()).bytes()
}

pub fn put(batch: &mut Batch, flow: FlowId, incarnation: Incarnation, record: &RelationRecord) {
    let key = key(flow, incarnation, record.relation, record.version);
    batch.put(Family::Relations, key, value::seal_json(record));
}

/// # Errors
/// `ReadFailed`, `Corruption`.
pub fn get(
    store: &dyn Store,
    flow: FlowId,
    incarnation: Incarnation,
    relation: RelationId,
    version: RelationVersion,
) -> Result<Option<RelationRecord>, Error> {
    let key = key(flow, incarnation, relation, version);
    let Some(value) = store.get(Family::Relations, &key)? else { return Ok(None) };
    decode(flow, &key, &value).map(Some)
}

/// Every version of every relation of one history, by relation and version.
///
/// # Errors
/// `ReadFailed`, `Corruption`.
pub fn of_history(
    store: &dyn Store,
    flow: FlowId,
    incarnation: Incarnation,
) -> Result<Vec<RelationRecord>, Error> {
    let (from, to) = Key::history(flow, incarnation).range();
    let mut records = Vec::new();
    store.scan(Family::Relations, &from, &to, Order::Ascending, &mut |key, value| {
        records.push(decode(flow, key, value)?);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(records)
}

fn decode(flow: FlowId, key: &[u8], value: &[u8]) -> Result<RelationRecord, Error> {
    value::open_json(value).map_err(|error| super::damaged(Family::Relations, Some(flow), key, &error))
}
