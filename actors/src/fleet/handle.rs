//! The way of the admin API to the fleet: orders with typed answers, and the view that needs no order.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, Recipient};
use tokio::sync::{Semaphore, oneshot};
use trellara_storage::FlowName;

use super::diff::{FleetDiff, WantedFlow};
use super::observe::FleetView;
use super::supervisor::{FleetOrder, FleetSetup, Supervisor};
use crate::apply::Checked;
use crate::flow::order::{Answer, Decision, FlowOrder, OrderError};
use crate::flow::state::Pause;
use crate::ports::{Clock, FlowFactory, RemoveOptions, RemovedPart};
use crate::quarantine;

/// Orders under way at one time; the supervisor's mailbox has no bound of its own.
const ORDERS: usize = 64;
/// How long the supervisor's thread may take to start it.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// Clones speak to the same fleet.
#[derive(Clone)]
pub struct FleetHandle {
    orders: Recipient<FleetOrder>,
    permits: Arc<Semaphore>,
    view: FleetView,
}

impl FleetHandle {
    /// Starts the supervisor on its thread. Blocks until it answers.
    ///
    /// # Errors
    /// The thread does not answer.
    pub fn start<F: FlowFactory, C: Clock>(setup: FleetSetup<F, C>) -> io::Result<Self> {
        let view = setup.view.clone();
        let thread = setup.placement.supervisor().clone();
        let (made, there) = std::sync::mpsc::channel();
        thread.spawn_fn(move || drop(made.send(Supervisor::new(setup).start())));
        let address = there
            .recv_timeout(HANDSHAKE)
            .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "no answer from the control thread"))?;
        Ok(Self { orders: address.recipient(), permits: Arc::new(Semaphore::new(ORDERS)), view })
    }

    /// False once the supervisor itself is gone: then nothing watches the flows, and the process must end.
    pub fn is_alive(&self) -> bool {
        self.orders.connected()
    }

    /// What every flow shows, without asking anyone.
    pub fn view(&self) -> &FleetView {
        &self.view
    }

    /// The configuration's flows, and those that the store knows; answers with what changes by it.
    ///
    /// # Errors
    /// `Gone` while the fleet is stopping.
    pub async fn set_wanted(
        &self,
        wanted: Vec<WantedFlow>,
        stored: Vec<FlowName>,
    ) -> Result<FleetDiff, OrderError> {
        self.ask(|answer| FleetOrder::SetWanted { wanted, stored, answer }).await
    }

    /// Durable when it answers.
    ///
    /// # Errors
    /// `UnknownFlow`, `NotRunning`, `Busy`, `Refused`, `Store`, `Gone`.
    pub async fn pause(&self, flow: FlowName, pause: Pause) -> Result<(), OrderError> {
        self.ask(|answer| FleetOrder::ToFlow { flow, order: FlowOrder::Pause { pause, answer } }).await
    }

    /// Durable when it answers.
    ///
    /// # Errors
    /// As `pause`; `Refused(NotPaused)`.
    pub async fn resume(&self, flow: FlowName) -> Result<(), OrderError> {
        self.ask(|answer| FleetOrder::ToFlow { flow, order: FlowOrder::Resume { answer } }).await
    }

    /// A new generation, by the newest settings; ends Failed and Fenced. Answers when it is accepted.
    ///
    /// # Errors
    /// `UnknownFlow`, `Busy`, `Refused(Detached | Removing)`, `Gone`.
    pub async fn restart(&self, flow: FlowName, take_over: bool) -> Result<(), OrderError> {
        self.ask(|answer| FleetOrder::Restart { flow, take_over, answer }).await
    }

    /// Applies the parked transaction once more. Answers when the decision is durable; how the replay went
    /// shows in the record and in the flow's phase.
    ///
    /// # Errors
    /// As `pause`; `Refused(NotQuarantined | OtherQuarantine)`, `Quarantine`.
    pub async fn replay(
        &self,
        flow: FlowName,
        evidence: String,
        by: quarantine::Actor,
    ) -> Result<(), OrderError> {
        self.decide(flow, evidence, Decision::Replay, by).await
    }

    /// Passes the parked transaction without its effects. Answers when the decision is durable.
    ///
    /// # Errors
    /// As `replay`.
    pub async fn discard(
        &self,
        flow: FlowName,
        evidence: String,
        digest_prefix: String,
        by: quarantine::Actor,
    ) -> Result<(), OrderError> {
        self.decide(flow, evidence, Decision::Discard { digest_prefix }, by).await
    }

    /// Would the parked transaction apply now? Changes nothing.
    ///
    /// # Errors
    /// As `replay`.
    pub async fn check(&self, flow: FlowName, evidence: String) -> Result<Checked, OrderError> {
        self.ask(|answer| FleetOrder::ToFlow { flow, order: FlowOrder::Check { evidence, answer } }).await
    }

    /// Stops the flow and drops what it left on both sides. Answers when it is done, with the leftovers.
    ///
    /// # Errors
    /// `UnknownFlow`, `Busy`, `Store`, `Gone`.
    pub async fn remove(
        &self,
        flow: FlowName,
        options: RemoveOptions,
    ) -> Result<Vec<RemovedPart>, OrderError> {
        self.ask(|answer| FleetOrder::Remove { flow, options, answer }).await
    }

    /// Stops every flow in an orderly way and starts none any more. Answers when none is left.
    ///
    /// # Errors
    /// `Gone` when the supervisor is.
    pub async fn close(&self) -> Result<(), OrderError> {
        self.ask(|answer| FleetOrder::Close { answer }).await
    }

    /// Aborts what has not stopped.
    pub fn cut_off(&self) {
        self.orders.do_send(FleetOrder::CutOff);
    }

    async fn decide(
        &self,
        flow: FlowName,
        evidence: String,
        decision: Decision,
        by: quarantine::Actor,
    ) -> Result<(), OrderError> {
        let order = |answer| FlowOrder::Decide { evidence, decision, by, answer };
        self.ask(|answer| FleetOrder::ToFlow { flow, order: order(answer) }).await
    }

    async fn ask<T>(&self, order: impl FnOnce(Answer<T>) -> FleetOrder) -> Result<T, OrderError> {
        let _permit = self.permits.acquire().await.map_err(|_| OrderError::Gone)?;
        let (answer, answered) = oneshot::channel();
        self.orders.do_send(order(answer));
        answered.await.unwrap_or(Err(OrderError::Gone))
    }
}

impl std::fmt::Debug for FleetHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FleetHandle").field("view", &self.view).finish_non_exhaustive()
    }
}
