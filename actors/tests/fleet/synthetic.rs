//! Scripted flows: what capture and apply of each one do.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use trellara_actors::apply::{ApplyExit, ApplyProgress, ApplyReport, Checked};
use trellara_actors::capture::{CaptureExit, CaptureProgress, CaptureReport};
use trellara_actors::flow::FlowLink;
use trellara_actors::flow::state::Parked;
use trellara_actors::ports::{
    Checkpoint, FlowFactory, FlowTasks, NumberedLog, OpenFlow, RemoveOptions, RemovedPart, RemovedState,
    TaskContext, Token,
};
use trellara_storage::families::quarantine;
use trellara_storage::log::{FlowLogHandle, LogHandle};
use trellara_storage::records::{FailureDetail, Lineage, QuarantineRecord, QuarantineState, StartMode};
use trellara_storage::{
    Batch, Error, FlowId, FlowName, Incarnation, InstanceId, Lsn, Progress, Timestamp, TransactionDigest,
    TransactionId, Xid,
};

/// How often a scripted source commits.
const PACE: Duration = Duration::from_millis(20);

/// What a scripted flow does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Script {
    Healthy,
    /// Its apply task panics soon after each start.
    TaskPanics,
    /// Its apply task panics once.
    TaskPanicsOnce,
    /// The actor's handler panics once.
    HandlerPanicsOnce,
    /// Its apply claims and then does nothing.
    Stuck,
    /// Its tasks do not end when they are told to.
    Deaf,
    /// The actor's handler does not return, once, until the gate opens.
    MuteOnce,
    /// Apply stands before a transaction until a decision lets it pass.
    Poisoned,
}

pub(super) struct Synthetic {
    log: LogHandle,
    flows: Mutex<BTreeMap<FlowName, Arc<Flow>>>,
    numbers: AtomicU64,
    gate: Arc<Gate>,
}

/// Closed until it is opened.
#[derive(Default)]
pub(super) struct Gate(Mutex<bool>, Condvar);

impl Gate {
    pub(super) fn open(&self) {
        *self.0.lock().unwrap() = true;
        self.1.notify_all();
    }

    fn pass(&self) {
        drop(self.1.wait_while(self.0.lock().unwrap(), |open| !*open).unwrap());
    }
}

/// One scripted source and target, which outlive the generations of the flow.
pub(super) struct Flow {
    id: FlowId,
    script: Script,
    opened: AtomicU64,
    sprung: AtomicU64,
    committed: AtomicU64,
    applied: AtomicU64,
}

impl Synthetic {
    pub(super) fn new(log: LogHandle) -> Self {
        Self { log, flows: Mutex::default(), numbers: AtomicU64::new(1), gate: Arc::default() }
    }

    pub(super) fn script(&self, flow: &FlowName, script: Script) {
        let id = FlowId::new(u32::try_from(self.numbers.fetch_add(1, Ordering::Relaxed)).unwrap());
        let scripted = Flow {
            id,
            script,
            opened: AtomicU64::new(0),
            sprung: AtomicU64::new(0),
            committed: AtomicU64::new(10),
            applied: AtomicU64::new(10),
        };
        self.flows.lock().unwrap().insert(flow.clone(), Arc::new(scripted));
    }

    pub(super) fn gate(&self) -> &Gate {
        &self.gate
    }

    pub(super) fn log_of(&self, flow: &FlowName) -> FlowLogHandle {
        self.log.for_flow(self.flow(flow).id)
    }

    pub(super) fn id_of(&self, flow: &FlowName) -> FlowId {
        self.flow(flow).id
    }

    /// How many generations were opened.
    pub(super) fn opened(&self, flow: &FlowName) -> u64 {
        self.flow(flow).opened.load(Ordering::Relaxed)
    }

    fn flow(&self, flow: &FlowName) -> Arc<Flow> {
        Arc::clone(&self.flows.lock().unwrap()[flow])
    }
}

impl FlowFactory for Synthetic {
    type Log = FlowLogHandle;

    fn open(&self, name: &FlowName) -> BoxFuture<'static, Result<OpenFlow<FlowLogHandle>, Error>> {
        let flow = self.flow(name);
        flow.opened.fetch_add(1, Ordering::Relaxed);
        let (id, log) = (flow.id, self.log.for_flow(flow.id));
        let tasks = Box::new(ScriptedTasks { flow, log: log.clone(), gate: Arc::clone(&self.gate) });
        async move { Ok(OpenFlow { id, log, tasks: tasks as Box<dyn FlowTasks> }) }.boxed()
    }

    fn log_of(
        &self,
        name: &FlowName,
    ) -> BoxFuture<'static, Result<Option<NumberedLog<FlowLogHandle>>, Error>> {
        let flow = self.flow(name);
        let log = self.log.for_flow(flow.id);
        async move { Ok(Some((flow.id, log))) }.boxed()
    }

    fn remove(
        &self,
        _: &FlowName,
        options: RemoveOptions,
    ) -> BoxFuture<'static, Result<Vec<RemovedPart>, Error>> {
        let state = if options.dry_run { RemovedState::WouldDrop } else { RemovedState::Dropped };
        async move { Ok(vec![RemovedPart { what: "slot".to_owned(), state }]) }.boxed()
    }
}

struct ScriptedTasks {
    flow: Arc<Flow>,
    log: FlowLogHandle,
    gate: Arc<Gate>,
}

impl FlowTasks for ScriptedTasks {
    fn begin(&self, _: &FlowLink) {}

