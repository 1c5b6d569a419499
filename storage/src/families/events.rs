//! State changes. Key: flow, sequence.

use std::ops::ControlFlow;

use crate::codec::key::{Key, read_u64};
use crate::codec::value;
use crate::records::EventRecord;
use crate::store::Order;
use crate::{Batch, Error, Family, FlowId, Store};

pub fn key(flow: FlowId, sequence: u64) -> Vec<u8> {
    Key::flow(flow).u64(sequence).bytes()
}

pub fn put(batch: &mut Batch, flow: FlowId, sequence: u64, record: &EventRecord) {
    batch.put(Family::Events, key(flow, sequence), value::seal_json(record));
}

/// The newest `limit` events of a flow with their sequence numbers, newest first.
///
/// # Errors
/// `ReadFailed`, `Corruption`.
pub fn newest(store: &dyn Store, flow: FlowId, limit: usize) -> Result<Vec<(u64, EventRecord)>, Error> {
    let (from, to) = Key::flow(flow).range();
    let mut events = Vec::new();
    store.scan(Family::Events, &from, &to, Order::Descending, &mut |key, value| {
        if events.len() == limit {
            return Ok(ControlFlow::Break(()));
        }
        let damage = |what: &dyn std::fmt::Display| super::damaged(Family::Events, Some(flow), key, what);
        let sequence = read_u64(key, 4).ok_or_else(|| damage(&"key is too short"))?;
        events.push((sequence, value::open_json(value).map_err(|error| damage(&error))?));
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(events)
}

/// The sequence numbers of a flow in `[from, below)`, oldest first.
///
/// # Errors
/// `ReadFailed`, `Corruption`.
pub fn sequences(store: &dyn Store, flow: FlowId, from: u64, below: u64) -> Result<Vec<u64>, Error> {
    let mut sequences = Vec::new();
    let (from, below) = (key(flow, from), key(flow, below));
    store.scan(Family::Events, &from, &below, Order::Ascending, &mut |key, _| {
        let damage = || super::damaged(Family::Events, Some(flow), key, &"key is too short");
        sequences.push(read_u64(key, 4).ok_or_else(damage)?);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(sequences)
}
