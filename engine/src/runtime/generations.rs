//! The generations of flows that live now, as the engine's keepers see them: what they know of the target
//! and of the slot, without asking them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use trellara_actors::flow::TargetView;
use trellara_storage::{FlowName, Lsn};

use crate::postgres::pool::Pool;

/// Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct Generations(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    living: Mutex<BTreeMap<FlowName, Generation>>,
    begun: Notify,
}

/// One flow's. Both receivers end with it.
#[derive(Clone, Debug)]
pub(super) struct Generation {
    pub(super) pool: Arc<Pool>,
    pub(super) lease: Duration,
    pub(super) target: watch::Receiver<TargetView>,
    pub(super) restart: watch::Receiver<Option<Lsn>>,
}

impl Generations {
    pub(super) fn begin(&self, flow: FlowName, generation: Generation) {
        self.0.living.lock().unwrap_or_else(PoisonError::into_inner).insert(flow, generation);
        self.0.begun.notify_one();
    }

    /// Resolves after a generation has begun.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(super) async fn begun(&self) {
        self.0.begun.notified().await;
    }

    /// Forgets those that are over.
    pub(super) fn living(&self) -> Vec<(FlowName, Generation)> {
        let mut living = self.0.living.lock().unwrap_or_else(PoisonError::into_inner);
        living.retain(|_, generation| generation.target.has_changed().is_ok());
        living.iter().map(|(flow, generation)| (flow.clone(), generation.clone())).collect()
    }

    /// The slot's restart position, as it was last read; it never goes back.
    pub(super) fn restart_lsn(&self, flow: &FlowName) -> Option<Lsn> {
        let living = self.0.living.lock().unwrap_or_else(PoisonError::into_inner);
        living.get(flow).and_then(|generation| *generation.restart.borrow())
    }
}
