//! Store backup.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use bytes::Bytes;
use trellara_api::store::{Backup, BackupRequest};
use trellara_api::{Problem, RequestCode};

use crate::admin::AdminState;
use crate::admin::actor::Asker;
use crate::admin::reply::{Reply, body};

pub(super) async fn backup(
    State(state): State<Arc<AdminState>>,
    asker: Asker,
    request: Bytes,
) -> Reply<Backup> {
    let BackupRequest { directory } = body(&request)?;
    let path = PathBuf::from(&directory);
    if !path.is_absolute() {
        return Err(Problem::new(RequestCode::RequestInvalid, "the folder's path must be absolute").into());
    }
    let maker = Arc::clone(&state);
    let made = tokio::task::spawn_blocking(move || (maker.levers.backup)(&path))
        .await
        .map_err(|error| Problem::new(RequestCode::Internal, error.to_string()))?;
    let outcome = made.as_ref().map_or_else(ToString::to_string, |bytes| format!("{bytes} bytes"));
    state.record(&asker, "store backup", &directory, None, &outcome).await?;
    let bytes = made.map_err(|error| Problem::new(RequestCode::BackupFailed, error.to_string()))?;
    Ok(Json(Backup { directory, bytes }))
}
