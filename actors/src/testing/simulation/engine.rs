//! One engine: its store, its log, and the real capture and apply drivers of one flow.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use trellara_storage::families::{events, flows};
use trellara_storage::memory::Keep;
use trellara_storage::records::{Durable, FlowPart, QuarantineRecord};
use trellara_storage::{Durability, FlowId, InstanceId, MemoryStore, Store};

use super::executor::{Executor, SimClock, TaskId};
use super::log::SimLog;
use super::source::{SLOT, SimSource};
use super::target::SimTarget;
use crate::apply::{self, ApplyContext, ApplyExit, EngineIdentity, GroupLimits};
use crate::capture::{self, CaptureContext, CaptureExit, CaptureReport, CaptureSettings, LineageSettings};
use crate::failure::{Class, Code};
use crate::flow::{EventSequence, FlowLink};
use crate::ports::Clock;
use crate::quarantine::{Actor, discard, request_replay};

pub(super) const FLOW: FlowId = FlowId::new(1);
const PAUSE: Duration = Duration::from_secs(1);

/// What the drivers came to, seen from outside.
#[derive(Debug, Default)]
pub(super) struct Ends {
    /// The store failed: the process has to end.
    pub(super) store_failed: bool,
    pub(super) lineage_lost: Option<Code>,
    pub(super) target_lost: Option<Code>,
    pub(super) fenced: bool,
    /// A slot that no record speaks of: the process died between making it and remembering it.
    pub(super) orphan_slot: bool,
    pub(super) quarantined: Option<Box<QuarantineRecord>>,
    /// An exit that no fault of this world explains.
    pub(super) unexplained: Option<String>,
}

type SharedEnds = Arc<Mutex<Ends>>;

/// What the engine's connections reported, over all its processes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) adopted: usize,
    pub(super) redelivered: u64,
}

impl Tally {
    fn take(&mut self, report: &CaptureReport) {
        match report {
            CaptureReport::Lineage { adopted, .. } => self.adopted += usize::from(*adopted),
            CaptureReport::Progress(progress) => {
                self.redelivered = self.redelivered.max(progress.redelivered)
            }
            CaptureReport::Capturing | CaptureReport::PublicationsChanged(_) => {}
        }
    }
}

type SharedTally = Arc<Mutex<Tally>>;

/// Everything of one engine that outlives its process, and the process while it runs.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) number: u8,
    pub(super) store: Arc<MemoryStore>,
    source: Arc<SimSource>,
    target: Arc<SimTarget>,
    clock: SimClock,
    boot: u64,
    tasks: Vec<TaskId>,
    ends: SharedEnds,
    stop: watch::Sender<bool>,
    loses_evidence: bool,
    tally: SharedTally,
}

impl Engine {
    pub(super) fn new(
        number: u8,
        source: &SimSource,
        target: &SimTarget,
        clock: &SimClock,
        loses_evidence: bool,
    ) -> Self {
        let store = Arc::new(MemoryStore::new());
        Self {
            number,
            source: Arc::new(source.seen_by(number)),
            target: Arc::new(target.reached_with(Arc::clone(&store))),
            store,
            clock: clock.clone(),
            boot: 0,
            tasks: Vec::new(),
            ends: SharedEnds::default(),
            stop: watch::Sender::new(false),
            loses_evidence,
            tally: SharedTally::default(),
        }
    }

    pub(super) fn is_running(&self) -> bool {
        !self.tasks.is_empty()
    }

    pub(super) fn ends(&self) -> MutexGuard<'_, Ends> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether something ended that only a person, or a restart, sets going again.
    pub(super) fn needs_attention(&self) -> bool {
        let ends = self.ends();
        ends.store_failed || ends.orphan_slot || ends.quarantined.is_some() || ends.unexplained.is_some()
    }

