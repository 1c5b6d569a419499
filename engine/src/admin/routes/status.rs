//! The three views of the fleet.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use trellara_api::status::{Diagnostics, Report, Summary};
use trellara_api::{Known, SelectorQuery};

use crate::admin::observe::Observed;
use crate::admin::reply::{Refusal, Reply, query};
use crate::admin::view::status::Around;
use crate::admin::view::{report as proof, status};
use crate::admin::{AdminState, time};
use crate::config::Settings;

impl AdminState {
    pub(super) fn around<'a>(&'a self, settings: &'a Settings) -> Around<'a> {
        Around {
            settings,
            desk: self.desk(),
            now: self.now(),
            started: time(self.engine.started),
            version: &self.engine.version,
            free_bytes: free_bytes(settings),
        }
    }

    /// The flows that a query chooses, with their evidence.
    pub(super) async fn asked_for(&self, uri: &Uri) -> Result<Vec<Observed>, Refusal> {
        let chosen = self.chosen(&query::<SelectorQuery>(uri)?.into())?;
        Ok(self.observe(chosen).await)
    }
}

fn free_bytes(settings: &Settings) -> Known<u64> {
    match rustix::fs::statvfs(&settings.data_dir) {
        Ok(disk) => Known::Value(disk.f_bavail.saturating_mul(disk.f_frsize)),
        Err(error) => Known::unknown(error.to_string()),
    }
}

pub(super) async fn summary(State(state): State<Arc<AdminState>>, uri: Uri) -> Reply<Summary> {
    let flows = state.asked_for(&uri).await?;
    let settings = state.settings();
    Ok(Json(status::summary(&flows, &state.around(&settings))))
}

pub(super) async fn diagnostics(State(state): State<Arc<AdminState>>, uri: Uri) -> Reply<Diagnostics> {
    let flows = state.asked_for(&uri).await?;
    let settings = state.settings();
    Ok(Json(status::diagnostics(&flows, &state.around(&settings))))
}

pub(super) async fn report(State(state): State<Arc<AdminState>>, uri: Uri) -> Reply<Report> {
    let flows = state.asked_for(&uri).await?;
    let now = state.now();
    Ok(Json(Report {
        at: now,
        flows: flows.iter().map(|observed| proof::of_flow(observed, now)).collect(),
        partial: flows.iter().filter_map(Observed::gap).collect(),
    }))
}
