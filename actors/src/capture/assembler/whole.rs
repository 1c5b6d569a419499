//! A transaction that has ended at the source, on its way into the log.

use trellara_storage::families::{chunks, dedup, log};
use trellara_storage::records::{Content, DedupRecord, Manifest, TransactionHeader, TransactionRecord};
use trellara_storage::{Batch, Error, Family, Lsn, Progress, Store, Timestamp, Xid};

use super::building::{discard, part_key};
use super::{Assembler, Assembly};
use crate::capture::digest::{Summary, TransactionHasher, Undigestible};

/// Where and when a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    pub commit_lsn: Lsn,
    pub end_lsn: Lsn,
    pub commit_time: Timestamp,
}

/// See the module. An inline one has its summary; one in parts gets it by reading them back.
#[derive(Debug)]
pub struct Whole {
    pub(super) xid: Xid,
    pub(super) ended: Ended,
    pub(super) origin: Option<String>,
    pub(super) heartbeat: bool,
    pub(super) content: Content,
    pub(super) summary: Option<Summary>,
    /// New relation versions and the last part: what the log record depends on.
    pub(super) batch: Batch,
}

impl Whole {
    pub fn xid(&self) -> Xid {
        self.xid
    }

    pub fn ended(&self) -> Ended {
        self.ended
    }

    pub fn progress(&self) -> Progress {
        Progress { commit_lsn: self.ended.commit_lsn, position: self.ended.end_lsn }
    }

    /// Carries a heartbeat.
    pub fn is_heartbeat(&self) -> bool {
        self.heartbeat
    }

    pub fn summary(&self) -> Option<Summary> {
        self.summary
    }

    /// The last part of a chunked transaction and the relation versions that came with it, which are
    /// otherwise part of its record.
    pub fn take_last_part(&mut self) -> Batch {
        std::mem::take(&mut self.batch)
    }

    /// What digests the parts of a chunked transaction on a reader thread, once they are written. It finds
    /// the surviving changes of an inline one too.
    pub fn read_back(
        &self,
        assembler: &Assembler,
    ) -> impl FnOnce(&dyn Store) -> Result<Summary, Error> + use<> {
        let (of, relations) = (assembler.of.clone(), assembler.relations.clone());
        let (xid, commit_lsn, content) = (self.xid, self.ended.commit_lsn, self.content.clone());
        move |store| {
            let digest_of = |relation, version| relations.digest(relation, version);
            let damage = |error: Undigestible| damage(&of, xid, &error);
            match content {
                Content::Inline(block) => {
                    let mut hasher = TransactionHasher::new(commit_lsn, xid, [], &digest_of);
                    hasher.block(&block).map_err(damage)?;
                    Ok(hasher.finish())
                }
                Content::Chunked(Manifest { parts, aborted, session: _ }) => {
                    let mut hasher = TransactionHasher::new(commit_lsn, xid, aborted, &digest_of);
                    for (n, pinned) in (0..).zip(&parts) {
                        let part = chunks::get(store, part_key(&of, xid, n), pinned)?;
                        hasher.archived(part.block()).map_err(damage)?;
                    }
                    Ok(hasher.finish())
                }
            }
        }
    }

    /// Everything that makes the transaction durable, and the log bytes that it takes.
    pub fn record(self, of: &Assembly, summary: Summary, received: Timestamp) -> (Batch, u64) {
        let Self { xid, ended, origin, content, mut batch, .. } = self;
        let header = TransactionHeader {
            xid: xid.get(),
            commit_lsn: ended.commit_lsn.get(),
            end_lsn: ended.end_lsn.get(),
            commit_time: ended.commit_time.unix_micros(),
            received: received.unix_micros(),
            digest: *summary.digest.bytes(),
            changes: summary.changes,
            bytes: summary.bytes,
            origin,
        };
        let part_bytes = match &content {
            Content::Inline(_) => 0,
            Content::Chunked(manifest) => {
                chunks::close(&mut batch, part_key(of, xid, 0));
                manifest.parts.iter().map(|part| u64::from(part.bytes)).sum()
            }
        };
        let before = batch.bytes();
        log::put(&mut batch, of.flow, of.incarnation, &TransactionRecord { header, content });
        let bytes = (batch.bytes() - before) as u64 + part_bytes;
        let dedup_record = DedupRecord {
            xid: xid.get(),
            digest: *summary.digest.bytes(),
            bytes,
            received: received.unix_micros(),
            outcome: None,
        };
        dedup::put(&mut batch, of.flow, of.incarnation, ended.commit_lsn, &dedup_record);
        (batch, bytes)
    }

    /// Takes back what was written of a transaction that is here already. Relation versions stay.
    pub fn discard(self, of: &Assembly) -> Batch {
        let mut batch = self.batch;
        if let Content::Chunked(manifest) = &self.content {
            discard(&mut batch, of, self.xid, manifest.parts.len());
        }
        batch
    }
}

fn damage(of: &Assembly, xid: Xid, what: &Undigestible) -> Error {
    Error::Corruption {
        family: Family::Chunks,
        flow: Some(of.flow),
        key: format!("xid {xid}"),
        what: what.to_string(),
    }
}
