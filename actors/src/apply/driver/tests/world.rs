//! A flow with a log of its own, a scripted target, and time that passes when somebody waits for it.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use futures_util::future::Ready;
use tokio::sync::watch;
use trellara_storage::families::{dedup, flows, log, quarantine, relations};
use trellara_storage::records::{
    ChangeBlock, ChangeHead, ColumnRecord, Content, DedupRecord, Lineage, Operation, QuarantineRecord,
    RelationRecord, ReplicaIdentity, StartMode, TransactionHeader, TransactionRecord,
};
use trellara_storage::{
    Batch, Durability, Error, FlowId, Incarnation, InstanceId, Lsn, MemoryStore, Progress, RelationDigest,
    RelationId, RelationVersion, Store, Timestamp, TransactionId, Xid,
};

use super::super::run;
use crate::apply::{ApplyContext, ApplyExit, ApplyReport, EngineIdentity, GroupLimits};
use crate::capture::TransactionHasher;
use crate::failure::{Failure, Place};
use crate::flow::{EventSequence, FlowLink};
use crate::ports::{Clock, FlowLog};
use crate::testing::scripted_target::{ScriptedTarget, answered};

pub(super) const FLOW: FlowId = FlowId::new(1);
pub(super) const START: Lsn = Lsn::new(50);
const DIGEST: RelationDigest = RelationDigest::new([9; 16]);

/// Waiting makes it later, and lets others run.
#[derive(Clone, Debug, Default)]
pub(super) struct TestClock(Arc<AtomicU64>);

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_micros(i64::try_from(self.0.load(Ordering::Relaxed)).unwrap())
    }

    fn elapsed(&self) -> Duration {
        Duration::from_micros(self.0.load(Ordering::Relaxed))
    }

    async fn sleep(&self, duration: Duration) {
        self.0.fetch_add(u64::try_from(duration.as_micros()).unwrap(), Ordering::Relaxed);
        tokio::task::yield_now().await;
    }

    fn random(&self) -> u64 {
        7
    }
}

/// The store without a writer thread.
#[derive(Clone, Debug, Default)]
pub(super) struct TestLog(pub(super) Arc<MemoryStore>);

impl FlowLog for TestLog {
    type Receipt = Ready<Result<(), Error>>;

    async fn submit(&self, batch: Batch) -> Result<Self::Receipt, Error> {
        tokio::task::yield_now().await;
        let written = self.0.write(batch, Durability::Synced);
        tokio::task::yield_now().await;
        Ok(futures_util::future::ready(written))
    }

    async fn submit_buffered(&self, batch: Batch) -> Result<(), Error> {
        self.0.write(batch, Durability::Buffered)
    }

    async fn read<R, F>(&self, query: F) -> R
    where
        R: Send + 'static,
        F: FnOnce(&dyn Store) -> R + Send + 'static,
    {
        query(&*self.0)
    }
}

/// Everything that outlives an engine, and the engine that runs.
#[derive(Debug)]
pub(super) struct World {
    pub(super) log: TestLog,
    pub(super) target: ScriptedTarget,
    pub(super) clock: TestClock,
    pub(super) link: FlowLink,
    pub(super) events: EventSequence,
    pub(super) limits: GroupLimits,
    pub(super) instance: u8,
    pub(super) take_over: bool,
    boot: u64,
    pub(super) reports: Arc<Mutex<Vec<ApplyReport>>>,
}

pub(super) fn at(n: u64) -> Lsn {
    Lsn::new(100 * n)
}

fn end(n: u64) -> Lsn {
    Lsn::new(100 * n + 10)
}

pub(super) fn id(n: u64) -> TransactionId {
    TransactionId { flow: FLOW, incarnation: Incarnation::FIRST, commit_lsn: at(n), xid: xid(n) }
}

fn xid(n: u64) -> Xid {
    Xid::new(u32::try_from(n).unwrap())
}

pub(super) fn lineage() -> Lineage {
    Lineage {
        incarnation: Incarnation::FIRST,
        system_identifier: 77,
        timeline: 1,
        slot: "trellara_f".to_owned(),
        publications: Vec::new(),
        start: START,
        start_mode: StartMode::Empty,
        started: Timestamp::default(),
    }
}

/// The n-th transaction of the log: two inserts.
pub(super) fn record(n: u64) -> TransactionRecord {
    let body = n.to_be_bytes().to_vec();
    let head = |offset| ChangeHead {
        operation: Operation::Insert,
        relation: 1,
        version: 1,
        sub_xid: 0,
        offset,
        length: 4,
    };
    let block = ChangeBlock { heads: vec![head(0), head(4)], body };
    let known = |_, _| Some(DIGEST);
    let mut hasher = TransactionHasher::new(at(n), xid(n), [], &known);
    hasher.block(&block).unwrap();
    let summary = hasher.finish();
    let header = TransactionHeader {
        xid: xid(n).get(),
        commit_lsn: at(n).get(),
        end_lsn: end(n).get(),
        commit_time: i64::try_from(n).unwrap(),
        received: i64::try_from(n).unwrap(),
        digest: *summary.digest.bytes(),
        changes: summary.changes,
        bytes: summary.bytes,
        origin: None,
    };
    TransactionRecord { header, content: Content::Inline(block) }
}

fn relation() -> RelationRecord {
    let column =
        ColumnRecord { name: "id".to_owned(), type_oid: 20, type_modifier: -1, type_name: None, key: true };
    RelationRecord {
        relation: RelationId::new(1),
        version: RelationVersion::new(1),
        digest: DIGEST,
        namespace: "public".to_owned(),
        name: "t".to_owned(),
        replica_identity: ReplicaIdentity::Default,
        columns: vec![column],
        valid_from: START,
        encoding: "UTF8".to_owned(),
    }
}

