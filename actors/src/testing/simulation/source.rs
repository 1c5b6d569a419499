//! A source as a list of committed transactions, a slot, and connections that break.
//!
//! Each transaction inserts rows with values that occur nowhere else, so that what became of it can be read
//! off the target.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use trellara_storage::records::{ColumnRecord, Operation, ReplicaIdentity};
use trellara_storage::{Lsn, RelationId, Timestamp, Xid};

use super::executor::SimClock;
use crate::capture::{Message, RelationMessage};
use crate::failure::{ErrorFacts, ErrorKind, Failure, Place, classify};
use crate::ports::{
    Clock, PublicationFacts, ReplicationStream, SlotFacts, SlotKind, SlotOrigin, SourceFacts, SourcePort,
    StreamEvent, WalStatus,
};

pub(super) const SLOT: &str = "trellara_sim";
const RELATION: RelationId = RelationId::new(16_400);
const FIRST_POSITION: u64 = 1_000;

/// One committed transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Committed {
    pub(super) xid: u32,
    pub(super) commit_lsn: Lsn,
    pub(super) end_lsn: Lsn,
    /// The rows that it inserts; every value is unique.
    pub(super) rows: Vec<u64>,
    /// How many bytes each row takes besides its value.
    padding: usize,
    streamed: bool,
    /// A sub-transaction that is rolled back makes this many changes in between.
    rolled_back: usize,
}

/// What the source holds.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) history: Vec<Committed>,
    pub(super) position: Lsn,
    pub(super) confirmed: Option<Lsn>,
    /// Where the slot began: what was committed before is not sent.
    pub(super) start: Lsn,
    /// What of `confirmed` outlives a crash of the source.
    persisted: Lsn,
    /// The newest position that each engine confirmed.
    pub(super) confirmed_by: BTreeMap<u8, Lsn>,
    /// The connection that uses the slot.
    active: Option<u64>,
    connections: u64,
    next_row: u64,
    /// Plants a source that claims the slot stands where the engine stands, and starts from there.
    pub(super) lies_about_slot: Option<Lsn>,
}

/// Shared by its connections.
#[derive(Clone, Debug)]
pub(super) struct SimSource {
    state: Arc<Mutex<Source>>,
    clock: SimClock,
    engine: u8,
}

impl SimSource {
    pub(super) fn new(clock: SimClock) -> Self {
        let position = Lsn::new(FIRST_POSITION);
        let state = Source {
            history: Vec::new(),
            position,
            confirmed: None,
            start: position,
            persisted: position,
            confirmed_by: BTreeMap::new(),
            active: None,
            connections: 0,
            next_row: 1,
            lies_about_slot: None,
        };
        Self { state: Arc::new(Mutex::new(state)), clock, engine: 0 }
    }

    /// The same source, as this engine sees it.
    pub(super) fn seen_by(&self, engine: u8) -> Self {
        Self { engine, ..self.clone() }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, Source> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn commit(&self) {
        let clock = &self.clock;
        let mut state = self.state();
        let large = clock.one_in(20);
        let rows = if large { 5 + clock.below(8) } else { 1 + clock.below(4) };
        let first = state.next_row;
        state.next_row += rows;
        let commit_lsn = Lsn::new(state.position.get() + 8 + clock.below(64));
        let end_lsn = Lsn::new(commit_lsn.get() + 8);
        let streamed = clock.one_in(3);
        let committed = Committed {
            xid: 700 + 10 * u32::try_from(first).expect("few rows"),
            commit_lsn,
            end_lsn,
            rows: (first..first + rows).collect(),
            padding: if large { 60_000 } else { 0 },
            streamed,
            rolled_back: if streamed { clock.index(3) } else { 0 },
        };
        state.history.push(committed);
        state.position = end_lsn;
    }

    /// Something else writes WAL.
    pub(super) fn write_elsewhere(&self) {
        let more = 8 + self.clock.below(200);
        let mut state = self.state();
        state.position = Lsn::new(state.position.get() + more);
    }

    /// The connection that uses the slot breaks.
    pub(super) fn cut(&self) {
        self.state().active = None;
    }

    /// Somebody drops the slot.
    pub(super) fn drop_slot(&self) {
        self.state().confirmed = None;
    }

    /// The server crashes: what the slot had confirmed since its last checkpoint is forgotten.
    pub(super) fn crash(&self) {
        let mut state = self.state();
        state.active = None;
        let persisted = state.persisted;
        state.confirmed = state.confirmed.map(|_| persisted);
    }

    pub(super) fn checkpoint(&self) {
        let mut state = self.state();
        state.persisted = state.confirmed.unwrap_or(state.persisted);
    }

    /// A file-level copy of an earlier moment takes the source's place, and goes on with other transactions.
    /// The slot stands where it stood then.
    pub(super) fn replace_history(&self, keep: usize) {
        let position = {
            let mut state = self.state();
            let position = state.position;
            state.active = None;
            state.history.truncate(keep);
            let end = state.history.last().map_or(Lsn::new(FIRST_POSITION), |last| last.end_lsn);
            state.confirmed = state.confirmed.map(|confirmed| confirmed.min(end));
            state.persisted = state.persisted.min(end);
            state.position = Lsn::new(end.get() + 3);
            state.next_row += 1_000_000;
            position
        };
        while self.state().position < position {
            self.commit();
        }
        self.commit();
    }
}

impl SourcePort for SimSource {
    type Stream = SimStream;

