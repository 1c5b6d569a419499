//! The audit trail. Key: sequence.

use std::ops::ControlFlow;

use crate::codec::key::{Key, read_u64};
use crate::codec::value;
use crate::records::AuditRecord;
use crate::store::Order;
use crate::{Batch, Error, Family, Store};

pub fn key(sequence: u64) -> Vec<u8> {
    Key::new().u64(sequence).bytes()
}

pub fn put(batch: &mut Batch, sequence: u64, record: &AuditRecord) {
    batch.put(Family::Audit, key(sequence), value::seal_json(record));
}

/// The newest `limit` records with their sequence numbers, newest first.
///
/// # Errors
/// `ReadFailed`, `Corruption`.
pub fn newest(store: &dyn Store, limit: usize) -> Result<Vec<(u64, AuditRecord)>, Error> {
    let mut records = Vec::new();
    store.scan(Family::Audit, &key(0), &key(u64::MAX), Order::Descending, &mut |key, value| {
        if records.len() == limit {
            return Ok(ControlFlow::Break(()));
        }
        let damage = |what: &dyn std::fmt::Display| super::damaged(Family::Audit, None, key, what);
        let sequence = read_u64(key, 0).ok_or_else(|| damage(&"key is too short"))?;
        records.push((sequence, value::open_json(value).map_err(|error| damage(&error))?));
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(records)
}
