//! Records with recognisable content: the xid of a transaction is the low half of its commit LSN.

use crate::families::chunks::{self, PartKey};
use crate::records::{
    ChangeBlock, ChangeHead, Content, FailureDetail, Lineage, Manifest, Operation, QuarantineRecord,
    QuarantineState, StartMode, TransactionHeader, TransactionRecord,
};
use crate::{
    Batch, CaptureSession, FlowId, Incarnation, Lsn, Timestamp, TransactionDigest, TransactionId, Xid,
};

fn block(changes: u32, bytes: u32) -> ChangeBlock {
    let head = |n| ChangeHead {
        operation: Operation::Insert,
        relation: 16_384,
        version: 1,
        sub_xid: 0,
        offset: n * bytes,
        length: bytes,
    };
    ChangeBlock { heads: (0..changes).map(head).collect(), body: vec![b'x'; (changes * bytes) as usize] }
}

fn header(commit_lsn: u64, changes: u64, bytes: u64) -> TransactionHeader {
    TransactionHeader {
        xid: (commit_lsn & 0xFFFF_FFFF) as u32,
        commit_lsn,
        end_lsn: commit_lsn + 48,
        commit_time: 1_000_000,
        received: 1_000_500,
        digest: u128::from(commit_lsn).to_be_bytes(),
        changes,
        bytes,
        origin: None,
    }
}

/// A transaction with `changes` inserts of `bytes` bytes each.
pub fn inline(commit_lsn: Lsn, changes: u32, bytes: u32) -> TransactionRecord {
    let header = header(commit_lsn.get(), u64::from(changes), u64::from(changes * bytes));
    TransactionRecord { header, content: Content::Inline(block(changes, bytes)) }
}

/// A transaction of `parts` parts with one insert of `bytes` bytes each; its parts go into the batch.
pub fn chunked(
    batch: &mut Batch,
    flow: FlowId,
    incarnation: Incarnation,
    commit_lsn: Lsn,
    parts: u32,
    bytes: u32,
) -> TransactionRecord {
    let header = header(commit_lsn.get(), u64::from(parts), u64::from(parts * bytes));
    let (session, xid) = (CaptureSession::new(1), Xid::new(header.xid));
    let key = |n| PartKey { flow, incarnation, session, xid, n };
    let parts = (0..parts).map(|n| chunks::put(batch, key(n), &block(1, bytes))).collect();
    let manifest = Manifest { session: session.get(), parts, aborted: Vec::new() };
    TransactionRecord { header, content: Content::Chunked(manifest) }
}

/// The lineage of an incarnation that began at `start`.
pub fn lineage(incarnation: Incarnation, start: Lsn) -> Lineage {
    Lineage {
        incarnation,
        system_identifier: 7_000_000_000_000_000_001,
        timeline: 1,
        slot: "trellara_store_1".to_owned(),
        publications: Vec::new(),
        start,
        start_mode: StartMode::Empty,
        started: Timestamp::from_unix_micros(1),
    }
}

/// Evidence of a transaction in the first incarnation.
pub fn quarantined(flow: FlowId, commit_lsn: Lsn, state: QuarantineState) -> QuarantineRecord {
    QuarantineRecord {
        id: "Q-7F3K".to_owned(),
        transaction: TransactionId { flow, incarnation: Incarnation::FIRST, commit_lsn, xid: Xid::new(700) },
        digest: TransactionDigest::default(),
        end_lsn: commit_lsn,
        commit_time: Timestamp::default(),
        at: Timestamp::default(),
        state,
        failure: FailureDetail::default(),
        change: Some(1),
        changes: 1,
        image: None,
        conflicting_row: None,
        source_relation: None,
        target_relation: None,
        checkpoint: Lsn::ZERO,
        engine_version: String::new(),
        source_version: None,
        target_version: None,
        attempts: Vec::new(),
        resolution: None,
    }
}
