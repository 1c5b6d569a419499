//! What one generation of a flow is made from.

use std::sync::Arc;

use super::core::{Begin, Identity};
use super::record::StoredFlow;
use crate::fleet::{FlowCell, RestartPolicy};
use crate::ports::OpenFlow;
use crate::runtime::{DataRuntime, TaskScope, Wheel};

#[derive(Debug)]
pub struct FlowSetup<L, C> {
    pub identity: Identity,
    pub open: OpenFlow<L>,
    pub stored: StoredFlow,
    pub begin: Begin,
    pub policy: RestartPolicy,
    pub data: DataRuntime,
    pub scope: TaskScope,
    pub cell: Arc<FlowCell>,
    pub clock: C,
    pub wheel: Arc<Wheel>,
}
