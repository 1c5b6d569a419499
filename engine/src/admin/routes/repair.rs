//! The repair plan, from what holds now.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use trellara_api::repair::Plan;
use trellara_storage::Lsn;

use crate::admin::observe::Observed;
use crate::admin::reply::Reply;
use crate::admin::view::flow;
use crate::admin::{AdminState, settings_of};
use crate::repair::{self, View};

pub(super) async fn plan(State(state): State<Arc<AdminState>>, uri: Uri) -> Reply<Plan> {
    let flows = state.asked_for(&uri).await?;
    let settings = state.settings();
    let seen: Vec<_> = flows
        .iter()
        .map(|observed| {
            let durable = observed.status.durable.commit_lsn;
            let durable = (durable != Lsn::ZERO).then(|| durable.to_string());
            (flow::conditions(observed, state.desk()), observed.open().cloned().collect::<Vec<_>>(), durable)
        })
        .collect();
    let views: Vec<View<'_>> = flows
        .iter()
        .zip(&seen)
        .map(|(observed, (conditions, open, durable))| View {
            flow: &observed.status.flow,
            conditions,
            open,
            settings: settings_of(&settings, &observed.status.flow),
            durable_lsn: durable.as_deref(),
        })
        .collect();
    let mut plan = repair::plan(&views, state.desk(), state.now());
    plan.partial = flows.iter().filter_map(Observed::gap).collect();
    Ok(Json(plan))
}
