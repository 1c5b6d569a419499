//! The assembler of one connection: messages of the stream to whole transactions.
//!
//! Pure: it holds what has not ended yet and answers with batches and whole transactions. Changes stay
//! bytes. A transaction that outgrows one part, streamed or not, goes to chunk parts in arrival order, so
//! memory stays bounded however many are in progress; `building` holds one of them.
//!
//! The one danger: a rolled-back sub-transaction taking more, or less, than exactly its own changes with it.

mod building;
mod whole;

use std::collections::BTreeMap;

use trellara_storage::families::relations;
use trellara_storage::records::{Operation, RelationRecord};
use trellara_storage::{Batch, CaptureSession, FlowId, Incarnation, Lsn, RelationId, Timestamp, Xid};

use self::building::{Building, Change};
pub use self::whole::{Ended, Whole};
use super::defect::protocol;
use super::digest::Truncate;
use super::message::{Message, RelationMessage};
use super::relations::{Current, Relations};
use crate::failure::Failure;

/// Prefix of the logical messages that prove liveness (I12).
const HEARTBEAT_PREFIX: &str = "trellara";

/// Whose stream is assembled, and how much of it may wait in memory.
#[derive(Clone, Debug)]
pub struct Assembly {
    pub flow: FlowId,
    pub incarnation: Incarnation,
    pub session: CaptureSession,
    /// Encoding of the source's database, kept with every relation version.
    pub encoding: String,
    /// A part is written when it has reached this size.
    pub part_bytes: usize,
    /// The largest part in memory is written when all together exceed this.
    pub buffered_bytes: usize,
}

/// What the assembler hands on, to be carried out in order.
#[derive(Debug)]
pub enum Assembled {
    /// Parts and their upkeep; durable with the next synced batch of the flow.
    Parts(Batch),
    Transaction(Box<Whole>),
}

/// The transaction between Begin and Commit.
#[derive(Debug)]
struct Begun {
    final_lsn: Lsn,
    building: Building,
}

/// See the module.
#[derive(Debug)]
pub struct Assembler {
    of: Assembly,
    relations: Relations,
    /// What the stream has described on this connection, for transactions that are not streamed.
    current: Current,
    begun: Option<Begun>,
    streamed: BTreeMap<Xid, Building>,
    /// The streamed transaction whose segment is open.
    segment: Option<Xid>,
    /// Relation versions that go with the next batch.
    unwritten: Batch,
    /// End of the newest whole transaction.
    reached: Lsn,
    /// Bytes of all parts in memory.
    buffered: usize,
    ignored_messages: u64,
}

impl Assembler {
    /// `known` are the relation versions of the incarnation; `reached` is the durable position.
    pub fn new(of: Assembly, known: &[RelationRecord], reached: Lsn) -> Self {
        Self {
            of,
            relations: Relations::new(known),
            current: Current::new(),
            begun: None,
            streamed: BTreeMap::new(),
            segment: None,
            unwritten: Batch::new(),
            reached,
            buffered: 0,
            ignored_messages: 0,
        }
    }

    /// Takes one message in and appends what follows from it to `out`.
    ///
    /// # Errors
    /// `ProtocolDefect` when the message cannot follow the ones before it.
    pub fn on(&mut self, message: Message, out: &mut Vec<Assembled>) -> Result<(), Failure> {
        match message {
            Message::Begin { final_lsn, xid, commit_time: _ } => self.begin(final_lsn, xid),
            Message::Commit { commit_lsn, end_lsn, commit_time } => {
                self.commit(commit_lsn, end_lsn, commit_time, out)
            }
            Message::Origin { name } => {
                self.building(self.segment, "an origin")?.origin = Some(name);
                Ok(())
            }
            Message::Relation { xid, relation } => self.relation(xid, relation),
            Message::Change { xid, operation, relation, body } => {
                self.change(xid, operation, relation, &body, out)
            }
            Message::Truncate { xid, relations, body } => self.truncate(xid, &relations, &body, out),
            Message::Logical { xid, transactional, prefix, body, lsn: _ } => {
                self.logical(xid, transactional, &prefix, &body, out)
            }
            Message::StreamStart { xid, first_segment } => self.stream_start(xid, first_segment),
            Message::StreamStop => match self.segment.take() {
                Some(_) => Ok(()),
                None => Err(protocol("a stream segment ended that had not begun")),
            },
            Message::StreamCommit { xid, commit_lsn, end_lsn, commit_time } => {
                self.stream_commit(xid, commit_lsn, end_lsn, commit_time, out)
            }
            Message::StreamAbort { xid, sub_xid } => self.stream_abort(xid, sub_xid, out),
        }
    }

