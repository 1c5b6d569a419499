//! Quarantined transactions: list, evidence, replay, check, discard.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::Uri;
use bytes::Bytes;
use serde::Deserialize;
use trellara_actors::apply::Checked;
use trellara_actors::ports::Clock;
use trellara_actors::quarantine::Actor;
use trellara_api::quarantine::{
    Discard, DiscardRequest, FailureText, QuarantineDetail, QuarantineList, QuarantineState, Replay,
    ReplayRequest,
};
use trellara_api::{Problem, RequestCode, SelectorQuery};
use trellara_storage::families::{flows, quarantine};
use trellara_storage::records::{FlowIdentity, FlowPart, QuarantineRecord};
use trellara_storage::{FlowName, TransactionId};

use crate::admin::AdminState;
use crate::admin::actor::Asker;
use crate::admin::observe::Observed;
use crate::admin::reply::{Refusal, Reply, body, query};
use crate::admin::view::quarantine as view;
use crate::repair;

/// How long a replay is watched; a transaction that takes longer is reported as being replayed.
const REPLAY_WATCH: Duration = Duration::from_secs(20);
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ListQuery {
    all: bool,
}

pub(super) async fn list(State(state): State<Arc<AdminState>>, uri: Uri) -> Reply<QuarantineList> {
    let ListQuery { all } = query(&uri)?;
    let chosen = state.chosen(&query::<SelectorQuery>(&uri)?.into())?;
    let flows = state.observe(chosen).await;
    let desk = state.desk();
    let mut records: Vec<_> = flows
        .iter()
        .flat_map(|observed| observed.records().iter().map(|record| (record, &observed.status.flow)))
        .map(|(record, flow)| view::line(record, flow, desk))
        .filter(|line| all || line.state.is_open())
        .collect();
    records.sort_by_key(|record| std::cmp::Reverse(record.at));
    Ok(Json(QuarantineList {
        at: state.now(),
        records,
        partial: flows.iter().filter_map(Observed::gap).collect(),
    }))
}

pub(super) async fn show(
    State(state): State<Arc<AdminState>>,
    Path(id): Path<String>,
) -> Reply<QuarantineDetail> {
    let (record, flow) = state.find(&id).await?;
    Ok(Json(view::detail(&record, &flow, state.desk())))
}

impl AdminState {
    /// The record with this id or unique prefix, and the flow that it belongs to, removed ones included.
    async fn find(&self, id: &str) -> Result<(QuarantineRecord, FlowName), Refusal> {
        let wanted = id.to_ascii_uppercase();
        let found = self
            .log
            .read(move |store| {
                let mut found = quarantine::all(store)?;
                found.retain(|record| record.id.to_ascii_uppercase().starts_with(&wanted));
                if let Some(exact) = found.iter().position(|record| record.id.eq_ignore_ascii_case(&wanted)) {
                    found = vec![found.swap_remove(exact)];
                }
                let Some(record) = found.first() else { return Ok((found, None)) };
                let identity: Option<FlowIdentity> =
                    flows::get(store, record.transaction.flow, FlowPart::Identity)?;
                Ok::<_, trellara_storage::Error>((found, identity))
            })
            .await?;
        match found {
            (mut records, Some(identity)) if records.len() == 1 => Ok((records.remove(0), identity.name)),
            (records, _) if records.len() > 1 => {
                let detail = format!("{id:?} fits {} records", records.len());
                Err(Problem::new(RequestCode::NameAmbiguous, detail).into())
            }
            (_, _) => {
                let detail = format!("{id:?} matches no record");
                let problem = Problem::new(RequestCode::QuarantineNotFound, detail);
                Err(problem.hint("see them all: trellara quarantine list --all").into())
            }
        }
    }

    async fn state_of(&self, transaction: TransactionId) -> Result<Option<QuarantineRecord>, Refusal> {
        Ok(self.log.read(move |store| quarantine::get(store, transaction)).await?)
    }

    /// The record once the replay has ended one way or the other, or as it is when time is up.
    async fn replayed(&self, record: QuarantineRecord) -> Result<QuarantineRecord, Refusal> {
        let start = self.clock.elapsed();
        let mut newest = record;
        while self.clock.elapsed().saturating_sub(start) < REPLAY_WATCH {
            newest = self.state_of(newest.transaction).await?.unwrap_or(newest);
            if view::state(newest.state) != QuarantineState::Replaying {
                break;
            }
            self.clock.sleep(BETWEEN_LOOKS).await;
        }
        Ok(newest)
    }
}

