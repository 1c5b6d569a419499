//! What the capture task of one flow is given.

use std::sync::Arc;
use std::time::Duration;

use trellara_storage::FlowId;

use super::lineage::LineageSettings;
use crate::flow::FlowLink;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureSettings {
    pub lineage: LineageSettings,
    /// Budget of the flow's log in bytes.
    pub log_max_bytes: u64,
    /// Least time between two records of keepalive positions that nobody asked for.
    pub keepalive_interval: Duration,
    /// Between two looks at the source's catalog beside the stream.
    pub look_interval: Duration,
}

/// One flow's capture task: ports, links and limits. A task is one connection; every restart gets a context
/// of its own and the same link.
#[derive(Clone, Debug)]
pub struct CaptureContext<S, L, C> {
    pub flow: FlowId,
    pub settings: CaptureSettings,
    pub source: Arc<S>,
    pub log: L,
    pub clock: C,
    pub link: FlowLink,
}