    /// The transaction that the stream is in the middle of, with its commit LSN where Begin named it.
    pub fn in_progress(&self) -> Option<(Option<Lsn>, Xid)> {
        match &self.begun {
            Some(begun) => Some((Some(begun.final_lsn), begun.building.xid())),
            None => self.segment.map(|xid| (None, xid)),
        }
    }

    /// Bytes of written parts whose transactions have not ended.
    pub fn unfinished_bytes(&self) -> u64 {
        let begun = self.begun.iter().map(|begun| &begun.building);
        begun.chain(self.streamed.values()).map(Building::written_bytes).sum()
    }

    /// Logical messages outside of transactions, which take no part in the flow.
    pub fn ignored_messages(&self) -> u64 {
        self.ignored_messages
    }

    pub fn assembly(&self) -> &Assembly {
        &self.of
    }

    fn begin(&mut self, final_lsn: Lsn, xid: Xid) -> Result<(), Failure> {
        if self.begun.is_some() || self.segment.is_some() {
            return Err(protocol("a transaction began inside of another"));
        }
        self.begun = Some(Begun { final_lsn, building: Building::new(xid) });
        Ok(())
    }

    fn commit(
        &mut self,
        commit_lsn: Lsn,
        end_lsn: Lsn,
        commit_time: Timestamp,
        out: &mut Vec<Assembled>,
    ) -> Result<(), Failure> {
        let begun = self.begun.take().ok_or_else(|| protocol("a transaction ended that had not begun"))?;
        if begun.final_lsn != commit_lsn {
            return Err(protocol(format!(
                "a transaction that began for {} ended at {commit_lsn}",
                begun.final_lsn
            )));
        }
        self.finish(begun.building, commit_lsn, end_lsn, commit_time, out)
    }

    fn finish(
        &mut self,
        building: Building,
        commit_lsn: Lsn,
        end_lsn: Lsn,
        commit_time: Timestamp,
        out: &mut Vec<Assembled>,
    ) -> Result<(), Failure> {
        if end_lsn <= commit_lsn {
            return Err(protocol(format!("the transaction at {commit_lsn} ends before it: {end_lsn}")));
        }
        self.buffered -= building.buffered();
        let ended = Ended { commit_lsn, end_lsn, commit_time };
        let whole = building.finish(&self.of, ended, &self.relations, &mut self.unwritten)?;
        self.reached = self.reached.max(end_lsn);
        out.push(Assembled::Transaction(Box::new(whole)));
        Ok(())
    }

    fn relation(&mut self, xid: Option<Xid>, message: RelationMessage) -> Result<(), Failure> {
        self.check_segment(xid)?;
        let relation = message.relation;
        let valid_from = self.begun.as_ref().map_or(self.reached, |begun| begun.final_lsn);
        let (version, new) = self.relations.version_of(message, valid_from, &self.of.encoding);
        if let Some(record) = new {
            relations::put(&mut self.unwritten, self.of.flow, self.of.incarnation, &record);
        }
        match self.segment.and_then(|top| self.streamed.get_mut(&top)) {
            Some(building) => building.current.insert(relation, version),
            None => self.current.insert(relation, version),
        };
        Ok(())
    }

    fn change(
        &mut self,
        xid: Option<Xid>,
        operation: Operation,
        relation: RelationId,
        body: &[u8],
        out: &mut Vec<Assembled>,
    ) -> Result<(), Failure> {
        self.building(xid, "a change")?;
        let version = self.version(relation)?;
        self.add(xid, Change { operation, relation: Some((relation, version)), body }, out)
    }

    fn truncate(
        &mut self,
        xid: Option<Xid>,
        relations: &[RelationId],
        body: &[u8],
        out: &mut Vec<Assembled>,
    ) -> Result<(), Failure> {
        self.building(xid, "a truncate")?;
        let flags = *body.first().ok_or_else(|| protocol("a truncate without option flags"))?;
        let relations = relations
            .iter()
            .map(|&relation| Ok((relation, self.version(relation)?)))
            .collect::<Result<Vec<_>, Failure>>()?;
        let first = *relations.first().ok_or_else(|| protocol("a truncate of no relation"))?;
        let body = Truncate { flags, relations }.body();
        self.add(xid, Change { operation: Operation::Truncate, relation: Some(first), body: &body }, out)
    }

    fn logical(
        &mut self,
        xid: Option<Xid>,
        transactional: bool,
        prefix: &str,
        body: &[u8],
        out: &mut Vec<Assembled>,
    ) -> Result<(), Failure> {
        if !transactional {
            self.ignored_messages += 1;
            return Ok(());
        }
        self.building(xid, "a transactional message")?.heartbeat |= prefix == HEARTBEAT_PREFIX;
        self.add(xid, Change { operation: Operation::Message, relation: None, body }, out)
    }

