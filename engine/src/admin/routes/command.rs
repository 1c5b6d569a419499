//! Orders to flows. Each is audited with what became of it, also when it was refused.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use bytes::Bytes;
use trellara_actors::flow::FlowStatus;
use trellara_actors::flow::order::OrderError;
use trellara_actors::flow::state::{Pause, PauseScope};
use trellara_actors::ports::{Clock, RemoveOptions, RemovedPart, RemovedState};
use trellara_api::flow::{
    FlowOutcome, FlowOutcomes, PauseRequest, Removal, RemovalState, RemovalStep, RemoveRequest,
    RestartRequest, ResumeRequest,
};
use trellara_api::{Problem, RequestCode};
use trellara_storage::records::AuditRecord;
use trellara_storage::{FlowName, Timestamp};

use crate::admin::AdminState;
use crate::admin::actor::Asker;
use crate::admin::reply::{Refusal, Reply, body, of_order};

const ORIGIN: &str = "admin socket";
const MICROS: u64 = 1_000_000;

impl AdminState {
    /// Writes the audit trail; returns once it is durable.
    pub(super) async fn record(
        &self,
        asker: &Asker,
        action: &str,
        subject: &str,
        reason: Option<&str>,
        outcome: &str,
    ) -> Result<(), Refusal> {
        let record = AuditRecord {
            at: self.clock.now(),
            actor: asker.name.clone(),
            origin: ORIGIN.to_owned(),
            action: action.to_owned(),
            subject: subject.to_owned(),
            reason: reason.map(str::to_owned),
            outcome: outcome.to_owned(),
            previous: String::new(),
        };
        self.audit.append(record).await?;
        Ok(())
    }

    /// Sends one order after the other, audits each, and says what became of it.
    async fn order(&self, asker: &Asker, order: &Order, flows: Vec<Arc<FlowStatus>>) -> Reply<FlowOutcomes> {
        let mut outcomes = Vec::new();
        for status in flows {
            let flow = status.flow.to_string();
            let problem = order.send(self, &status.flow).await.err().map(|error| of_order(&error));
            let outcome = problem.as_ref().map_or("done", |problem| problem.detail.as_str());
            self.record(asker, order.action(), &flow, order.reason(), outcome).await?;
            outcomes.push(FlowOutcome { flow, text: order.done().to_owned(), problem });
        }
        Ok(Json(FlowOutcomes { flows: outcomes }))
    }
}

/// What several flows can be told at once.
enum Order {
    Pause(Pause),
    Resume,
    Restart { take_over: bool },
}

impl Order {
    async fn send(&self, state: &AdminState, flow: &FlowName) -> Result<(), OrderError> {
        match self {
            Order::Pause(pause) => state.fleet.pause(flow.clone(), pause.clone()).await,
            Order::Resume => state.fleet.resume(flow.clone()).await,
            Order::Restart { take_over } => state.fleet.restart(flow.clone(), *take_over).await,
        }
    }

    /// In the audit trail.
    fn action(&self) -> &'static str {
        match self {
            Order::Pause(Pause { scope: PauseScope::Apply, .. }) => "flow pause",
            Order::Pause(Pause { scope: PauseScope::All, .. }) => "flow pause --capture",
            Order::Resume => "flow resume",
            Order::Restart { take_over: false } => "flow restart",
            Order::Restart { take_over: true } => "flow restart --take-over",
        }
    }

    fn reason(&self) -> Option<&str> {
        match self {
            Order::Pause(pause) => Some(&pause.why),
            Order::Resume | Order::Restart { .. } => None,
        }
    }

    /// For the one who asked.
    fn done(&self) -> &'static str {
        match self {
            Order::Pause(Pause { scope: PauseScope::Apply, .. }) => "paused, capture goes on",
            Order::Pause(Pause { scope: PauseScope::All, .. }) => "paused, capture too",
            Order::Resume => "resumed",
            Order::Restart { .. } => "restarting",
        }
    }
}

pub(super) async fn pause(
    State(state): State<Arc<AdminState>>,
    asker: Asker,
    request: Bytes,
) -> Reply<FlowOutcomes> {
    let request: PauseRequest = body(&request)?;
    if request.reason.trim().is_empty() {
        return Err(Problem::new(RequestCode::RequestInvalid, "a pause needs a reason").into());
    }
    let since = state.clock.now();
    let pause = Pause {
        scope: if request.capture { PauseScope::All } else { PauseScope::Apply },
        who: asker.name.clone(),
        why: request.reason,
        since,
        until: request.for_seconds.map(|seconds| later(since, seconds)),
    };
    let flows = state.acted_on(&request.select)?;
    state.order(&asker, &Order::Pause(pause), flows).await
}

fn later(since: Timestamp, seconds: u64) -> Timestamp {
    let micros = i64::try_from(seconds.saturating_mul(MICROS)).unwrap_or(i64::MAX);
    Timestamp::from_unix_micros(since.unix_micros().saturating_add(micros))
}

pub(super) async fn resume(
    State(state): State<Arc<AdminState>>,
    asker: Asker,
    request: Bytes,
) -> Reply<FlowOutcomes> {
    let request: ResumeRequest = body(&request)?;
    let flows = state.acted_on(&request.select)?;
    state.order(&asker, &Order::Resume, flows).await
}

pub(super) async fn restart(
    State(state): State<Arc<AdminState>>,
    asker: Asker,
    request: Bytes,
) -> Reply<FlowOutcomes> {
    let request: RestartRequest = body(&request)?;
    let flows = state.acted_on(&request.select)?;
    state.order(&asker, &Order::Restart { take_over: request.take_over }, flows).await
}

pub(super) async fn remove(
    State(state): State<Arc<AdminState>>,
    asker: Asker,
    Path(name): Path<String>,
    request: Bytes,
) -> Reply<Removal> {
    let RemoveRequest { dry_run, keep_slot } = body(&request)?;
    let flow = state.one(&name)?.flow.clone();
    let removed = state.fleet.remove(flow.clone(), RemoveOptions { keep_slot, dry_run }).await;
    if !dry_run {
        let left = |part: &RemovedPart| matches!(part.state, RemovedState::Left { .. });
        let outcome = match &removed {
            Ok(parts) if parts.iter().any(left) => "removed, something is left".to_owned(),
            Ok(_) => "removed".to_owned(),
            Err(error) => error.to_string(),
        };
        state.record(&asker, "flow remove", &flow.to_string(), None, &outcome).await?;
    }
    let steps = removed?.into_iter().map(step).collect();
    Ok(Json(Removal { flow: flow.to_string(), dry_run, steps }))
}

fn step(part: RemovedPart) -> RemovalStep {
    let (state, why, sql) = match part.state {
        RemovedState::Dropped => (RemovalState::Done, None, None),
        RemovedState::WouldDrop => (RemovalState::Planned, None, None),
        RemovedState::Kept => (RemovalState::Kept, None, None),
        RemovedState::Left { why, sql } => (RemovalState::Left, Some(why), sql),
    };
    RemovalStep { what: part.what, state, sql, why }
}
