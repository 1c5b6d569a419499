//! How a flow's halves are run, and how flows are opened and removed: what the supervisor and the flow
//! need of the engine. The engine binds settings, connections and drivers; tests bind scripted ones.

use futures_util::future::BoxFuture;
use trellara_storage::{Error, FlowId, FlowName};

use super::FlowLog;
use crate::apply::{ApplyExit, ApplyReport, Checked};
use crate::capture::{CaptureExit, CaptureReport};
use crate::flow::state::Parked;
use crate::flow::{EventSequence, FlowLink};
use crate::runtime::{Reports, StopSignal};

/// What a task of a flow is started with.
#[derive(Debug)]
pub struct TaskContext<R> {
    pub link: FlowLink,
    pub events: EventSequence,
    pub reports: Reports<R>,
    /// Raised when the task is to end in an orderly way.
    pub stop: StopSignal,
}

/// How full the flow's log is against its budget, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogBudget {
    pub used: u64,
    pub max: u64,
}

/// One flow's drivers. The futures run on the data runtime; dropping one ends it at any point.
pub trait FlowTasks: Send + Sync + 'static {
    /// A generation of the flow begins. Its senders are gone once it is over, tasks included.
    fn begin(&self, link: &FlowLink);

    fn capture(&self, context: TaskContext<CaptureReport>) -> BoxFuture<'static, CaptureExit>;

    /// `take_over`: claim although another engine's lease is live.
    fn apply(&self, context: TaskContext<ApplyReport>, take_over: bool) -> BoxFuture<'static, ApplyExit>;

    /// Applies the parked transaction and rolls back.
    fn check(&self, parked: &Parked) -> BoxFuture<'static, Result<Checked, Error>>;

    /// The budget of the flow's log in bytes.
    fn log_max_bytes(&self) -> u64;
}

/// A configured flow, ready to run.
pub struct OpenFlow<L> {
    pub id: FlowId,
    pub log: L,
    pub tasks: Box<dyn FlowTasks>,
}

impl<L> std::fmt::Debug for OpenFlow<L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenFlow").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A flow's number and its log handle.
pub type NumberedLog<L> = (FlowId, L);

/// What `flow remove` was asked to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemoveOptions {
    pub keep_slot: bool,
    /// Says what would be dropped, and drops nothing.
    pub dry_run: bool,
}

/// One thing of a removed flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemovedPart {
    /// `replication slot trellara_store_0001_retail_sales at store1`.
    pub what: String,
    pub state: RemovedState,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemovedState {
    Dropped,
    WouldDrop,
    Kept,
    /// Could not be dropped: an orphan, with the SQL that drops it where there is one.
    Left {
        why: String,
        sql: Option<String>,
    },
}

/// Makes flows out of configuration and durable state.
pub trait FlowFactory: Send + Sync + 'static {
    type Log: FlowLog;

    /// The flow's number, log handle and drivers by the newest configuration; a new flow gets a number.
    fn open(&self, flow: &FlowName) -> BoxFuture<'static, Result<OpenFlow<Self::Log>, Error>>;

    /// The number and log handle of a flow that may have left the configuration.
    fn log_of(&self, flow: &FlowName) -> BoxFuture<'static, Result<Option<NumberedLog<Self::Log>>, Error>>;

    /// Drops slot, checkpoint, outcomes and log, one step per side; keeps evidence and audit. May be
    /// repeated: what is gone already counts as dropped. The flow does not run.
    fn remove(
        &self,
        flow: &FlowName,
        options: RemoveOptions,
    ) -> BoxFuture<'static, Result<Vec<RemovedPart>, Error>>;
}
