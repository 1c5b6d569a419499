//! One flow's drivers, bound to its settings, connections and log.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use trellara_actors::apply::{self, ApplyContext, ApplyExit, ApplyReport, EngineIdentity, GroupLimits};
use trellara_actors::capture::{self, CaptureContext, CaptureExit, CaptureReport, CaptureSettings, LineageSettings};
use trellara_actors::flow::state::Parked;
use trellara_actors::ports::{CheckOutcome, FlowTasks, LogBudget, TaskContext};
use trellara_storage::FlowId;
use trellara_storage::log::FlowLogHandle;

use super::clock::SystemClock;
use super::usage::LogUsage;
use crate::apply::PgTarget;
use crate::settings::FlowSettings;
use crate::source::PgSource;

/// Least time between two records of keepalive positions that nobody asked for.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);

/// Everything that the tasks of one flow share.
#[derive(Debug)]
pub struct EngineTasks {
    pub flow: FlowId,
    pub settings: Arc<FlowSettings>,
    pub engine: EngineIdentity,
    pub source: Arc<PgSource>,
    pub target: Arc<PgTarget<FlowLogHandle>>,
    pub log: FlowLogHandle,
    pub usage: LogUsage,
    pub clock: SystemClock,
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
        }
    }

    fn limits(&self) -> GroupLimits {
        let crate::settings::GroupLimits { transactions, changes, bytes } = self.settings.group;
        GroupLimits { transactions, changes, bytes }
    }
}
