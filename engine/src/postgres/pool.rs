//! Connections to targets: few, shared by all flows of a server, each leased by one flow at a time.
//!
//! The one danger: handing a connection on in a state that its next user does not expect. A lease that was
//! not returned clean closes its connection.

mod prepared;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

pub use prepared::Prepared;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_postgres::Client;
use trellara_actors::failure::{Failure, Place, classify};
use trellara_storage::FlowName;

use super::connect::connect;
use super::failure;
use super::session::Session;
use crate::settings::{Server, TargetSettings, TlsSettings};

/// An idle connection is closed when it is met after this time: target backends are not free.
const MAX_IDLE: Duration = Duration::from_secs(300);

/// Splits and huge transactions hold at most this share of a pool, so that ordinary groups find a place.
const HEAVY_SHARE: usize = 4;

/// What makes two flows share connections.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    host: String,
    port: u16,
    database: String,
    user: String,
    tls: TlsSettings,
    lock_timeout: Duration,
}

/// All pools of the process.
#[derive(Debug)]
pub struct Pools {
    application_name: String,
    pools: Mutex<HashMap<Key, Arc<Pool>>>,
}

/// Connections to one target database under one role.
#[derive(Debug)]
pub struct Pool {
    server: Server,
    session: Session,
    leases: Arc<Semaphore>,
    heavy: Arc<Semaphore>,
    idle: Mutex<Vec<Idle>>,
}

/// How long a lease is likely to be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    Ordinary,
    Heavy,
}

/// A session at the target and what was prepared on it.
#[derive(Debug)]
pub struct Connection {
    pub client: Client,
    pub prepared: Prepared,
    /// `server_version` as the server shows it.
    pub server_version: String,
    /// Schema `trellara` was found or made over this connection.
    pub schema_ready: bool,
}

#[derive(Debug)]
struct Idle {
    connection: Box<Connection>,
    flow: FlowName,
    since: Instant,
}

/// The right to use one connection. It goes back to the pool only after `give_back`.
#[derive(Debug)]
pub struct Lease {
    connection: Box<Connection>,
    pool: Arc<Pool>,
    flow: FlowName,
    _permits: (OwnedSemaphorePermit, Option<OwnedSemaphorePermit>),
}

impl Pools {
    pub fn new(instance: &str) -> Self {
        Self { application_name: format!("trellara_{instance}"), pools: Mutex::default() }
    }

    /// The pool for these settings. The first flow that asks sets its size and password source.
    pub fn pool(&self, settings: &TargetSettings) -> Arc<Pool> {
        let server = &settings.server;
        let key = Key {
            host: server.host.clone(),
            port: server.port,
            database: server.database.clone(),
            user: server.user.clone(),
            tls: server.tls.clone(),
            lock_timeout: settings.lock_timeout,
        };
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        let pool = pools.entry(key).or_insert_with(|| {
            let session = Session {
                application_name: self.application_name.clone(),
                lock_timeout: settings.lock_timeout,
            };
            Arc::new(Pool::new(server.clone(), session, settings.pool_max))
        });
        Arc::clone(pool)
    }
}

impl Pool {
    fn new(server: Server, session: Session, max: usize) -> Self {
        let max = max.max(1);
        Self {
            server,
            session,
            leases: Arc::new(Semaphore::new(max)),
            heavy: Arc::new(Semaphore::new((max / HEAVY_SHARE).max(1))),
            idle: Mutex::default(),
        }
    }

    /// Waits for a place, then returns the flow's own last connection, another idle one, or a new one.
    ///
    /// # Errors
    /// Whatever keeps a new connection from being made.
    ///
    /// # Cancel safety
    /// A place that was waited for is given back.
    pub async fn lease(self: &Arc<Self>, flow: &FlowName, load: Load) -> Result<Lease, Failure> {
        let asked = Instant::now();
        let heavy = match load {
            Load::Ordinary => None,
            Load::Heavy => Some(permit(&self.heavy).await),
        };
        let permits = (permit(&self.leases).await, heavy);
        metrics::histogram!("trellara_target_lease_wait_seconds").record(asked.elapsed().as_secs_f64());
        let connection = match self.take_idle(flow) {
            Some(connection) => connection,
            None => self.open().await?,
        };
        Ok(Lease { connection, pool: Arc::clone(self), flow: flow.clone(), _permits: permits })
    }

    /// Closes everything that is idle: after a failover every connection points to the old primary.
    pub fn forget(&self) {
        self.lock().clear();
    }

    fn take_idle(&self, flow: &FlowName) -> Option<Box<Connection>> {
        let mut idle = self.lock();
        idle.retain(|entry| !entry.connection.client.is_closed() && entry.since.elapsed() < MAX_IDLE);
        let own = idle.iter().rposition(|entry| entry.flow == *flow);
        match own {
            Some(at) => Some(idle.swap_remove(at).connection),
            None => idle.pop().map(|entry| entry.connection),
        }
    }

    async fn open(&self) -> Result<Box<Connection>, Failure> {
        let refused = |error: super::error::Error| classify(Place::TargetConnect, error.into_facts());
        let client = connect(&self.server, &self.session).await.map_err(refused)?;
        let asked = client.query_one("SELECT current_setting('server_version')", &[]);
        let answer = timeout(self.server.connect_timeout, asked)
            .await
            .map_err(|_| classify(Place::TargetConnect, failure::timed_out("server version")))?;
        let version = answer.and_then(|row| row.try_get(0));
        let server_version = version.map_err(|error| failure::failure(Place::TargetConnect, &error))?;
        Ok(Box::new(Connection {
            client,
            prepared: Prepared::default(),
            server_version,
            schema_ready: false,
        }))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lease {
    pub fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// Returns the connection, outside of any transaction, for the next user.
    pub fn give_back(self) {
        let Self { connection, pool, flow, _permits } = self;
        if !connection.client.is_closed() {
            pool.lock().push(Idle { connection, flow, since: Instant::now() });
        }
    }
}

async fn permit(semaphore: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    Arc::clone(semaphore).acquire_owned().await.expect("the pool's semaphores are never closed")
}
