//! Committed transactions in commit order. Key: flow, incarnation, commit LSN.

use std::ops::ControlFlow;

use crate::codec::key::{Key, read_u64};
use crate::codec::value;
use crate::records::{
    ArchivedContent, ArchivedTransactionRecord, ChangeBlock, Content, TransactionHeader, TransactionRecord,
};
use crate::store::Order;
use crate::{Batch, Error, Family, FlowId, Incarnation, Lsn, Store, TransactionDigest, TransactionId, Xid};

/// Flow, incarnation, commit LSN.
const KEY_BYTES: usize = 16;

/// One transaction as it stands in the log, verified and decodable; read in place.
#[derive(Clone, Debug)]
pub struct LoggedTransaction {
    id: TransactionId,
    value: Vec<u8>,
}

impl LoggedTransaction {
    fn open(flow: FlowId, incarnation: Incarnation, key: &[u8], value: Vec<u8>) -> Result<Self, Error> {
        let damage = |what: &dyn std::fmt::Display| super::damaged(Family::Log, Some(flow), key, what);
        let payload = value::open_archived(&value).map_err(|error| damage(&error))?;
        let record = rkyv::access::<ArchivedTransactionRecord, rkyv::rancor::Error>(payload)
            .map_err(|error| damage(&error))?;
        let commit_lsn = Lsn::new(record.header.commit_lsn.to_native());
        if read_u64(key, 8) != Some(commit_lsn.get()) {
            return Err(damage(&"key and record name different commit LSNs"));
        }
        let xid = Xid::new(record.header.xid.to_native());
        Ok(Self { id: TransactionId { flow, incarnation, commit_lsn, xid }, value })
    }

    /// Stands for a transaction whose record is damaged, so that a recorded decision can pass it. It holds
    /// no changes; `header` says what is still known.
    ///
    /// # Panics
    /// Never: archiving into memory does not fail.
    pub fn stand_in(flow: FlowId, incarnation: Incarnation, header: TransactionHeader) -> Self {
        let (commit_lsn, xid) = (Lsn::new(header.commit_lsn), Xid::new(header.xid));
        let record = TransactionRecord { header, content: Content::Inline(ChangeBlock::default()) };
        let payload = rkyv::to_bytes::<rkyv::rancor::Error>(&record).expect("archiving into memory");
        let id = TransactionId { flow, incarnation, commit_lsn, xid };
        Self { id, value: value::seal_archived(&payload) }
    }

    pub fn id(&self) -> TransactionId {
        self.id
    }

    /// The record in place.
    ///
    /// # Panics
    /// Never: the value was validated when it was read and cannot change since.
    pub fn record(&self) -> &ArchivedTransactionRecord {
        let payload = value::open_archived(&self.value).expect("verified when read");
        rkyv::access::<ArchivedTransactionRecord, rkyv::rancor::Error>(payload).expect("validated when read")
    }

    pub fn end_lsn(&self) -> Lsn {
        Lsn::new(self.record().header.end_lsn.to_native())
    }

    /// What the transaction takes of its flow's log budget: key, value and chunk parts, as its dedup record
    /// counts them.
    pub fn logged_bytes(&self) -> u64 {
        let parts = match &self.record().content {
            ArchivedContent::Inline(_) => 0,
            ArchivedContent::Chunked(manifest) => {
                manifest.parts.iter().map(|part| u64::from(part.bytes.to_native())).sum()
            }
        };
        (KEY_BYTES + self.value.len()) as u64 + parts
    }

    pub fn digest(&self) -> TransactionDigest {
        TransactionDigest::new(self.record().header.digest)
    }
}

pub fn key(flow: FlowId, incarnation: Incarnation, commit_lsn: Lsn) -> Vec<u8> {
    Key::history(flow, incarnation).u64(commit_lsn.get()).bytes()
}

/// # Panics
/// Never: archiving into memory does not fail.
pub fn put(batch: &mut Batch, flow: FlowId, incarnation: Incarnation, record: &TransactionRecord) {
    let payload = rkyv::to_bytes::<rkyv::rancor::Error>(record).expect("archiving into memory");
    let key = key(flow, incarnation, Lsn::new(record.header.commit_lsn));
    batch.put(Family::Log, key, value::seal_archived(&payload));
}

/// # Errors
/// `ReadFailed`, `Corruption`.
pub fn get(
    store: &dyn Store,
    flow: FlowId,
    incarnation: Incarnation,
    commit_lsn: Lsn,
) -> Result<Option<LoggedTransaction>, Error> {
    let key = key(flow, incarnation, commit_lsn);
    let value = store.get(Family::Log, &key)?;
    value.map(|value| LoggedTransaction::open(flow, incarnation, &key, value)).transpose()
}

/// Visits transactions with commit LSN at or above `from`, in commit order, until `visit` breaks. Damage
/// reaches `visit` as an error in its place, with the commit LSN that the key still tells, so that order
/// can be read on past it.
///
/// # Errors
/// `ReadFailed`, and whatever `visit` returns.
pub fn read_from(
    store: &dyn Store,
    flow: FlowId,
    incarnation: Incarnation,
    from: Lsn,
    visit: &mut dyn FnMut(Lsn, Result<LoggedTransaction, Error>) -> Result<ControlFlow<()>, Error>,
) -> Result<(), Error> {
    let (_, end) = Key::history(flow, incarnation).range();
    let start = key(flow, incarnation, from);
    store.scan(Family::Log, &start, &end, Order::Ascending, &mut |key, value| {
        let commit_lsn = read_u64(key, 8)
            .map(Lsn::new)
            .ok_or_else(|| super::damaged(Family::Log, Some(flow), key, &"key is too short"))?;
        visit(commit_lsn, LoggedTransaction::open(flow, incarnation, key, value.to_vec()))
    })
}

/// Commit LSN of the first and of the last transaction, read from the keys alone.
///
/// # Errors
/// `ReadFailed`, `Corruption` of a key.
pub fn extent(
    store: &dyn Store,
    flow: FlowId,
    incarnation: Incarnation,
) -> Result<(Option<Lsn>, Option<Lsn>), Error> {
    let (from, to) = Key::history(flow, incarnation).range();
    let end = |order| {
        let mut found = None;
        store.scan(Family::Log, &from, &to, order, &mut |key, _| {
            let damage = || super::damaged(Family::Log, Some(flow), key, &"key is too short");
            found = Some(read_u64(key, 8).map(Lsn::new).ok_or_else(damage)?);
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    };
    Ok((end(Order::Ascending)?, end(Order::Descending)?))
}
