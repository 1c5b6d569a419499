//! The socket: opened for the engine's own user, with limits on size, time and number of requests.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use tokio::net::UnixListener;
use tokio::sync::Semaphore;
use trellara_api::{Problem, RequestCode};

use super::actor::Peer;
use super::reply::Refusal;
use super::{AdminState, routes};

const MAX_BODY_BYTES: usize = 64 << 10;
/// Longer than any answer that a client waits for; a backup of a large store takes longest.
const LONGEST: Duration = Duration::from_secs(600);
const REQUESTS_AT_ONCE: usize = 64;

/// A bound socket, not yet served.
#[derive(Debug)]
pub struct AdminServer {
    listener: UnixListener,
    path: PathBuf,
}

/// Opens the socket for the engine's own user. One that a dead engine left behind is replaced: the store's
/// lock already says that no other engine runs on this data.
///
/// # Errors
/// The path cannot be bound, or holds something other than a socket.
pub fn bind(path: &Path) -> io::Result<AdminServer> {
    match std::fs::symlink_metadata(path) {
        Ok(metadata) if metadata.file_type().is_socket() => std::fs::remove_file(path)?,
        Ok(_) => {
            let text = format!("{} exists and is no socket", path.display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(AdminServer { listener, path: path.to_owned() })
}

impl AdminServer {
    /// Answers until `stop` resolves and the requests under way are answered; then the socket is gone.
    ///
    /// # Errors
    /// The socket itself fails.
    pub async fn serve(
        self,
        state: Arc<AdminState>,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<()> {
        let service = router(state).into_make_service_with_connect_info::<Peer>();
        let served = axum::serve(self.listener, service).with_graceful_shutdown(stop).await;
        // Clients tell a stopped engine by the missing socket.
        let removed = std::fs::remove_file(&self.path);
        served.and(removed)
    }
}

fn router(state: Arc<AdminState>) -> Router {
    let permits = Arc::new(Semaphore::new(REQUESTS_AT_ONCE));
    routes::all()
        .fallback(|| async { Refusal(Problem::new(RequestCode::PathNotFound, "no such path")) })
        .layer(middleware::from_fn_with_state(permits, limited))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(state)
}

/// At most so many at once, each at most so long.
async fn limited(State(permits): State<Arc<Semaphore>>, request: Request, next: Next) -> Response {
    let answered = async {
        let _permit = permits.acquire().await.ok();
        next.run(request).await
    };
    match tokio::time::timeout(LONGEST, answered).await {
        Ok(response) => response,
        Err(_) => Refusal(Problem::new(RequestCode::TookTooLong, "the request was given up")).into_response(),
    }
}
