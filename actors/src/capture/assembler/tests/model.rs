//! Random transactions, how a stream may deliver them, and what must come out.

use proptest::prelude::*;
use proptest::sample::Index;
use trellara_storage::families::{chunks, relations};
use trellara_storage::memory::MemoryStore;
use trellara_storage::records::{Content, RelationRecord, TransactionRecord};
use trellara_storage::{Durability, Store, Timestamp, Xid};

use super::super::building::part_key;
use super::super::{Assembled, Assembler, Message, Whole};
use super::{abort, begin, commit, insert, relation, start, stream_commit};
use crate::failure::Failure;

const OID: u32 = 5;

/// One transaction: which sub-transaction (0 is the top) makes each change, which are rolled back.
#[derive(Clone, Debug)]
pub(super) struct Transaction {
    changes: Vec<(u32, usize)>,
    aborted: Vec<u32>,
    commits: bool,
    streamed: bool,
}

pub(super) fn plan() -> impl Strategy<Value = Vec<Transaction>> {
    let changes = prop::collection::vec((0..4u32, 1..90usize), 0..25);
    let transaction = (changes, prop::collection::vec(1..4u32, 0..3), 0..5u8, any::<bool>());
    let transaction = transaction.prop_map(|(changes, aborted, fate, streamed)| Transaction {
        changes,
        aborted,
        commits: fate > 0,
        streamed,
    });
    prop::collection::vec(transaction, 1..8)
}

pub(super) struct Delivery {
    pub(super) messages: Vec<Message>,
    /// Commit LSN and surviving bodies of every committed transaction.
    pub(super) expected: Vec<(u64, Vec<Vec<u8>>)>,
}

/// One transaction on its way.
struct Sending<'a> {
    plan: &'a Transaction,
    xid: u32,
    sent: usize,
    segments: u32,
    streams: bool,
}

impl Sending<'_> {
    fn body(&self, n: usize) -> Vec<u8> {
        let mut body = self.xid.to_be_bytes().to_vec();
        body.extend((0..self.plan.changes[n].1).map(|at| u8::try_from((n + at) % 251).unwrap()));
        body
    }

    fn survives(&self, n: usize) -> bool {
        !self.plan.aborted.contains(&self.plan.changes[n].0)
    }

    fn segment(&mut self, changes: usize, messages: &mut Vec<Message>) {
        messages.push(start(self.xid, self.segments == 0));
        messages.push(relation(Some(self.xid), OID, &["a"]));
        let until = self.plan.changes.len().min(self.sent + changes);
        for n in self.sent..until {
            messages.push(insert(Some(self.xid + self.plan.changes[n].0), OID, &self.body(n)));
        }
        messages.push(Message::StreamStop);
        self.sent = until;
        self.segments += 1;
    }

    /// The rest of the transaction and its end.
    fn end(&mut self, commit_lsn: u64, messages: &mut Vec<Message>) {
        let commits = self.plan.commits;
        if self.streams {
            self.segment(usize::MAX / 2, messages);
            messages.extend(self.plan.aborted.iter().map(|sub| abort(self.xid, self.xid + sub)));
            let top = if commits { stream_commit(self.xid, commit_lsn) } else { abort(self.xid, self.xid) };
            messages.push(top);
        } else if commits {
            messages.push(begin(commit_lsn, self.xid));
            messages.push(relation(None, OID, &["a"]));
            let survivors = (0..self.plan.changes.len()).filter(|&n| self.survives(n));
            messages.extend(survivors.map(|n| insert(None, OID, &self.body(n))));
            messages.push(commit(commit_lsn));
        }
    }
}

/// Transactions commit in plan order; before each commit segments of streamed ones come in as chosen.
pub(super) fn deliver(plan: &[Transaction], choices: Vec<Index>, may_stream: bool) -> Delivery {
    let mut choices = choices.into_iter();
    let mut choose = |below: usize| choices.next().map_or(0, |choice| choice.index(below));
    let sending = |(at, plan)| Sending {
        plan,
        xid: 1000 + 10 * u32::try_from(at).unwrap(),
        sent: 0,
        segments: 0,
        streams: may_stream && Transaction::streamed(plan),
    };
    let mut all: Vec<Sending<'_>> = plan.iter().enumerate().map(sending).collect();
    let (mut messages, mut expected) = (Vec::new(), Vec::new());
    for at in 0..all.len() {
        for _ in 0..choose(6) {
            let other = at + choose(plan.len() - at);
            if all[other].streams {
                all[other].segment(1 + choose(5), &mut messages);
            }
        }
        let commit_lsn = 100 * (at as u64 + 1);
        all[at].end(commit_lsn, &mut messages);
        if plan[at].commits {
            let survivors = (0..plan[at].changes.len()).filter(|&n| all[at].survives(n));
            expected.push((commit_lsn, survivors.map(|n| all[at].body(n)).collect()));
        }
    }
    Delivery { messages, expected }
}