    async fn inspect(&self) -> Result<SourceFacts, Failure> {
        self.clock.dawdle(5).await;
        let state = self.state();
        let slot = state.confirmed.map(|confirmed| SlotFacts {
            kind: SlotKind::Logical,
            plugin: "pgoutput".to_owned(),
            same_database: true,
            temporary: false,
            two_phase: false,
            confirmed: Some(state.lies_about_slot.unwrap_or(confirmed)),
            restart: Some(confirmed),
            wal_status: Some(WalStatus::Reserved),
            invalidation: None,
            active_pid: state.active.map(|_| 1),
        });
        Ok(SourceFacts {
            system_identifier: 77,
            timeline: 1,
            timeline_history: Vec::new(),
            position: state.position,
            server_version: 150_000,
            encoding: "UTF8".to_owned(),
            slot,
            publications: vec![PublicationFacts { name: "p".to_owned(), oid: 9, digest: "d".to_owned() }],
            tables_with_rows: Vec::new(),
            now: self.clock.now(),
        })
    }

    async fn create_slot(&self) -> Result<SlotOrigin, Failure> {
        self.clock.dawdle(5).await;
        let mut state = self.state();
        if state.confirmed.is_some() {
            return Err(answered("55006"));
        }
        let consistent_point = state.position;
        state.confirmed = Some(consistent_point);
        state.persisted = consistent_point;
        state.start = consistent_point;
        Ok(SlotOrigin { consistent_point })
    }

    async fn open(&self) -> Result<SimStream, Failure> {
        self.clock.dawdle(5).await;
        let mut state = self.state();
        let Some(confirmed) = state.confirmed else { return Err(answered("42704")) };
        if state.active.is_some() {
            return Err(answered("55006"));
        }
        state.connections += 1;
        state.active = Some(state.connections);
        let from = state.lies_about_slot.unwrap_or(confirmed);
        let next = state.history.iter().take_while(|committed| committed.commit_lsn < from).count();
        Ok(SimStream {
            source: self.clone(),
            connection: state.connections,
            next,
            early: BTreeMap::new(),
            outgoing: VecDeque::new(),
            ready_at: Duration::ZERO,
        })
    }
}

/// One connection.
#[derive(Debug)]
pub(super) struct SimStream {
    source: SimSource,
    connection: u64,
    /// The next transaction of the history to be sent.
    next: usize,
    /// Changes of streamed transactions that were sent before their commit, by place in the history.
    early: BTreeMap<usize, usize>,
    outgoing: VecDeque<StreamEvent>,
    ready_at: Duration,
}

impl ReplicationStream for SimStream {
    async fn next(&mut self, events: &mut Vec<StreamEvent>) -> Result<(), Failure> {
        let clock = self.source.clock.clone();
        loop {
            clock.sleep(self.ready_at.saturating_sub(clock.elapsed())).await;
            if self.source.state().active != Some(self.connection) {
                return Err(cut());
            }
            if self.outgoing.is_empty() {
                self.produce();
            }
            let count = 1 + clock.index(12);
            let count = count.min(self.outgoing.len());
            events.extend(self.outgoing.drain(..count));
            self.ready_at = clock.elapsed() + Duration::from_millis(clock.below(40));
            if count > 0 {
                return Ok(());
            }
        }
    }

    async fn confirm(&mut self, position: Lsn) -> Result<(), Failure> {
        self.source.clock.dawdle(1).await;
        let mut state = self.source.state();
        if state.active != Some(self.connection) {
            return Err(cut());
        }
        state.confirmed = state.confirmed.max(Some(position));
        let newest = state.confirmed_by.entry(self.source.engine).or_default();
        *newest = position.max(*newest);
        Ok(())
    }

