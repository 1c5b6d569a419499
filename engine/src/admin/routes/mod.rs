//! The routes, one file per group of endpoints.

mod command;
mod config;
mod engine;
mod flow;
mod quarantine;
mod repair;
mod status;
mod store;
mod stream;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use trellara_api::path;

use super::AdminState;

pub(super) fn all() -> Router<Arc<AdminState>> {
    Router::new()
        .route(path::LIVE, get(engine::live))
        .route(path::READY, get(engine::ready))
        .route(path::VERSION, get(engine::version))
        .route(path::STOP, post(engine::stop))
        .route(path::STATUS_SUMMARY, get(status::summary))
        .route(path::STATUS_DIAGNOSTICS, get(status::diagnostics))
        .route(path::STATUS_REPORT, get(status::report))
        .route(path::FLOWS, get(flow::list))
        .route(path::FLOW, get(flow::show))
        .route(path::FLOW_EVENTS, get(flow::events))
        .route(path::FLOW_REMOVE, post(command::remove))
        .route(path::FLOW_LOCATE, get(stream::locate))
        .route(path::PAUSE, post(command::pause))
        .route(path::RESUME, post(command::resume))
        .route(path::RESTART, post(command::restart))
        .route(path::QUARANTINE, get(quarantine::list))
        .route(path::QUARANTINE_RECORD, get(quarantine::show))
        .route(path::QUARANTINE_REPLAY, post(quarantine::replay))
        .route(path::QUARANTINE_DISCARD, post(quarantine::discard))
        .route(path::REPAIR_PLAN, get(repair::plan))
        .route(path::CONFIG_RELOAD, post(config::reload))
        .route(path::STORE_BACKUP, post(store::backup))
}
