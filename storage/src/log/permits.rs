//! Byte permits: what a flow, and all flows together, may have waiting for the writer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{Error, FlowId};

const FLOW_BYTES: u32 = 4 * 1024 * 1024;
const TOTAL_BYTES: u32 = 64 * 1024 * 1024;
/// The least that one request costs; bounds the number of requests in flight.
const LEAST_BYTES: u32 = 4 * 1024;
/// Requests that can wait at once: the writer's channel holds as many, so it is never full.
pub(super) const MAX_REQUESTS: usize = (TOTAL_BYTES / LEAST_BYTES) as usize;

/// Held from before a request is queued until it was written.
#[derive(Debug)]
pub(super) struct Permit {
    _flow: OwnedSemaphorePermit,
    _total: OwnedSemaphorePermit,
}

/// The permits of one flow.
#[derive(Clone, Debug)]
pub(super) struct FlowPermits {
    flow: Arc<Semaphore>,
    total: Arc<Semaphore>,
}

impl FlowPermits {
    /// Waits for a permit; a request larger than the flow's whole share takes the whole share.
    pub(super) async fn take(&self, bytes: usize) -> Result<Permit, Error> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).clamp(LEAST_BYTES, FLOW_BYTES);
        let flow = Arc::clone(&self.flow).acquire_many_owned(bytes).await.map_err(|_| Error::Closed)?;
        let total = Arc::clone(&self.total).acquire_many_owned(bytes).await.map_err(|_| Error::Closed)?;
        Ok(Permit { _flow: flow, _total: total })
    }
}

/// The permits of all flows.
#[derive(Debug)]
pub(super) struct Permits {
    flows: Mutex<BTreeMap<FlowId, Arc<Semaphore>>>,
    total: Arc<Semaphore>,
}

impl Permits {
    pub(super) fn new() -> Self {
        Self { flows: Mutex::default(), total: Arc::new(Semaphore::new(TOTAL_BYTES as usize)) }
    }

    /// Every handle of one flow shares the flow's permits.
    pub(super) fn of(&self, flow: FlowId) -> FlowPermits {
        let mut flows = self.flows.lock().expect("nothing panics while the lock is held");
        let semaphore = flows.entry(flow).or_insert_with(|| Arc::new(Semaphore::new(FLOW_BYTES as usize)));
        FlowPermits { flow: Arc::clone(semaphore), total: Arc::clone(&self.total) }
    }
}