    pub(super) fn tally(&self) -> Tally {
        *self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ends_handle(&self) -> SharedEnds {
        Arc::clone(&self.ends)
    }

    /// Starts the process from what its store holds.
    pub(super) fn start(&mut self, executor: &mut Executor) {
        self.boot += 1;
        self.stop = watch::Sender::new(false);
        *self.ends() = Ends::default();
        let log = SimLog::new(Arc::clone(&self.store), self.clock.clone(), self.loses_evidence);
        let lineage = flows::get(&*self.store, FLOW, FlowPart::Lineage).expect("the memory store reads");
        let durable: Option<Durable> =
            flows::get(&*self.store, FLOW, FlowPart::Durable).expect("the memory store reads");
        let link = FlowLink::new(lineage, durable.unwrap_or_default().progress);
        let newest = events::newest(&*self.store, FLOW, 1).expect("the memory store reads");
        let numbers = EventSequence::after(newest.first().map_or(0, |(number, _)| *number));
        let capture = self.capture(log.clone(), link.clone());
        let apply = self.apply(log.clone(), link, numbers);
        self.tasks = vec![
            executor.spawn(writer(log, self.ends_handle())),
            executor.spawn(capture_half(
                capture,
                self.stop.subscribe(),
                self.ends_handle(),
                Arc::clone(&self.tally),
            )),
            executor.spawn(apply_half(apply, self.stop.subscribe(), self.ends_handle())),
        ];
    }

    /// The process ends here and now; the disk keeps this much of what was not synced.
    pub(super) fn crash(&mut self, executor: &mut Executor, keep: Keep) {
        for task in self.tasks.drain(..) {
            executor.kill(task);
        }
        self.store.crash(keep);
    }

    /// The operator's answer to a parked transaction, while the process is down.
    pub(super) fn decide(&self, record: &QuarantineRecord, replay: bool) {
        let by =
            Actor { name: "operator".to_owned(), at: self.clock.now(), reason: Some("simulated".to_owned()) };
        let newest = events::newest(&*self.store, FLOW, 1).expect("the memory store reads");
        let numbers = EventSequence::after(newest.first().map_or(0, |(number, _)| *number));
        let decision = if replay {
            request_replay(&*self.store, record.transaction, by, &numbers)
        } else {
            discard(&*self.store, record.transaction, by, &record.digest.to_string(), &numbers)
        };
        let decision = decision.expect("an open record takes either decision");
        self.store.write(decision.batch, Durability::Synced).expect("the memory store writes");
    }

    fn capture(&self, log: SimLog, link: FlowLink) -> CaptureContext<SimSource, SimLog, SimClock> {
        CaptureContext {
            flow: FLOW,
            settings: CaptureSettings {
                lineage: LineageSettings {
                    slot: SLOT.to_owned(),
                    publications: vec!["p".to_owned()],
                    from_now: false,
                },
                log_max_bytes: u64::MAX,
                keepalive_interval: Duration::from_secs(10),
                look_interval: Duration::from_secs(60),
            },
            source: Arc::clone(&self.source),
            log,
            clock: self.clock.clone(),
            link,
        }
    }

    fn apply(
        &self,
        log: SimLog,
        link: FlowLink,
        events: EventSequence,
    ) -> ApplyContext<SimTarget, SimLog, SimClock> {
        let engine = EngineIdentity {
            instance: InstanceId::new([self.number; 16]),
            boot: self.boot,
            holder: format!("engine {}", self.number),
            version: "0".to_owned(),
        };
        ApplyContext {
            flow: FLOW,
            name: "sim:rows".parse().expect("a flow name"),
            engine,
            limits: GroupLimits { transactions: 5, changes: 40, bytes: 1_000_000 },
            target: Arc::clone(&self.target),
            log,
            clock: self.clock.clone(),
            link,
            events,
            take_over: false,
        }
    }
}

/// A writer ends only when a sync failed, and whoever watches it ends the process, even when nobody waited
/// for that sync any more.
async fn writer(log: SimLog, ends: SharedEnds) {
    log.write().await;
    ends.lock().unwrap_or_else(PoisonError::into_inner).store_failed = true;
}

/// Connects again and again, as a flow does, until something final happens.
async fn capture_half(
    context: CaptureContext<SimSource, SimLog, SimClock>,
    stop: watch::Receiver<bool>,
    ends: SharedEnds,
    tally: SharedTally,
) {
    let clock = context.clock.clone();
    let report = |report: CaptureReport| tally.lock().unwrap_or_else(PoisonError::into_inner).take(&report);
    loop {
        let exit = capture::run(context.clone(), stop.clone(), report).await;
        {
            let mut ends = ends.lock().unwrap_or_else(PoisonError::into_inner);
            match exit {
                CaptureExit::Failed(failure) if failure.code == Code::SlotMismatch => {
                    ends.orphan_slot = true;
                    return;
                }
                CaptureExit::Failed(failure) if failure.class == Class::Defect => {
                    ends.unexplained = Some(format!("capture ended: {failure}"));
                    return;
                }
                CaptureExit::Failed(_) => {}
                CaptureExit::Stopped => return,
                CaptureExit::LineageLost { code, .. } => {
                    ends.lineage_lost = Some(code);
                    return;
                }
                CaptureExit::LogFull => {
                    ends.unexplained = Some("the log has no budget here".to_owned());
                    return;
                }
                CaptureExit::Store(_) => {
                    ends.store_failed = true;
                    return;
                }
            }
        }
        clock.sleep(PAUSE).await;
    }
}

async fn apply_half(
    context: ApplyContext<SimTarget, SimLog, SimClock>,
    stop: watch::Receiver<bool>,
    ends: SharedEnds,
) {
    let exit = apply::run(context, stop, |_| {}).await;
    let mut ends = ends.lock().unwrap_or_else(PoisonError::into_inner);
    match exit {
        ApplyExit::Stopped => {}
        ApplyExit::Quarantined(record) => ends.quarantined = Some(record),
        ApplyExit::Failed(failure) => ends.unexplained = Some(format!("apply ended: {failure}")),
        ApplyExit::Fenced(_) => ends.fenced = true,
        ApplyExit::LineageLost { code, .. } => ends.target_lost = Some(code),
        ApplyExit::Store(_) => ends.store_failed = true,
    }
}