    fn stream_start(&mut self, xid: Xid, first_segment: bool) -> Result<(), Failure> {
        if self.begun.is_some() || self.segment.is_some() {
            return Err(protocol("a stream segment began inside of a transaction"));
        }
        if first_segment == self.streamed.contains_key(&xid) {
            return Err(protocol(format!("stream segments of transaction {xid} arrived out of order")));
        }
        self.streamed.entry(xid).or_insert_with(|| Building::new(xid));
        self.segment = Some(xid);
        Ok(())
    }

    fn stream_commit(
        &mut self,
        xid: Xid,
        commit_lsn: Lsn,
        end_lsn: Lsn,
        commit_time: Timestamp,
        out: &mut Vec<Assembled>,
    ) -> Result<(), Failure> {
        self.check_between("a streamed transaction ended")?;
        let unknown = || protocol(format!("streamed transaction {xid} ended that had not begun"));
        let mut building = self.streamed.remove(&xid).ok_or_else(unknown)?;
        self.current.append(&mut building.current);
        self.finish(building, commit_lsn, end_lsn, commit_time, out)
    }

    /// A transaction that is not known here has nothing here: it may have been aborted before it sent a
    /// change on this connection.
    fn stream_abort(&mut self, xid: Xid, sub_xid: Xid, out: &mut Vec<Assembled>) -> Result<(), Failure> {
        self.check_between("a streamed transaction was rolled back")?;
        if xid != sub_xid {
            if let Some(building) = self.streamed.get_mut(&xid) {
                building.abort(sub_xid);
            }
        } else if let Some(building) = self.streamed.remove(&xid) {
            self.buffered -= building.buffered();
            out.extend(building.discard(&self.of).map(Assembled::Parts));
        }
        Ok(())
    }

    fn check_between(&self, what: &str) -> Result<(), Failure> {
        if self.begun.is_some() || self.segment.is_some() {
            return Err(protocol(format!("{what} inside of another transaction")));
        }
        Ok(())
    }

    /// Messages name their transaction inside of segments, and only there.
    fn check_segment(&self, xid: Option<Xid>) -> Result<(), Failure> {
        match (self.segment, xid) {
            (Some(_), Some(_)) | (None, None) => Ok(()),
            (Some(_), None) => Err(protocol("a message in a stream segment names no transaction")),
            (None, Some(_)) => Err(protocol("a message outside of a stream segment names a transaction")),
        }
    }

    /// The transaction that `what` belongs to.
    fn building(&mut self, xid: Option<Xid>, what: &str) -> Result<&mut Building, Failure> {
        self.check_segment(xid)?;
        let building = match self.segment {
            Some(top) => self.streamed.get_mut(&top),
            None => self.begun.as_mut().map(|begun| &mut begun.building),
        };
        building.ok_or_else(|| protocol(format!("{what} outside of a transaction")))
    }

    fn version(&self, relation: RelationId) -> Result<trellara_storage::RelationVersion, Failure> {
        let current = match self.segment.and_then(|top| self.streamed.get(&top)) {
            Some(building) => &building.current,
            None => &self.current,
        };
        let undescribed = || protocol(format!("a change of relation {relation}, which was not described"));
        current.get(&relation).copied().ok_or_else(undescribed)
    }

    fn add(&mut self, xid: Option<Xid>, change: Change<'_>, out: &mut Vec<Assembled>) -> Result<(), Failure> {
        let Self { of, segment, streamed, begun, unwritten, .. } = self;
        let building = match segment {
            Some(top) => streamed.get_mut(top),
            None => begun.as_mut().map(|begun| &mut begun.building),
        };
        let building = building.ok_or_else(|| protocol("a change outside of a transaction"))?;
        let before = building.buffered();
        building.add(of, xid, change, unwritten, out);
        self.buffered = self.buffered - before + building.buffered();
        self.relieve(out);
        Ok(())
    }

    /// Writes the largest part in memory when all together have become too large.
    fn relieve(&mut self, out: &mut Vec<Assembled>) {
        if self.buffered <= self.of.buffered_bytes {
            return;
        }
        let begun = self.begun.iter_mut().map(|begun| &mut begun.building);
        let all = begun.chain(self.streamed.values_mut());
        if let Some(largest) = all.max_by_key(|building| building.buffered()) {
            self.buffered -= largest.buffered();
            largest.flush(&self.of, &mut self.unwritten, out);
        }
    }
}

#[cfg(test)]
mod tests;