pub(super) async fn replay(
    State(state): State<Arc<AdminState>>,
    asker: Asker,
    Path(id): Path<String>,
    request: Bytes,
) -> Reply<Replay> {
    let ReplayRequest { check } = body(&request)?;
    let (record, flow) = state.find(&id).await?;
    if check { try_it(&state, record, flow).await } else { carry_out(&state, &asker, record, flow).await }
}

/// Changes nothing, so it is not audited.
async fn try_it(state: &AdminState, record: QuarantineRecord, flow: FlowName) -> Reply<Replay> {
    let outcome = state.fleet.check(flow.clone(), record.id.clone()).await?;
    let failure = match outcome {
        Checked::WouldApply => None,
        Checked::WouldFail(failure) => Some(view::failure(&failure.detail)),
        Checked::Unanswered(failure) => {
            return Err(not_tried(format!("the target could not be asked: {failure}")));
        }
        Checked::NotNext(at) => {
            return Err(not_tried(format!("the target stands at {}, not before it", at.position)));
        }
        Checked::Fenced(row) => return Err(not_tried(format!("{} applies this flow", row.holder))),
        Checked::TargetLost => {
            return Err(not_tried("the checkpoint row is gone from the target".to_owned()));
        }
        Checked::NotInLog => {
            return Err(not_tried("the log does not hold the transaction any more".to_owned()));
        }
    };
    Ok(Json(answer(state, record.id, &flow, true, failure)))
}

fn not_tried(why: String) -> Refusal {
    Problem::new(RequestCode::NotNow, why).into()
}

async fn carry_out(
    state: &AdminState,
    asker: &Asker,
    record: QuarantineRecord,
    flow: FlowName,
) -> Reply<Replay> {
    let by = Actor { name: asker.name.clone(), reason: None, at: state.clock.now() };
    let asked = state.fleet.replay(flow.clone(), record.id.clone(), by).await;
    let outcome = asked.as_ref().map_or_else(ToString::to_string, |()| "begun".to_owned());
    state.record(asker, "quarantine replay", &record.id, None, &outcome).await?;
    asked?;
    let newest = state.replayed(record).await?;
    let failure = match view::state(newest.state) {
        QuarantineState::Replaying => {
            let detail = format!("{} is still being replayed", newest.id);
            return Err(Problem::new(RequestCode::TookTooLong, detail).into());
        }
        QuarantineState::Open => Some(view::failure(&newest.failure)),
        QuarantineState::Replayed
        | QuarantineState::ReplayedInPart
        | QuarantineState::Discarded
        | QuarantineState::Superseded
        | QuarantineState::Unknown => None,
    };
    Ok(Json(answer(state, newest.id, &flow, false, failure)))
}

fn answer(
    state: &AdminState,
    id: String,
    flow: &FlowName,
    check: bool,
    failure: Option<FailureText>,
) -> Replay {
    let applied = failure.is_none();
    let next = (!applied).then(|| repair::plan_command(flow, state.desk()));
    Replay { id, flow: flow.to_string(), check, applied, failure, next }
}

pub(super) async fn discard(
    State(state): State<Arc<AdminState>>,
    asker: Asker,
    Path(id): Path<String>,
    request: Bytes,
) -> Reply<Discard> {
    let DiscardRequest { reason, digest } = body(&request)?;
    let (record, flow) = state.find(&id).await?;
    let by = Actor { name: asker.name.clone(), reason: Some(reason.clone()), at: state.clock.now() };
    let asked = state.fleet.discard(flow.clone(), record.id.clone(), digest, by).await;
    let outcome = asked.as_ref().map_or_else(ToString::to_string, |()| "discarded".to_owned());
    state.record(&asker, "quarantine discard", &record.id, Some(&reason), &outcome).await?;
    asked?;
    let text = format!("discarded: {} changes left out for good, {flow} goes on behind it", record.changes);
    Ok(Json(Discard { id: record.id, flow: flow.to_string(), text }))
}
