//! Evidence. Key: flow, incarnation, commit LSN. Never deleted by recovery, only by evidence retention.

use std::ops::ControlFlow;

use crate::codec::key::{Key, read_u32};
use crate::codec::value;
use crate::records::QuarantineRecord;
use crate::store::Order;
use crate::{Batch, Error, Family, FlowId, Store, TransactionId};

pub fn key(transaction: TransactionId) -> Vec<u8> {
    Key::history(transaction.flow, transaction.incarnation).u64(transaction.commit_lsn.get()).bytes()
}

pub fn put(batch: &mut Batch, record: &QuarantineRecord) {
    batch.put(Family::Quarantine, key(record.transaction), value::seal_json(record));
}

/// # Errors
/// `ReadFailed`, `Corruption`.
pub fn get(store: &dyn Store, transaction: TransactionId) -> Result<Option<QuarantineRecord>, Error> {
    let key = key(transaction);
    let Some(value) = store.get(Family::Quarantine, &key)? else { return Ok(None) };
    decode(transaction.flow, &key, &value).map(Some)
}

/// Every record of a flow, oldest first.
///
/// # Errors
/// `ReadFailed`, `Corruption`.
pub fn of_flow(store: &dyn Store, flow: FlowId) -> Result<Vec<QuarantineRecord>, Error> {
    let (from, to) = Key::flow(flow).range();
    let mut records = Vec::new();
    store.scan(Family::Quarantine, &from, &to, Order::Ascending, &mut |key, value| {
        records.push(decode(flow, key, value)?);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(records)
}

/// Every record of the store, by flow and then oldest first.
///
/// # Errors
/// `ReadFailed`, `Corruption`.
pub fn all(store: &dyn Store) -> Result<Vec<QuarantineRecord>, Error> {
    // Longer than any key, so behind the last one.
    let end = [u8::MAX; 17];
    let mut records = Vec::new();
    store.scan(Family::Quarantine, &[], &end, Order::Ascending, &mut |key, value| {
        let flow = FlowId::new(read_u32(key, 0).unwrap_or_default());
        records.push(decode(flow, key, value)?);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(records)
}

fn decode(flow: FlowId, key: &[u8], value: &[u8]) -> Result<QuarantineRecord, Error> {
    value::open_json(value).map_err(|error| super::damaged(Family::Quarantine, Some(flow), key, &error))
}