    async fn close(self) {
        self.source.clock.dawdle(1).await;
    }
}

impl Drop for SimStream {
    fn drop(&mut self) {
        let mut state = self.source.state();
        if state.active == Some(self.connection) {
            state.active = None;
        }
    }
}

impl SimStream {
    fn produce(&mut self) {
        let (clock, source) = (self.source.clock.clone(), self.source.clone());
        let state = source.state();
        let Some(committed) = state.history.get(self.next) else {
            self.ready_at = clock.elapsed() + Duration::from_millis(200 + clock.below(3_000));
            let reply_requested = clock.one_in(3);
            self.outgoing.push_back(StreamEvent::Keepalive { position: state.position, reply_requested });
            return;
        };
        if clock.one_in(6) {
            // Read up to the commit record, and no further.
            let position = committed.commit_lsn;
            self.outgoing.push_back(StreamEvent::Keepalive { position, reply_requested: clock.one_in(2) });
        }
        for (at, later) in state.history.iter().enumerate().skip(self.next).take(3) {
            if later.streamed && !self.early.contains_key(&at) && clock.one_in(2) {
                let changes = 1 + clock.index(later.rows.len());
                self.segment(later, 0, changes);
                self.early.insert(at, changes);
            }
        }
        if clock.one_in(10) {
            self.rolled_back_whole(&clock);
        }
        let sent = self.early.remove(&self.next);
        self.whole(committed, sent);
        self.next += 1;
    }

    fn whole(&mut self, committed: &Committed, sent: Option<usize>) {
        let (commit_lsn, end_lsn) = (committed.commit_lsn, committed.end_lsn);
        let xid = Xid::new(committed.xid);
        let commit_time = Timestamp::from_unix_micros(1);
        if committed.streamed {
            self.segment(committed, sent.unwrap_or(0), committed.rows.len());
            if committed.rolled_back > 0 {
                let sub_xid = Xid::new(committed.xid + 1);
                self.send(Message::StreamAbort { xid, sub_xid });
            }
            self.send(Message::StreamCommit { xid, commit_lsn, end_lsn, commit_time });
            return;
        }
        self.send(Message::Begin { final_lsn: commit_lsn, commit_time, xid });
        self.send(relation(None));
        for &row in &committed.rows {
            self.send(insert(None, row, committed.padding));
        }
        self.send(Message::Commit { commit_lsn, end_lsn, commit_time });
    }

    /// A streamed transaction that leaves nothing.
    fn rolled_back_whole(&mut self, clock: &SimClock) {
        let xid = Xid::new(4_000_000_000);
        self.send(Message::StreamStart { xid, first_segment: true });
        self.send(relation(Some(xid)));
        let padding = if clock.one_in(4) { 60_000 } else { 0 };
        for n in 0..1 + clock.below(8) {
            self.send(insert(Some(xid), u64::MAX - n, padding));
        }
        self.send(Message::StreamStop);
        self.send(Message::StreamAbort { xid, sub_xid: xid });
    }

    fn segment(&mut self, committed: &Committed, from: usize, to: usize) {
        let xid = Xid::new(committed.xid);
        self.send(Message::StreamStart { xid, first_segment: from == 0 });
        self.send(relation(Some(xid)));
        for &row in committed.rows.get(from..to).unwrap_or_default() {
            self.send(insert(Some(xid), row, committed.padding));
        }
        if from == 0 {
            for n in 0..committed.rolled_back {
                self.send(insert(Some(Xid::new(committed.xid + 1)), u64::MAX - n as u64, 0));
            }
        }
        self.send(Message::StreamStop);
    }

    fn send(&mut self, message: Message) {
        self.outgoing.push_back(StreamEvent::Message(message));
    }
}

fn relation(xid: Option<Xid>) -> Message {
    let column =
        ColumnRecord { name: "id".to_owned(), type_oid: 20, type_modifier: -1, type_name: None, key: true };
    let relation = RelationMessage {
        relation: RELATION,
        namespace: "public".to_owned(),
        name: "t".to_owned(),
        replica_identity: ReplicaIdentity::Default,
        columns: vec![column],
    };
    Message::Relation { xid, relation }
}

fn insert(xid: Option<Xid>, row: u64, padding: usize) -> Message {
    let mut body = row.to_be_bytes().to_vec();
    body.resize(8 + padding, 0);
    Message::Change { xid, operation: Operation::Insert, relation: RELATION, body: Bytes::from(body) }
}

fn cut() -> Failure {
    let kind = Some(ErrorKind::ConnectionLost);
    classify(Place::Stream, ErrorFacts { kind, ..ErrorFacts::default() })
}

fn answered(sqlstate: &str) -> Failure {
    let kind = Some(ErrorKind::Database { sqlstate: sqlstate.to_owned() });
    classify(Place::Stream, ErrorFacts { kind, ..ErrorFacts::default() })
}
