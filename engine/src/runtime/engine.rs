//! The running engine: store, log threads, data runtime, control threads, fleet, admin API, metrics.
//!
//! Shutdown is staged: no new requests, flows end, tasks are gone, control threads are joined, the log
//! writer last, so that everything that was reported durable is. After a failed write nothing is flushed:
//! the process ends with a status of its own and reads what is really on disk when it starts again.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use trellara_actors::apply::EngineIdentity;
use trellara_actors::fleet::{FleetHandle, FleetSettings, FleetSetup, FleetView};
use trellara_actors::ports::Clock;
use trellara_actors::runtime::{Control, DataRuntime, ShutdownDeadlines, shut_down};
use trellara_storage::log::{LogHandle, LogThreads, WriterState};

use super::clock::SystemClock;
use super::factory::EngineFactory;
use super::surfaces::{AdminThread, Surface};
use super::{descriptors, retention, store, wanted};
use crate::config::Settings;
use crate::telemetry;

/// Threads that run mailboxes of flows; mailboxes carry control only.
const FLOW_THREADS: usize = 2;
const LOG_DEADLINE: Duration = Duration::from_secs(10);

/// Why `serve` returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Stopped,
    /// Something had to be cut off or left behind.
    Overdue,
    /// A write to the store failed; nothing may be assumed about the disk.
    StoreFailed,
}

/// Everything that runs.
#[derive(Debug)]
pub struct Engine {
    clock: SystemClock,
    data: DataRuntime,
    runtime: Runtime,
    control: Control,
    fleet: FleetHandle,
    log: LogHandle,
    threads: LogThreads,
    stop: Arc<Notify>,
    admin: AdminThread,
}

impl Engine {
    /// Opens the store and starts everything; flows start in the background.
    ///
    /// # Errors
    /// The store cannot be opened, an address or the admin socket cannot be bound, or the operating system
    /// gives no threads.
    pub fn start(config: &Path, settings: Settings) -> anyhow::Result<Self> {
        descriptors::raise();
        descriptors::suffice_for(settings.flows.len())?;
        let clock = SystemClock::new();
        let (store, identity) = store::open(&settings, clock).context("cannot open the store")?;
        let (log, threads) = trellara_storage::log::start(Arc::clone(&store) as _)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().thread_name("data").enable_all().build()?;
        let data = DataRuntime::new(runtime.handle().clone());
        let control = Control::start(FLOW_THREADS)?;
        let engine = EngineIdentity {
            instance: identity.instance,
            boot: clock.random(),
            holder: format!("{}@{}", settings.instance, host()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let factory = EngineFactory::new(engine.clone(), &settings.instance, log.clone(), clock);
        factory.configure(&settings.flows);
        let fleet = FleetHandle::start(FleetSetup {
            factory: Arc::new(factory.clone()),
            clock,
            data: data.clone(),
            placement: control.placement(),
            settings: FleetSettings::default(),
            view: FleetView::default(),
        })?;
        runtime.spawn(factory.renew_leases());
        runtime.spawn(retention::keep(factory.clone(), log.clone(), clock));
        let stop = Arc::new(Notify::new());
        let settings = Arc::new(settings);
        let admin = AdminThread::start(Surface {
            config,
            settings: Arc::clone(&settings),
            engine: &engine,
            host: host(),
            store,
            log: log.clone(),
            fleet: fleet.clone(),
            factory,
            stop: Arc::clone(&stop),
            clock,
        })?;
        let engine = Self { clock, data, runtime, control, fleet, log, threads, stop, admin };
        engine.runtime.block_on(engine.begin(&settings))?;
        Ok(engine)
    }

    /// Metrics are scraped from here on, and the flows start.
    async fn begin(&self, settings: &Settings) -> anyhow::Result<()> {
        if let Some(address) = settings.metrics.listen {
            telemetry::listen_metrics(address)
                .with_context(|| format!("cannot serve metrics on {address}"))?;
            let follow =
                telemetry::follow_metrics(self.fleet.view().clone(), self.clock, settings.metrics.per_flow);
            self.runtime.spawn(follow);
        }
        let stored = wanted::stored(&self.log).await.context("cannot read the store's flows")?;
        let diff = self.fleet.set_wanted(wanted::wanted(&settings.flows), stored).await?;
        tracing::info!(start = diff.start.len(), detached = diff.detach.len(), "flows start");
        Ok(())
    }

    /// Blocks until a signal, a stop request or a failed write ends it.
    pub fn serve(self) -> Ended {
        let failed = self.runtime.block_on(self.told_to_end());
        if failed {
            tracing::error!("a write to the store failed; ending without another acknowledgement");
            return Ended::StoreFailed;
        }
        tracing::info!("stopping");
        let Self { clock, data, runtime, control, fleet, log, threads, admin, .. } = self;
        let answered = admin.end();
        let report = shut_down(&fleet, &data, control, &clock, ShutdownDeadlines::default());
        drop((fleet, log));
        runtime.shutdown_timeout(LOG_DEADLINE);
        let flushed = threads.stop(LOG_DEADLINE);
        let clean = report.orderly && report.tasks_left == 0 && report.threads_joined && flushed && answered;
        if !clean {
            tracing::warn!(?report, flushed, "stopped with something cut off");
            return Ended::Overdue;
        }
        tracing::info!("stopped");
        Ended::Stopped
    }

    /// True when the store failed.
    async fn told_to_end(&self) -> bool {
        let mut writer = self.log.state();
        let failed = writer.wait_for(|state| matches!(state, WriterState::Failed(_)));
        tokio::select! {
            biased;
            _ = failed => true,
            () = signalled() => false,
            () = self.stop.notified() => false,
        }
    }
}

/// Resolves at SIGTERM or SIGINT; never when the handlers cannot be installed.
async fn signalled() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut terminate), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        biased;
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