impl Transaction {
    fn streamed(plan: &Transaction) -> bool {
        plan.streamed
    }
}

/// What came out of the assembler, written to a store as the driver does.
#[derive(Debug, Default)]
pub(super) struct Collected {
    pub(super) records: Vec<TransactionRecord>,
    pub(super) contents: Vec<(u64, Vec<Vec<u8>>)>,
    pub(super) relations: Vec<RelationRecord>,
    pub(super) heartbeats: usize,
    /// Parts and open marks left in the store at the end.
    pub(super) parts: usize,
    pub(super) open: usize,
    pub(super) most_buffered: usize,
}

pub(super) fn collect(assembler: &mut Assembler, messages: Vec<Message>) -> Result<Collected, Failure> {
    let store = MemoryStore::new();
    let mut collected = Collected::default();
    let mut out = Vec::new();
    for message in messages {
        assembler.on(message, &mut out)?;
        collected.most_buffered = collected.most_buffered.max(assembler.buffered);
        for assembled in out.drain(..) {
            match assembled {
                Assembled::Parts(batch) => store.write(batch, Durability::Buffered).unwrap(),
                Assembled::Transaction(whole) => record(&store, assembler, *whole, &mut collected),
            }
        }
    }
    let of = assembler.assembly();
    collected.relations = relations::of_history(&store, of.flow, of.incarnation).unwrap();
    collected.open = chunks::open(&store, of.flow, of.incarnation).unwrap().len();
    collected.parts = count_parts(&store);
    Ok(collected)
}

fn record(store: &MemoryStore, assembler: &Assembler, mut whole: Whole, collected: &mut Collected) {
    collected.heartbeats += usize::from(whole.is_heartbeat());
    store.write(whole.take_last_part(), Durability::Buffered).unwrap();
    let read_back = whole.read_back(assembler)(store).unwrap();
    if let Some(summary) = whole.summary() {
        assert_eq!(summary, read_back);
    }
    let record = TransactionRecord {
        header: trellara_storage::records::TransactionHeader {
            xid: whole.xid().get(),
            commit_lsn: whole.ended().commit_lsn.get(),
            end_lsn: whole.ended().end_lsn.get(),
            commit_time: 0,
            received: 0,
            digest: *read_back.digest.bytes(),
            changes: read_back.changes,
            bytes: read_back.bytes,
            origin: whole.origin.clone(),
        },
        content: whole.content.clone(),
    };
    let (batch, bytes) = whole.record(assembler.assembly(), read_back, Timestamp::default());
    assert!(bytes >= read_back.bytes);
    store.write(batch, Durability::Synced).unwrap();
    let of = assembler.assembly();
    let commit_lsn = trellara_storage::Lsn::new(record.header.commit_lsn);
    let logged = trellara_storage::families::log::get(store, of.flow, of.incarnation, commit_lsn);
    assert_eq!(logged.unwrap().unwrap().digest(), read_back.digest);
    collected.contents.push((record.header.commit_lsn, bodies(store, assembler, &record)));
    collected.records.push(record);
}

fn bodies(store: &MemoryStore, assembler: &Assembler, record: &TransactionRecord) -> Vec<Vec<u8>> {
    match &record.content {
        Content::Inline(block) => {
            let body = |offset: u32, length: u32| block.body[offset as usize..][..length as usize].to_vec();
            block.heads.iter().map(|head| body(head.offset, head.length)).collect()
        }
        Content::Chunked(manifest) => {
            let mut bodies = Vec::new();
            for (n, pinned) in (0..).zip(&manifest.parts) {
                let key = part_key(assembler.assembly(), Xid::new(record.header.xid), n);
                let part = chunks::get(store, key, pinned).unwrap();
                let block = part.block();
                for head in block.heads.iter() {
                    if !manifest.aborted.contains(&head.sub_xid.to_native()) {
                        let (offset, length) = (head.offset.to_native(), head.length.to_native());
                        bodies.push(block.body[offset as usize..][..length as usize].to_vec());
                    }
                }
            }
            bodies
        }
    }
}

fn count_parts(store: &MemoryStore) -> usize {
    let mut parts = 0;
    let visit = &mut |_: &[u8], _: &[u8]| {
        parts += 1;
        Ok(std::ops::ControlFlow::Continue(()))
    };
    let order = trellara_storage::store::Order::Ascending;
    store.scan(trellara_storage::Family::Chunks, &[0; 1], &[255; 1], order, visit).unwrap();
    parts
}
