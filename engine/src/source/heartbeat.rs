//! Heartbeats (I12): a transactional message written at the source at intervals, which comes back through
//! every stream of that database.
//!
//! One connection per source database, however many flows read from it, and only while one does.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};
use tokio_postgres::Client;
use tracing::{info, warn};

use crate::postgres::{Error, Session, connect};
use crate::settings::{Server, SourceSettings};

/// Flows know their heartbeat by this prefix.
const PREFIX: &str = "trellara";

/// All heartbeats of the engine.
#[derive(Clone, Debug, Default)]
pub struct Heartbeats {
    databases: Arc<Mutex<HashMap<Database, Weak<Beat>>>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Database {
    host: String,
    port: u16,
    name: String,
}

/// Keeps a database's heartbeat going.
#[derive(Clone, Debug)]
pub(super) struct Beating(#[expect(dead_code, reason = "held for its Drop")] Arc<Beat>);

#[derive(Debug)]
struct Beat(AbortHandle);

impl Drop for Beat {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Heartbeats {
    /// Joins the heartbeat of the source's database, starting it where there is none.
    pub(super) fn join(&self, settings: &SourceSettings, instance: &str) -> Beating {
        let server = &settings.server;
        let database =
            Database { host: server.host.clone(), port: server.port, name: server.database.clone() };
        let mut databases = self.databases.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(beat) = databases.get(&database).and_then(Weak::upgrade) {
            return Beating(beat);
        }
        databases.retain(|_, beat| beat.strong_count() > 0);
        let session = Session {
            application_name: format!("trellara_{instance}_heartbeat"),
            lock_timeout: server.connect_timeout,
        };
        let task = tokio::spawn(beat(server.clone(), session, settings.heartbeat_interval));
        let beat = Arc::new(Beat(task.abort_handle()));
        databases.insert(database, Arc::downgrade(&beat));
        Beating(beat)
    }
}

/// Beats until it is aborted. A failure is told once, and so is its end.
async fn beat(server: Server, session: Session, interval: Duration) {
    let mut client = None;
    let mut failing = false;
    loop {
        let beaten = timeout(server.connect_timeout * 2, once(&server, &session, &mut client)).await;
        let beaten = beaten.unwrap_or(Err(Error::TimedOut("heartbeat")));
        match &beaten {
            Ok(()) if failing => info!(database = server.database, "heartbeat is back"),
            Ok(()) => {}
            Err(error) if !failing => {
                let sqlstate = error.sqlstate().unwrap_or("none");
                warn!(database = server.database, sqlstate, "heartbeat failed, liveness is unproven");
            }
            Err(_) => {}
        }
        failing = beaten.is_err();
        if failing {
            client = None;
        }
        sleep(interval).await;
    }
}

async fn once(server: &Server, session: &Session, client: &mut Option<Client>) -> Result<(), Error> {
    let client = match client {
        Some(open) => open,
        None => {
            let open = connect(server, session).await?;
            // A source whose own standby is away would hold the beat, and its connection, for as long.
            open.batch_execute("SET synchronous_commit = local").await?;
            client.insert(open)
        }
    };
    client.execute("SELECT pg_logical_emit_message(true, $1, '')", &[&PREFIX]).await?;
    Ok(())
}
