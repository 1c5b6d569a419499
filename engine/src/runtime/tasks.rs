//! One flow's drivers, bound to its settings, connections and log.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use trellara_actors::apply::{
    self, ApplyContext, ApplyExit, ApplyReport, Checked, EngineIdentity, GroupLimits,
};
use trellara_actors::capture::{
    self, CaptureContext, CaptureExit, CaptureReport, CaptureSettings, LineageSettings,
};
use trellara_actors::flow::FlowLink;
use trellara_actors::flow::state::Parked;
use trellara_actors::ports::{FlowTasks, TaskContext};
use trellara_storage::log::FlowLogHandle;
use trellara_storage::{Error, FlowId};

use super::clock::SystemClock;
use super::generations::{Generation, Generations};
use crate::apply::PgTarget;
use crate::settings::FlowSettings;
use crate::source::Source;

/// Least time between two records of keepalive positions that nobody asked for.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// Between two looks at slot and publications beside a running stream.
const LOOK_INTERVAL: Duration = Duration::from_secs(60);

/// Everything that the tasks of one flow share.
#[derive(Debug)]
pub(super) struct EngineTasks {
    pub(super) flow: FlowId,
    pub(super) settings: FlowSettings,
    pub(super) engine: EngineIdentity,
    pub(super) source: Arc<Source>,
    pub(super) target: Arc<PgTarget<FlowLogHandle>>,
    pub(super) log: FlowLogHandle,
    pub(super) generations: Generations,
    pub(super) clock: SystemClock,
}

impl FlowTasks for EngineTasks {
    fn begin(&self, link: &FlowLink) {
        let generation = Generation {
            pool: Arc::clone(self.target.pool()),
            lease: self.settings.target.lease,
            target: link.target.subscribe(),
            restart: link.restart.subscribe(),
        };
        self.generations.begin(self.settings.name.clone(), generation);
    }

    fn capture(&self, context: TaskContext<CaptureReport>) -> BoxFuture<'static, CaptureExit> {
        let TaskContext { link, reports, stop, .. } = context;
        let capture = CaptureContext {
            flow: self.flow,
            settings: self.capture_settings(),
            source: Arc::clone(&self.source),
            log: self.log.clone(),
            clock: self.clock,
            link,
        };
        capture::run(capture, stop.receiver(), move |report| reports.send(report)).boxed()
    }

    fn apply(&self, context: TaskContext<ApplyReport>, take_over: bool) -> BoxFuture<'static, ApplyExit> {
        let TaskContext { link, events, reports, stop } = context;
        let apply = ApplyContext {
            flow: self.flow,
            name: self.settings.name.clone(),
            engine: self.engine.clone(),
            limits: self.limits(),
            target: Arc::clone(&self.target),
            log: self.log.clone(),
            clock: self.clock,
            link,
            events,
            take_over,
        };
        apply::run(apply, stop.receiver(), move |report| reports.send(report)).boxed()
    }

    fn check(&self, parked: &Parked) -> BoxFuture<'static, Result<Checked, Error>> {
        let (target, log) = (Arc::clone(&self.target), self.log.clone());
        let (instance, transaction) = (self.engine.instance, parked.transaction);
        async move { apply::check(&*target, &log, instance, transaction).await }.boxed()
    }

    fn log_max_bytes(&self) -> u64 {
        self.settings.log_max_bytes
    }
}

impl EngineTasks {
    fn capture_settings(&self) -> CaptureSettings {
        let source = &self.settings.source;
        CaptureSettings {
            lineage: LineageSettings {
                slot: source.slot.clone(),
                publications: source.publications.clone(),
                from_now: self.settings.from_now,
            },
            log_max_bytes: self.settings.log_max_bytes,
            keepalive_interval: KEEPALIVE_INTERVAL,
            look_interval: LOOK_INTERVAL,
        }
    }

    fn limits(&self) -> GroupLimits {
        let crate::settings::GroupLimits { transactions, changes, bytes } = self.settings.group;
        GroupLimits { transactions, changes, bytes }
    }
}
