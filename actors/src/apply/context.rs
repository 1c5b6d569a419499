//! What the apply task of one flow is given.

use std::sync::Arc;

use trellara_storage::{FlowId, FlowName, InstanceId};

use super::GroupLimits;
use crate::flow::{EventSequence, FlowLink};

/// The engine as it shows itself in checkpoints and evidence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineIdentity {
    pub instance: InstanceId,
    /// Drawn anew at each start of the process.
    pub boot: u64,
    /// Configured name and host, for people.
    pub holder: String,
    pub version: String,
}

/// One flow's apply task: ports, links and limits. A task is one claim of the flow; every restart gets a
/// context of its own.
#[derive(Debug)]
pub struct ApplyContext<T, L, C> {
    pub flow: FlowId,
    pub name: FlowName,
    pub engine: EngineIdentity,
    pub limits: GroupLimits,
    pub target: Arc<T>,
    pub log: L,
    pub clock: C,
    pub link: FlowLink,
    pub events: EventSequence,
    /// Claim although another instance's lease is live; asked for by an operator, for this task only.
    pub take_over: bool,
}
