//! Flows: list, one in full, its events.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::Uri;
use serde::Deserialize;
use trellara_api::flow::{EventList, FlowDetail, FlowList};
use trellara_api::{Problem, RequestCode, SelectorQuery};

use crate::admin::observe::Observed;
use crate::admin::reply::{Reply, query};
use crate::admin::view::{flow, status};
use crate::admin::{AdminState, settings_of};

/// Shown with a flow; more with `flow events`.
const EVENTS_SHOWN: usize = 10;
/// Kept per flow.
const MAX_EVENTS: usize = 10_000;

pub(super) async fn list(State(state): State<Arc<AdminState>>, uri: Uri) -> Reply<FlowList> {
    let chosen = state.chosen(&query::<SelectorQuery>(&uri)?.into())?;
    let settings = state.settings();
    let (desk, now) = (state.desk(), state.now());
    let line = |flow: &Arc<_>| {
        let flow: &trellara_actors::flow::FlowStatus = flow;
        flow::line(flow, settings_of(&settings, &flow.flow), desk, now)
    };
    let mut flows: Vec<_> = chosen.iter().map(line).collect();
    status::worst_first(&mut flows);
    Ok(Json(FlowList { at: now, flows, partial: Vec::new() }))
}

pub(super) async fn show(
    State(state): State<Arc<AdminState>>,
    Path(name): Path<String>,
) -> Reply<FlowDetail> {
    let status = state.one(&name)?;
    let events = state.events(status.id, EVENTS_SHOWN).await?;
    let mut observed = state.observe(vec![status]).await;
    let Some(observed) = observed.pop() else {
        return Err(Problem::new(RequestCode::Internal, "the flow could not be observed").into());
    };
    if let Observed { records: Err(error), .. } = observed {
        return Err(error.into());
    }
    let settings = state.settings();
    let own = settings_of(&settings, &observed.status.flow);
    let events = events.into_iter().map(flow::event).collect();
    Ok(Json(flow::detail(&observed, events, own, state.desk(), state.now())))
}

#[derive(Debug, Deserialize)]
struct Limit {
    limit: usize,
}

pub(super) async fn events(
    State(state): State<Arc<AdminState>>,
    Path(name): Path<String>,
    uri: Uri,
) -> Reply<EventList> {
    let limit = query::<Limit>(&uri)?.limit.min(MAX_EVENTS);
    let status = state.one(&name)?;
    let events = state.events(status.id, limit).await?.into_iter().map(flow::event).collect();
    Ok(Json(EventList { flow: status.flow.to_string(), events }))
}
