//! The admin API: HTTP and JSON on a Unix socket that only the engine's own user may open.
//!
//! Owns routes, limits, who asked, and the translation from what the fleet shows to what the API says.
//! Decides nothing about a flow: orders go to the fleet, the answer says what became of them. Status is
//! partial when a side is away: an unknown field says why, it never fails the whole. Every mutation is
//! audited with its actor. The one danger: a mutation that is carried out and not recorded.

mod actor;
mod observe;
mod reply;
mod routes;
mod select;
mod server;
mod view;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use futures_util::future::BoxFuture;
use trellara_actors::fleet::FleetHandle;
use trellara_actors::ports::Clock;
use trellara_api::Time;
use trellara_storage::log::{AuditTrail, LogHandle};
use trellara_storage::{FlowName, Timestamp};

pub use server::{AdminServer, bind};

use crate::config::Settings;
use crate::repair::Desk;
use crate::runtime::SystemClock;
use crate::settings::FlowSettings;

/// What does not change while the engine runs.
#[derive(Clone, Debug)]
pub struct EngineFacts {
    pub version: String,
    /// The id kept in `data_dir`, hexadecimal.
    pub instance_id: String,
    pub started: Timestamp,
    /// Printed commands end with it.
    pub config: PathBuf,
    /// Name of this machine, where printed commands run.
    pub host: String,
}

/// Takes a checked configuration into service.
pub type Reconfigure = dyn Fn(Arc<Settings>) -> BoxFuture<'static, Result<(), String>> + Send + Sync;
/// Makes a store backup in a folder that does not exist yet and says how many bytes it has. Blocks.
pub type MakeBackup = dyn Fn(&Path) -> Result<u64, trellara_storage::Error> + Send + Sync;
/// Begins an orderly shutdown and returns at once.
pub type BeginStop = dyn Fn() + Send + Sync;

/// What the composition root does for the API.
pub struct Levers {
    pub reconfigure: Box<Reconfigure>,
    pub backup: Box<MakeBackup>,
    pub stop: Box<BeginStop>,
}

impl std::fmt::Debug for Levers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Levers")
    }
}

/// Everything that the routes work with.
#[derive(Debug)]
pub struct AdminState {
    pub engine: EngineFacts,
    pub fleet: FleetHandle,
    pub log: LogHandle,
    pub audit: AuditTrail,
    pub clock: SystemClock,
    pub levers: Levers,
    running: RwLock<Arc<Settings>>,
    /// One reload at a time, so that each compares with what the one before left.
    reloading: tokio::sync::Mutex<()>,
}

impl AdminState {
    pub fn new(
        engine: EngineFacts,
        fleet: FleetHandle,
        log: LogHandle,
        audit: AuditTrail,
        levers: Levers,
        settings: Arc<Settings>,
    ) -> Self {
        let config = std::path::absolute(&engine.config).unwrap_or_else(|_| engine.config.clone());
        Self {
            engine: EngineFacts { config, ..engine },
            fleet,
            log,
            audit,
            clock: SystemClock::new(),
            levers,
            running: RwLock::new(settings),
            reloading: tokio::sync::Mutex::new(()),
        }
    }

    /// The configuration as it was last taken into service.
    fn settings(&self) -> Arc<Settings> {
        Arc::clone(&self.running.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn desk(&self) -> Desk<'_> {
        Desk { config: &self.engine.config, host: &self.engine.host }
    }

    fn now(&self) -> Time {
        time(self.clock.now())
    }
}

fn time(at: Timestamp) -> Time {
    Time::from_unix_micros(at.unix_micros())
}

/// None for a flow that is not configured any more.
fn settings_of<'s>(settings: &'s Settings, flow: &FlowName) -> Option<&'s FlowSettings> {
    settings.flows.iter().find(|configured| configured.name == *flow)
}
