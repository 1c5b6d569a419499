//! The parts of every flow. Key: flow, part. Each part has one writer.

use std::ops::ControlFlow;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::codec::key::{Key, read_u32};
use crate::codec::value;
use crate::records::{Durable, Floor, FlowIdentity, FlowPart, Lineage, LoggedBytes};
use crate::store::Order;
use crate::{Batch, Error, Family, FlowId, Progress, Store};

/// Everything that is stored of one flow, but for its phase, which the flow machines read themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowParts {
    pub identity: FlowIdentity,
    pub lineage: Option<Lineage>,
    pub durable: Durable,
    pub applied: Option<Progress>,
    pub floor: Option<Floor>,
}

/// The parts of one flow among many: its damage is its own.
pub type PartsRead = Result<FlowParts, Error>;

impl FlowParts {
    /// What the flow's log takes of its budget now.
    pub fn used(&self) -> LoggedBytes {
        let pruned = self.floor.as_ref().map_or_else(LoggedBytes::default, |floor| floor.pruned);
        self.durable.appended.minus(pruned)
    }
}

pub fn key(flow: FlowId, part: FlowPart) -> Vec<u8> {
    Key::flow(flow).u8(part as u8).bytes()
}

/// `T` is the record of that part: `FlowIdentity`, `Lineage`, `Durable`, `Progress` (applied),
/// `Floor`, or the phase as the flow machines store it.
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

/// Every part of one flow, none when there never was such a flow.
///
/// # Errors
/// `ReadFailed`, `Corruption`.
pub fn parts(store: &dyn Store, flow: FlowId) -> Result<Option<FlowParts>, Error> {
    let Some(identity) = get(store, flow, FlowPart::Identity)? else { return Ok(None) };
    Ok(Some(FlowParts {
        identity,
        lineage: get(store, flow, FlowPart::Lineage)?,
        durable: get(store, flow, FlowPart::Durable)?.unwrap_or_default(),
        applied: get(store, flow, FlowPart::Applied)?,
        floor: get(store, flow, FlowPart::Floor)?,
    }))
}

/// The numbers of all flows, removed ones included, in order.
///
/// # Errors
/// `ReadFailed`, `Corruption`.
pub fn ids(store: &dyn Store) -> Result<Vec<FlowId>, Error> {
    let mut ids = Vec::new();
    let (from, to) = all_keys();
    store.scan(Family::Flows, &from, &to, Order::Ascending, &mut |key, _| {
        let flow = flow_of(key)?;
        if ids.last() != Some(&flow) {
            ids.push(flow);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(ids)
}

/// All flows with their parts, removed ones included. Damage of one flow stays with that flow.
///
/// # Errors
/// `ReadFailed`, `Corruption` of a key.
pub fn all(store: &dyn Store) -> Result<Vec<(FlowId, PartsRead)>, Error> {
    let flows = ids(store)?.into_iter().map(|flow| {
        let missing = || {
            let key = key(flow, FlowPart::Identity);
            super::damaged(Family::Flows, Some(flow), &key, &"the flow has no identity")
        };
        (flow, parts(store, flow).and_then(|parts| parts.ok_or_else(missing)))
    });
    Ok(flows.collect())
}

/// The number of the next new flow. Numbers are never used again, because a removed flow keeps its
/// identity as a tombstone. One caller at a time: the number is taken when its identity is written.
///
/// # Errors
/// `ReadFailed`, `Corruption`.
pub fn next_id(store: &dyn Store) -> Result<FlowId, Error> {
    let mut last = FlowId::STORE;
    let (from, to) = all_keys();
    store.scan(Family::Flows, &from, &to, Order::Descending, &mut |key, _| {
        last = flow_of(key)?;
        Ok(ControlFlow::Break(()))
    })?;
    Ok(FlowId::new(last.get() + 1))
}

fn all_keys() -> (Vec<u8>, Vec<u8>) {
    (Key::flow(FlowId::STORE).bytes(), Key::flow(FlowId::new(u32::MAX)).bytes())
}

fn flow_of(key: &[u8]) -> Result<FlowId, Error> {
    read_u32(key, 0)
        .map(FlowId::new)
        .ok_or_else(|| super::damaged(Family::Flows, None, key, &"key is too short"))
}