impl World {
    /// A log of `length` transactions, numbered from 1, all durable.
    pub(super) fn new(length: u64) -> Self {
        let log = TestLog::default();
        let mut batch = Batch::new();
        flows::put(&mut batch, FLOW, trellara_storage::records::FlowPart::Lineage, &lineage());
        relations::put(&mut batch, FLOW, Incarnation::FIRST, &relation());
        log.0.write(batch, Durability::Synced).unwrap();
        let durable = Progress { commit_lsn: Lsn::ZERO, position: START };
        let world = Self {
            log,
            target: ScriptedTarget::new(),
            clock: TestClock::default(),
            link: FlowLink::new(Some(lineage()), durable),
            events: EventSequence::after(0),
            limits: GroupLimits { transactions: 10, changes: 1_000, bytes: 1_000_000 },
            instance: 1,
            take_over: false,
            boot: 0,
            reports: Arc::default(),
        };
        (1..=length).for_each(|n| world.append(n));
        world
    }

    /// Another engine on the same flow: its own store with the same log, the same target.
    pub(super) fn rival(&self, length: u64) -> Self {
        Self { target: self.target.clone(), instance: self.instance + 1, ..Self::new(length) }
    }

    /// What capture does with the n-th transaction.
    pub(super) fn append(&self, n: u64) {
        let record = record(n);
        let mut batch = Batch::new();
        log::put(&mut batch, FLOW, Incarnation::FIRST, &record);
        let TransactionHeader { xid, digest, bytes, received, .. } = record.header;
        let received = DedupRecord { xid, digest, bytes, received, outcome: None };
        dedup::put(&mut batch, FLOW, Incarnation::FIRST, at(n), &received);
        self.log.0.write(batch, Durability::Synced).unwrap();
        self.link.durable.send_replace(Progress { commit_lsn: at(n), position: end(n) });
    }

    pub(super) fn poison(&self, n: u64, sqlstate: &str) {
        self.target.content().poison.insert(at(n), answered(Place::Change(1), sqlstate));
    }

    pub(super) fn poison_with(&self, n: u64, failure: Failure) {
        self.target.content().poison.insert(at(n), failure);
    }

    pub(super) fn effects(&self) -> Vec<u64> {
        self.target.content().effects.iter().map(|lsn| lsn.get() / 100).collect()
    }

    pub(super) fn applied(&self) -> Progress {
        self.target.content().row.as_ref().unwrap().applied
    }

    pub(super) fn quarantined(&self) -> Vec<QuarantineRecord> {
        quarantine::of_flow(&*self.log.0, FLOW).unwrap()
    }

    pub(super) fn events(&self) -> Vec<String> {
        let events = trellara_storage::families::events::newest(&*self.log.0, FLOW, 100).unwrap();
        events.into_iter().rev().map(|(_, event)| event.kind).collect()
    }

    pub(super) fn context(&mut self) -> ApplyContext<ScriptedTarget, TestLog, TestClock> {
        self.boot += 1;
        ApplyContext {
            flow: FLOW,
            name: "s1:sales".parse().unwrap(),
            engine: EngineIdentity {
                instance: InstanceId::new([self.instance; 16]),
                boot: self.boot,
                holder: format!("engine {}", self.instance),
                version: "0.1.0".to_owned(),
            },
            limits: self.limits,
            target: Arc::new(self.target.clone()),
            log: self.log.clone(),
            clock: self.clock.clone(),
            link: self.link.clone(),
            events: self.events.clone(),
            take_over: self.take_over,
        }
    }

    /// Runs an apply task until it ends, or until everything durable is applied.
    pub(super) fn run(&mut self) -> ApplyExit {
        let (target, link) = (self.target.clone(), self.link.clone());
        self.run_until(move || {
            let applied = target.content().row.as_ref().map(|row| row.applied);
            applied.is_some_and(|applied| applied.position >= link.durable.borrow().position)
        })
    }

    /// Runs an apply task until it ends by itself or `done` holds, which stops it.
    pub(super) fn run_until(&mut self, done: impl Fn() -> bool + Send + 'static) -> ApplyExit {
        let (stop, stopped) = watch::channel(false);
        let reports = Arc::clone(&self.reports);
        let report = move |report| reports.lock().unwrap().push(report);
        let mut task = Box::pin(sendable(run(self.context(), stopped, report)));
        block_on(std::future::poll_fn(move |cx| {
            if done() {
                stop.send_replace(true);
            }
            cx.waker().wake_by_ref();
            task.as_mut().poll(cx)
        }))
    }

    /// Runs an apply task and kills it after so many steps, unless it ended before; then the machine
    /// forgets what was not synced.
    pub(super) fn run_and_kill(&mut self, steps: usize) {
        let (_stop, stopped) = watch::channel(false);
        let mut task = Box::pin(run(self.context(), stopped, |_| {}));
        let mut left = steps;
        block_on(std::future::poll_fn(move |cx| {
            if left == 0 {
                return Poll::Ready(());
            }
            left -= 1;
            task.as_mut().poll(cx).map(drop)
        }));
        self.log.0.crash(trellara_storage::memory::Keep::Synced);
    }
}

pub(super) type Task = Pin<Box<dyn Future<Output = ApplyExit> + Send>>;

/// A task that nobody stops.
pub(super) fn task(world: &mut World) -> Task {
    let (stop, stopped) = watch::channel(false);
    let context = world.context();
    Box::pin(async move {
        let _stop = stop;
        run(context, stopped, |_| {}).await
    })
}

pub(super) fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// The task is spawned on a runtime of many threads.
fn sendable<F: Future + Send>(future: F) -> F {
    future
}
