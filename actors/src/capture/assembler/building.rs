//! One transaction that has not ended: its changes in memory, and the parts already written.

use std::collections::BTreeSet;

use trellara_storage::families::chunks::{self, PartKey};
use trellara_storage::records::{ChangeBlock, ChangeHead, Content, Manifest, Operation, PartRef};
use trellara_storage::{Batch, RelationId, RelationVersion, Xid};

use super::whole::{Ended, Whole};
use super::{Assembled, Assembly};
use crate::capture::defect::protocol;
use crate::capture::digest::TransactionHasher;
use crate::capture::relations::{Current, Relations};
use crate::failure::Failure;

/// One change on its way into a block.
pub(super) struct Change<'a> {
    pub(super) operation: Operation,
    pub(super) relation: Option<(RelationId, RelationVersion)>,
    pub(super) body: &'a [u8],
}

impl Change<'_> {
    fn size(&self) -> usize {
        size_of::<ChangeHead>() + self.body.len()
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Building {
    xid: Xid,
    block: ChangeBlock,
    parts: Vec<PartRef>,
    written_bytes: u64,
    aborted: BTreeSet<Xid>,
    /// What a streamed transaction has described so far; empty for one that is not streamed.
    pub(super) current: Current,
    pub(super) origin: Option<String>,
    pub(super) heartbeat: bool,
}

impl Building {
    pub(super) fn new(xid: Xid) -> Self {
        Self {
            xid,
            block: ChangeBlock::default(),
            parts: Vec::new(),
            written_bytes: 0,
            aborted: BTreeSet::new(),
            current: Current::new(),
            origin: None,
            heartbeat: false,
        }
    }

    pub(super) fn xid(&self) -> Xid {
        self.xid
    }

    /// Bytes that wait in memory.
    pub(super) fn buffered(&self) -> usize {
        self.block.heads.len() * size_of::<ChangeHead>() + self.block.body.len()
    }

    /// Bytes of the parts that are written.
    pub(super) fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// Takes exactly the changes of this sub-transaction out of what survives.
    pub(super) fn abort(&mut self, sub_xid: Xid) {
        self.aborted.insert(sub_xid);
    }

    pub(super) fn add(
        &mut self,
        of: &Assembly,
        sub_xid: Option<Xid>,
        change: Change<'_>,
        unwritten: &mut Batch,
        out: &mut Vec<Assembled>,
    ) {
        if self.buffered() > 0 && self.buffered() + change.size() > of.part_bytes {
            self.flush(of, unwritten, out);
        }
        let at = |bytes: usize| u32::try_from(bytes).expect("a part, or one value, is smaller than 4 GiB");
        let (relation, version) = change.relation.unwrap_or_default();
        self.block.heads.push(ChangeHead {
            operation: change.operation,
            relation: relation.get(),
            version: version.get(),
            sub_xid: sub_xid.unwrap_or_default().get(),
            offset: at(self.block.body.len()),
            length: at(change.body.len()),
        });
        self.block.body.extend_from_slice(change.body);
    }

    /// Writes what is in memory as the next part.
    pub(super) fn flush(&mut self, of: &Assembly, unwritten: &mut Batch, out: &mut Vec<Assembled>) {
        let mut batch = std::mem::take(unwritten);
        self.write_part(of, &mut batch);
        out.push(Assembled::Parts(batch));
    }

    /// Deletes every part written so far, none when there is none.
    pub(super) fn discard(self, of: &Assembly) -> Option<Batch> {
        let mut batch = Batch::new();
        discard(&mut batch, of, self.xid, self.parts.len());
        (!self.parts.is_empty()).then_some(batch)
    }

    /// The whole transaction: inline when no part was written, with a manifest otherwise.
    pub(super) fn finish(
        mut self,
        of: &Assembly,
        ended: Ended,
        relations: &Relations,
        unwritten: &mut Batch,
    ) -> Result<Whole, Failure> {
        let mut batch = std::mem::take(unwritten);
        let (content, summary) = if self.parts.is_empty() {
            let block = self.surviving();
            let digest_of = |relation, version| relations.digest(relation, version);
            let mut hasher = TransactionHasher::new(ended.commit_lsn, self.xid, [], &digest_of);
            hasher.block(&block).map_err(|error| protocol(error.to_string()))?;
            (Content::Inline(block), Some(hasher.finish()))
        } else {
            if !self.block.heads.is_empty() {
                self.write_part(of, &mut batch);
            }
            let aborted = self.aborted.iter().map(|xid| xid.get()).collect();
            (Content::Chunked(Manifest { session: of.session.get(), parts: self.parts, aborted }), None)
        };
        Ok(Whole {
            xid: self.xid,
            ended,
            origin: self.origin,
            heartbeat: self.heartbeat,
            content,
            summary,
            batch,
        })
    }

    fn write_part(&mut self, of: &Assembly, batch: &mut Batch) {
        let n = u32::try_from(self.parts.len()).expect("fewer than 2^32 parts");
        let key = part_key(of, self.xid, n);
        if n == 0 {
            chunks::mark_open(batch, key);
        }
        let block = std::mem::take(&mut self.block);
        let part = chunks::put(batch, key, &block);
        self.written_bytes += u64::from(part.bytes);
        self.parts.push(part);
    }

    fn surviving(&mut self) -> ChangeBlock {
        let block = std::mem::take(&mut self.block);
        if self.aborted.is_empty() {
            return block;
        }
        let mut kept = ChangeBlock::default();
        for head in block.heads {
            if !self.aborted.contains(&Xid::new(head.sub_xid)) {
                let body = &block.body[head.offset as usize..][..head.length as usize];
                let offset = u32::try_from(kept.body.len()).expect("no longer than the block before");
                kept.heads.push(ChangeHead { offset, ..head });
                kept.body.extend_from_slice(body);
            }
        }
        kept
    }
}

/// Deletes parts `0..parts` of a transaction and its open mark.
pub(super) fn discard(batch: &mut Batch, of: &Assembly, xid: Xid, parts: usize) {
    let parts = u32::try_from(parts).expect("fewer than 2^32 parts");
    for n in 0..parts {
        batch.delete(trellara_storage::Family::Chunks, part_key(of, xid, n).bytes());
    }
    chunks::close(batch, part_key(of, xid, 0));
}

pub(super) fn part_key(of: &Assembly, xid: Xid, n: u32) -> PartKey {
    PartKey { flow: of.flow, incarnation: of.incarnation, session: of.session, xid, n }
}
