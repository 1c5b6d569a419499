//! The engine itself: health, version, stop.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use trellara_actors::flow::Phase;
use trellara_api::engine::{Health, Stopping, Version};

use crate::admin::actor::Asker;
use crate::admin::reply::Reply;
use crate::admin::{AdminState, time};

/// The process answers.
pub(super) async fn live() -> Json<Health> {
    Json(Health { ok: true, text: "alive".to_owned() })
}

/// Flows make progress: not one that needs someone, and none still on its way up.
pub(super) async fn ready(State(state): State<Arc<AdminState>>) -> (StatusCode, Json<Health>) {
    let flows = state.fleet.view().flows();
    let moving = flows.iter().filter(|flow| match flow.phase() {
        Phase::Streaming | Phase::CatchingUp => true,
        Phase::Failed
        | Phase::Fenced
        | Phase::Removing
        | Phase::Detached
        | Phase::LineageLost
        | Phase::Quarantined
        | Phase::Unavailable
        | Phase::LogFull
        | Phase::Paused
        | Phase::Retrying
        | Phase::NotSeeded
        | Phase::Connecting => false,
    });
    let (moving, all) = (moving.count(), flows.len());
    let ok = moving > 0 || all == 0;
    let status = if ok { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(Health { ok, text: format!("{moving} of {all} flows make progress") }))
}

pub(super) async fn version(State(state): State<Arc<AdminState>>) -> Json<Version> {
    Json(Version {
        version: state.engine.version.clone(),
        instance: state.settings().instance.clone(),
        instance_id: state.engine.instance_id.clone(),
        started: time(state.engine.started),
        pid: std::process::id(),
    })
}

/// Answers first; the shutdown that begins lets this answer out.
pub(super) async fn stop(State(state): State<Arc<AdminState>>, asker: Asker) -> Reply<Stopping> {
    state.record(&asker, "stop", "engine", None, "begun").await?;
    (state.levers.stop)();
    Ok(Json(Stopping { pid: std::process::id() }))
}
