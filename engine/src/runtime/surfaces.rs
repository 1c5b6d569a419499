//! The admin API on a thread and a runtime of its own, so that no load on the data runtime keeps an
//! operator from an answer.

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use anyhow::Context;
use futures_util::FutureExt;
use tokio::sync::{Notify, oneshot};
use trellara_actors::apply::EngineIdentity;
use trellara_actors::fleet::FleetHandle;
use trellara_storage::RocksStore;
use trellara_storage::log::{AuditTrail, LogHandle};

use super::clock::SystemClock;
use super::factory::EngineFactory;
use super::{descriptors, wanted};
use crate::admin::{self, AdminState, EngineFacts, Levers};
use crate::config::Settings;
use trellara_actors::ports::Clock;

/// What the API works with.
pub(super) struct Surface<'a> {
    pub(super) config: &'a Path,
    pub(super) settings: Arc<Settings>,
    pub(super) engine: &'a EngineIdentity,
    pub(super) host: String,
    pub(super) store: Arc<RocksStore>,
    pub(super) log: LogHandle,
    pub(super) fleet: FleetHandle,
    pub(super) factory: EngineFactory,
    pub(super) stop: Arc<Notify>,
    pub(super) clock: SystemClock,
}

/// The served API; dropping it without `end` leaves the thread to the process's end.
#[derive(Debug)]
pub(super) struct AdminThread {
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl AdminThread {
    /// Binds the socket, then serves it.
    ///
    /// # Errors
    /// The socket cannot be bound, or there is no thread.
    pub(super) fn start(surface: Surface<'_>) -> anyhow::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let path = surface.settings.admin_socket.clone();
        let server = {
            let _inside = runtime.enter();
            admin::bind(&path).with_context(|| format!("cannot open the admin socket {}", path.display()))?
        };
        let state = Arc::new(state(surface));
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name("admin".to_owned()).spawn(move || {
            let served = runtime.block_on(server.serve(state, stopped.map(|_| ())));
            if let Err(error) = served {
                tracing::error!(%error, "the admin socket failed");
            }
        })?;
        Ok(Self { stop, thread })
    }

    /// Answers what is under way, closes the socket and joins the thread. False when it panicked.
    pub(super) fn end(self) -> bool {
        let _ = self.stop.send(());
        self.thread.join().is_ok()
    }
}

fn state(surface: Surface<'_>) -> AdminState {
    let Surface { config, settings, engine, host, store, log, fleet, factory, stop, clock } = surface;
    let facts = EngineFacts {
        version: engine.version.clone(),
        instance_id: engine.instance.to_string(),
        started: clock.now(),
        config: config.to_owned(),
        host,
    };
    let levers = Levers {
        reconfigure: Box::new({
            let (fleet, log) = (fleet.clone(), log.clone());
            move |settings| reconfigure(fleet.clone(), log.clone(), factory.clone(), settings).boxed()
        }),
        backup: Box::new(move |path| store.backup(path).map(|backup| backup.bytes)),
        stop: Box::new(move || stop.notify_one()),
    };
    let audit = AuditTrail::new(log.clone());
    AdminState::new(facts, fleet, log, audit, levers, settings)
}

async fn reconfigure(
    fleet: FleetHandle,
    log: LogHandle,
    factory: EngineFactory,
    settings: Arc<Settings>,
) -> Result<(), String> {
    descriptors::suffice_for(settings.flows.len()).map_err(|error| error.to_string())?;
    factory.configure(&settings.flows);
    let stored = wanted::stored(&log).await.map_err(|error| error.to_string())?;
    let accepted = fleet.set_wanted(wanted::wanted(&settings.flows), stored).await;
    accepted.map(|_| ()).map_err(|error| error.to_string())
}
