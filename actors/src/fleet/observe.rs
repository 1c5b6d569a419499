//! What every flow shows, readable without asking any actor: a snapshot each, replaced as a whole.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use trellara_storage::{FlowName, Timestamp};

use crate::flow::phase::Reason;
use crate::flow::{Condition, FlowStatus, Phase};

/// The whole fleet. Clones show the same.
#[derive(Clone, Debug, Default)]
pub struct FleetView(Arc<RwLock<BTreeMap<FlowName, Arc<FlowCell>>>>);

/// One flow's place in the view; written by the flow, or by the supervisor while it has no actor.
#[derive(Debug)]
pub struct FlowCell {
    status: RwLock<Arc<FlowStatus>>,
    /// Monotonic milliseconds of the actor's newest sign of life.
    answered: AtomicU64,
}

impl FleetView {
    pub fn flow(&self, flow: &FlowName) -> Option<Arc<FlowStatus>> {
        self.cell(flow).map(|cell| cell.status())
    }

    /// Every flow, by name.
    pub fn flows(&self) -> Vec<Arc<FlowStatus>> {
        let flows = self.0.read().unwrap_or_else(PoisonError::into_inner);
        flows.values().map(|cell| cell.status()).collect()
    }

    pub(super) fn cell(&self, flow: &FlowName) -> Option<Arc<FlowCell>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(flow).cloned()
    }

    /// The flow's cell, made when it is new.
    pub(super) fn enter(&self, flow: &FlowName, reason: Reason, at: Timestamp) -> Arc<FlowCell> {
        let mut flows = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let cell = flows.entry(flow.clone()).or_insert_with(|| {
            let status = FlowStatus::bare(flow.clone(), 0, Condition { reason, since: at });
            Arc::new(FlowCell { status: RwLock::new(Arc::new(status)), answered: AtomicU64::new(0) })
        });
        Arc::clone(cell)
    }

    pub(super) fn leave(&self, flow: &FlowName) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(flow);
    }
}

impl FlowCell {
    pub fn status(&self) -> Arc<FlowStatus> {
        Arc::clone(&self.status.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn publish(&self, status: FlowStatus) {
        *self.status.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(status);
    }

    pub(crate) fn beat(&self, now: Duration) {
        self.answered.store(u64::try_from(now.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(super) fn answered(&self) -> Duration {
        Duration::from_millis(self.answered.load(Ordering::Relaxed))
    }

    /// For a flow without an actor: these hold now, beside what needs someone whether it runs or not.
    pub(super) fn show(&self, reasons: Vec<Reason>, deaths: u64, at: Timestamp) {
        let mut status = (*self.status()).clone();
        let before = std::mem::take(&mut status.conditions);
        let mut conditions: Vec<Condition> = reasons
            .into_iter()
            .map(|reason| {
                let held = before.iter().find(|held| held.reason.phase == reason.phase);
                Condition { since: held.map_or(at, |held| held.since), reason }
            })
            .collect();
        let shown = |phase| conditions.iter().any(|condition| condition.reason.phase == phase);
        let kept: Vec<Condition> =
            before.into_iter().filter(|held| stays(held.reason.phase) && !shown(held.reason.phase)).collect();
        conditions.extend(kept);
        conditions.sort_by_key(|held| held.reason.phase);
        status.conditions = conditions;
        status.deaths = deaths;
        status.work = Default::default();
        self.publish(status);
    }
}

/// What holds of a flow that does not run.
fn stays(phase: Phase) -> bool {
    match phase {
        Phase::LineageLost | Phase::Quarantined | Phase::Paused => true,
        Phase::Failed
        | Phase::Fenced
        | Phase::Removing
        | Phase::Detached
        | Phase::Unavailable
        | Phase::LogFull
        | Phase::NotSeeded
        | Phase::Retrying
        | Phase::Connecting
        | Phase::CatchingUp
        | Phase::Streaming => false,
    }
}
