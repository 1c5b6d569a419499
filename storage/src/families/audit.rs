//! The audit trail, append only, each record with the hash of the one before. Key: sequence.

use std::ops::ControlFlow;

use sha2::{Digest, Sha256};

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

/// Puts the record behind the newest one, with that one's hash, and returns its sequence number. One
/// caller at a time, each after the batch of the one before: `log::AuditTrail` sees to it.
///
/// # Errors
/// `ReadFailed`, `Corruption`.
pub fn append(store: &dyn Store, batch: &mut Batch, record: &AuditRecord) -> Result<u64, Error> {
    let last = newest(store, 1)?.pop();
    let sequence = last.as_ref().map_or(1, |(sequence, _)| sequence + 1);
    let previous = last.map_or_else(String::new, |(_, record)| hash(&record));
    put(batch, sequence, &AuditRecord { previous, ..record.clone() });
    Ok(sequence)
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
        records.push(decode(key, value)?);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(records)
}

/// Reads the whole trail and returns the number of its records.
///
/// # Errors
/// `Corruption` at the first record that does not follow from the one before; `ReadFailed`.
pub fn verify(store: &dyn Store) -> Result<u64, Error> {
    let (mut sequence, mut previous) = (0, String::new());
    store.scan(Family::Audit, &key(0), &key(u64::MAX), Order::Ascending, &mut |key, value| {
        let (found, record) = decode(key, value)?;
        sequence += 1;
        if found != sequence || record.previous != previous {
            let what = &"the audit trail does not follow from the record before";
            return Err(super::damaged(Family::Audit, None, key, what));
        }
        previous = hash(&record);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(sequence)
}

fn decode(key: &[u8], value: &[u8]) -> Result<(u64, AuditRecord), Error> {
    let damage = |what: &dyn std::fmt::Display| super::damaged(Family::Audit, None, key, what);
    let sequence = read_u64(key, 0).ok_or_else(|| damage(&"key is too short"))?;
    Ok((sequence, value::open_json(value).map_err(|error| damage(&error))?))
}

/// Hexadecimal SHA-256 of the record as it is stored.
fn hash(record: &AuditRecord) -> String {
    Sha256::digest(value::seal_json(record)).iter().map(|byte| format!("{byte:02x}")).collect()
}