    fn capture(&self, context: TaskContext<CaptureReport>) -> BoxFuture<'static, CaptureExit> {
        capture(Arc::clone(&self.flow), context).boxed()
    }

    fn apply(&self, context: TaskContext<ApplyReport>, _: bool) -> BoxFuture<'static, ApplyExit> {
        apply(Arc::clone(&self.flow), self.log.clone(), context).boxed()
    }

    fn check(&self, _: &Parked) -> BoxFuture<'static, Result<Checked, Error>> {
        async { Ok(Checked::WouldApply) }.boxed()
    }

    fn log_max_bytes(&self) -> u64 {
        let scripted = matches!(self.flow.script, Script::HandlerPanicsOnce | Script::MuteOnce);
        let springs = scripted
            && self.flow.applied.load(Ordering::Relaxed) > 12
            && self.flow.sprung.fetch_add(1, Ordering::Relaxed) == 0;
        if springs && self.flow.script == Script::MuteOnce {
            self.gate.pass();
        }
        assert!(!springs || self.flow.script == Script::MuteOnce, "the handler panics as scripted");
        1 << 20
    }
}

async fn capture(flow: Arc<Flow>, mut context: TaskContext<CaptureReport>) -> CaptureExit {
    let lineage = lineage();
    context.link.lineage.send_replace(Some(lineage.clone()));
    context.reports.send(CaptureReport::Lineage { lineage, adopted: false });
    context.reports.send(CaptureReport::Capturing);
    let mut pace = tokio::time::interval(PACE);
    let mut transactions = 0;
    loop {
        let stopped = tokio::select! {
            biased;
            () = context.stop.raised() => flow.script != Script::Deaf,
            _ = pace.tick() => false,
        };
        if stopped {
            return CaptureExit::Stopped;
        }
        if flow.script == Script::Deaf {
            pace.tick().await;
        }
        transactions += 1;
        let durable = progress(flow.committed.fetch_add(1, Ordering::Relaxed) + 1);
        context.link.durable.send_replace(durable);
        context.reports.send(CaptureReport::Progress(CaptureProgress {
            captured: durable,
            durable,
            transactions,
            ..CaptureProgress::default()
        }));
    }
}

async fn apply(flow: Arc<Flow>, log: FlowLogHandle, mut context: TaskContext<ApplyReport>) -> ApplyExit {
    if flow.script == Script::Poisoned
        && let Some(record) = standing(&flow, &log).await
    {
        return ApplyExit::Quarantined(Box::new(record));
    }
    context.reports.send(ApplyReport::Claimed(checkpoint(flow.applied.load(Ordering::Relaxed))));
    let mut durable = context.link.durable.subscribe();
    let mut transactions = 0;
    loop {
        tokio::select! {
            biased;
            () = context.stop.raised(), if flow.script != Script::Deaf => return ApplyExit::Stopped,
            _ = durable.changed() => {}
        }
        if flow.script == Script::Stuck {
            continue;
        }
        let springs = flow.script == Script::TaskPanics
            || flow.script == Script::TaskPanicsOnce && flow.sprung.fetch_add(1, Ordering::Relaxed) == 0;
        assert!(!springs, "the task panics as scripted");
        let applied = *durable.borrow();
        flow.applied.store(applied.commit_lsn.get(), Ordering::Relaxed);
        transactions += 1;
        context.reports.send(ApplyReport::Progress(ApplyProgress {
            applied,
            transactions,
            changes: transactions,
            ..ApplyProgress::default()
        }));
    }
}

/// The open record of the poisoned transaction, made durable when there is none.
async fn standing(flow: &Flow, log: &FlowLogHandle) -> Option<QuarantineRecord> {
    let id = flow.id;
    let records = log.read(move |store| quarantine::of_flow(store, id)).await.unwrap();
    match records.into_iter().next() {
        Some(record) => (record.state == QuarantineState::Open).then_some(record),
        None => {
            let record = poison(id);
            let mut batch = Batch::new();
            quarantine::put(&mut batch, &record);
            log.submit(batch).await.unwrap().await.unwrap();
            Some(record)
        }
    }
}

fn poison(flow: FlowId) -> QuarantineRecord {
    QuarantineRecord {
        id: "Q-7F3K".to_owned(),
        transaction: TransactionId {
            flow,
            incarnation: Incarnation::FIRST,
            commit_lsn: Lsn::new(11),
            xid: Xid::new(7),
        },
        digest: TransactionDigest::new([0xAB; 16]),
        end_lsn: Lsn::new(12),
        commit_time: Timestamp::default(),
        at: Timestamp::default(),
        state: QuarantineState::Open,
        failure: FailureDetail {
            class: "row_data".to_owned(),
            code: "TRL-0102".to_owned(),
            sqlstate: Some("23505".to_owned()),
            ..FailureDetail::default()
        },
        change: Some(1),
        changes: 1,
        image: None,
        conflicting_row: None,
        source_relation: None,
        target_relation: None,
        checkpoint: Lsn::new(10),
        engine_version: "test".to_owned(),
        source_version: None,
        target_version: None,
        attempts: Vec::new(),
        resolution: None,
    }
}

fn lineage() -> Lineage {
    Lineage {
        incarnation: Incarnation::FIRST,
        system_identifier: 1,
        timeline: 1,
        slot: "slot".to_owned(),
        publications: Vec::new(),
        start: Lsn::new(1),
        start_mode: StartMode::Empty,
        started: Timestamp::default(),
    }
}

fn checkpoint(applied: u64) -> Checkpoint {
    Checkpoint {
        incarnation: Incarnation::FIRST,
        lineage: "1/slot".to_owned(),
        applied: progress(applied),
        digest: None,
        token: Token { instance: InstanceId::default(), boot: 1, generation: 1 },
        holder: "test".to_owned(),
        lease_live: true,
    }
}

fn progress(commit: u64) -> Progress {
    Progress { commit_lsn: Lsn::new(commit), position: Lsn::new(commit + 1) }
}
