//! The parts of every flow. Key: flow, part. Each part has one writer.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::codec::key::Key;
use crate::codec::value;
use crate::records::FlowPart;
use crate::{Batch, Error, Family, FlowId, Store};

pub fn key(flow: FlowId, part: FlowPart) -> Vec<u8> {
    Key::flow(flow).u8(part as u8).bytes()
}

/// `T` is the record of that part: `FlowIdentity`, `Lineage`, `Progress` (durable, applied), `Floor`, or
/// the phase as the flow machines store it.
pub fn put<T: Serialize>(batch: &mut Batch, flow: FlowId, part: FlowPart, record: &T) {
    batch.put(Family::Flows, key(flow, part), value::seal_json(record));
}

/// # Errors
/// `ReadFailed`, `Corruption`.
pub fn get<T: DeserializeOwned>(store: &dyn Store, flow: FlowId, part: FlowPart) -> Result<Option<T>, Error> {
    let key = key(flow, part);
    let Some(value) = store.get(Family::Flows, &key)? else { return Ok(None) };
    value::open_json(&value)
        .map(Some)
        .map_err(|error| super::damaged(Family::Flows, Some(flow), &key, &error))
}
