//! Reload of the configuration, as a diff.

use std::sync::{Arc, PoisonError};

use axum::Json;
use axum::extract::State;
use bytes::Bytes;
use trellara_api::config::{Reload, ReloadRequest};
use trellara_api::{Problem, RequestCode};

use crate::admin::AdminState;
use crate::admin::actor::Asker;
use crate::admin::reply::{Refusal, Reply, body};
use crate::config::{Diff, Overrides, Settings, diff, load};

pub(super) async fn reload(
    State(state): State<Arc<AdminState>>,
    asker: Asker,
    request: Bytes,
) -> Reply<Reload> {
    let ReloadRequest { dry_run, yes } = body(&request)?;
    let _alone = state.reloading.lock().await;
    let path = state.engine.config.clone();
    let wanted = tokio::task::spawn_blocking(move || load(&path, &Overrides::from_environment()))
        .await
        .map_err(|error| Problem::new(RequestCode::Internal, error.to_string()))?
        .map_err(|invalid| {
            Problem::new(RequestCode::ConfigurationInvalid, invalid.to_string())
                .hint("nothing changed; see also trellara config check")
        })?;
    let running = state.there();
    let Diff { mut report, .. } = diff(&running, &wanted);
    report.dry_run = dry_run;
    let held_back = report.is_refused() || (report.needs_yes && !yes);
    if dry_run || held_back {
        return Ok(Json(report));
    }
    take_into_service(&state, &asker, &running, wanted, &report).await?;
    report.applied = true;
    Ok(Json(report))
}

impl AdminState {
    /// The configuration in service without the flows that were removed meanwhile: what a removed flow was
    /// like binds nobody, and a reload that still names it enrols it again.
    fn there(&self) -> Settings {
        let mut settings = Settings::clone(&self.settings());
        settings.flows.retain(|flow| self.fleet.view().flow(&flow.name).is_some());
        settings
    }
}

async fn take_into_service(
    state: &AdminState,
    asker: &Asker,
    running: &Settings,
    wanted: Settings,
    report: &Reload,
) -> Result<(), Refusal> {
    // What takes a restart stays as it is, so that the next diff still shows it.
    let next = Arc::new(Settings { flows: wanted.flows, ..running.clone() });
    let taken = (state.levers.reconfigure)(Arc::clone(&next)).await;
    let outcome = match &taken {
        Ok(()) => format!(
            "{} added, {} changed, {} detached",
            report.added.len(),
            report.changed.len(),
            report.detached.len()
        ),
        Err(error) => error.clone(),
    };
    if taken.is_ok() {
        *state.running.write().unwrap_or_else(PoisonError::into_inner) = next;
    }
    let subject = state.engine.config.display().to_string();
    state.record(asker, "config reload", &subject, None, &outcome).await?;
    taken.map_err(|error| Problem::new(RequestCode::Internal, error).into())
}
