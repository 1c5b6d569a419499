//! Where a position stands in the local log.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use trellara_api::stream::Location;
use trellara_api::{Problem, RequestCode};
use trellara_storage::Lsn;
use trellara_storage::log::locate::{Wanted, locate as locate_in};

use crate::admin::AdminState;
use crate::admin::reply::Reply;
use crate::admin::view::location::location;

pub(super) async fn locate(
    State(state): State<Arc<AdminState>>,
    Path((name, lsn)): Path<(String, String)>,
) -> Reply<Location> {
    let lsn: Lsn = lsn
        .parse()
        .map_err(|error| Problem::new(RequestCode::RequestInvalid, format!("{lsn:?}: {error}")))?;
    let status = state.one(&name)?;
    let nothing = || {
        let detail = format!("no history of {} is durable here yet", status.flow);
        Problem::new(RequestCode::NotNow, detail)
    };
    let id = status.id.ok_or_else(nothing)?;
    let found = state.log.read(move |store| locate_in(store, id, Wanted::Lsn(lsn))).await?;
    Ok(Json(location(&status, lsn, &found.ok_or_else(nothing)?)))
}
