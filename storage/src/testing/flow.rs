//! A flow in a store, filled as capture and apply fill it.

use std::fmt;

use super::{chunked, inline, lineage};
use crate::families::{dedup, flows, log};
use crate::records::{DedupRecord, Durable, FlowIdentity, FlowPart, LoggedBytes, TransactionRecord};
use crate::{Batch, CaptureSession, Durability, FlowId, Incarnation, Lsn, Progress, Store, Timestamp};

/// One flow of a store under test.
pub struct StoredFlow<'a> {
    store: &'a dyn Store,
    pub flow: FlowId,
    pub incarnation: Incarnation,
    durable: Durable,
}

impl fmt::Debug for StoredFlow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredFlow").field("flow", &self.flow).finish_non_exhaustive()
    }
}

impl<'a> StoredFlow<'a> {
    /// A new flow at position 100.
    ///
    /// # Panics
    /// When the store fails.
    pub fn new(store: &'a dyn Store, flow: FlowId) -> Self {
        let incarnation = Incarnation::FIRST;
        let identity = FlowIdentity {
            name: format!("store-{flow}:sales").parse().expect("a flow name"),
            created: Timestamp::from_unix_micros(1),
            removed: None,
            spec_digest: String::new(),
        };
        let mut batch = Batch::new();
        flows::put(&mut batch, flow, FlowPart::Identity, &identity);
        flows::put(&mut batch, flow, FlowPart::Lineage, &lineage(incarnation, Lsn::new(100)));
        store.write(batch, Durability::Synced).expect("the store takes writes");
        Self { store, flow, incarnation, durable: Durable::default() }
    }

    /// Captures a transaction of one change of `bytes` bytes, received at `received`.
    ///
    /// # Panics
    /// When the store fails.
    pub fn capture(&mut self, commit_lsn: u64, bytes: u32, received: i64) {
        let record = inline(Lsn::new(commit_lsn), 1, bytes);
        self.log(Batch::new(), record, 0, received);
    }

    /// Captures a transaction of `parts` parts with one change of `bytes` bytes each.
    ///
    /// # Panics
    /// When the store fails.
    pub fn capture_chunked(&mut self, commit_lsn: u64, parts: u32, bytes: u32, received: i64) {
        let mut batch = Batch::new();
        let record = chunked(&mut batch, self.flow, self.incarnation, Lsn::new(commit_lsn), parts, bytes);
        self.log(batch, record, u64::from(parts * bytes), received);
    }

    fn log(&mut self, mut batch: Batch, mut record: TransactionRecord, part_bytes: u64, received: i64) {
        let commit_lsn = Lsn::new(record.header.commit_lsn);
        record.header.received = received;
        let before = batch.bytes();
        log::put(&mut batch, self.flow, self.incarnation, &record);
        let bytes = (batch.bytes() - before) as u64 + part_bytes;
        let xid = record.header.xid;
        let dedup_record = DedupRecord { xid, digest: record.header.digest, bytes, received, outcome: None };
        dedup::put(&mut batch, self.flow, self.incarnation, commit_lsn, &dedup_record);
        self.durable = Durable {
            progress: Progress { commit_lsn, position: Lsn::new(record.header.end_lsn) },
            appended: self.durable.appended.plus(LoggedBytes { bytes, transactions: 1 }),
            session: CaptureSession::new(1),
        };
        flows::put(&mut batch, self.flow, FlowPart::Durable, &self.durable);
        self.store.write(batch, Durability::Buffered).expect("the store takes writes");
    }

    /// The target has everything with a commit LSN up to this one.
    ///
    /// # Panics
    /// When the store fails.
    pub fn applied(&self, commit_lsn: u64) {
        let progress = Progress { commit_lsn: Lsn::new(commit_lsn), position: Lsn::new(commit_lsn + 48) };
        let mut batch = Batch::new();
        flows::put(&mut batch, self.flow, FlowPart::Applied, &progress);
        self.store.write(batch, Durability::Synced).expect("the store takes writes");
    }

    /// The commit LSNs that the log holds.
    ///
    /// # Panics
    /// When the store fails.
    pub fn logged(&self) -> Vec<u64> {
        let mut found = Vec::new();
        log::read_from(self.store, self.flow, self.incarnation, Lsn::ZERO, &mut |commit_lsn, _| {
            found.push(commit_lsn.get());
            Ok(std::ops::ControlFlow::Continue(()))
        })
        .expect("the store answers");
        found
    }
}
