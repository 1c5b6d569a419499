//! A fleet of one flow, from a database to another one of the same cluster.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_postgres::Client;
use trellara_actors::apply::EngineIdentity;
use trellara_actors::fleet::{FleetHandle, FleetSettings, FleetSetup, FleetView, WantedFlow};
use trellara_actors::flow::{FlowStatus, Phase};
use trellara_actors::runtime::{Control, DataRuntime};
use trellara_engine::runtime::{EngineFactory, SystemClock};
use trellara_engine::settings::FlowSettings;
use trellara_storage::log::{LogHandle, LogThreads};
use trellara_storage::{InstanceId, MemoryStore};

use crate::cluster::Cluster;
use crate::eventually::eventually;
use crate::settings::flow;

const DEADLINE: Duration = Duration::from_secs(10);

/// Both databases hold table `sale`; what the store holds outlives the engines that run over it.
pub(super) struct World {
    pub(super) source: Client,
    pub(super) target: Client,
    pub(super) settings: FlowSettings,
    pub(super) store: Arc<MemoryStore>,
}

pub(super) struct Engine {
    pub(super) fleet: FleetHandle,
    pub(super) factory: EngineFactory,
    control: Control,
    data: DataRuntime,
    log: LogHandle,
    threads: LogThreads,
    leases: JoinHandle<()>,
    settings: FlowSettings,
}

impl World {
    pub(super) async fn new() -> World {
        let cluster = Cluster::shared();
        let (from, to) = (cluster.database("from").await, cluster.database("to").await);
        let (source, target) = (cluster.client(&from).await, cluster.client(&to).await);
        for side in [&source, &target] {
            side.batch_execute("CREATE TABLE sale (id int PRIMARY KEY, text text)").await.unwrap();
        }
        let mut settings = flow(&cluster.server(&from), &["sale"]);
        settings.target.server = cluster.server(&to);
        World { source, target, settings, store: Arc::new(MemoryStore::new()) }
    }

    /// An engine process of this instance: every one is another boot.
    pub(super) async fn engine(&self, boot: u64) -> Engine {
        let clock = SystemClock::new();
        let (log, threads) = trellara_storage::log::start(Arc::clone(&self.store) as _).unwrap();
        let data = DataRuntime::new(Handle::current());
        let control = Control::start(1).unwrap();
        let identity = EngineIdentity {
            instance: InstanceId::new([1; 16]),
            boot,
            holder: "engine 1".into(),
            version: "test".into(),
        };
        let factory = EngineFactory::new(identity, "test", log.clone(), clock);
        factory.configure(std::slice::from_ref(&self.settings));
        let leases = tokio::spawn(factory.renew_leases());
        let fleet = FleetHandle::start(FleetSetup {
            factory: Arc::new(factory.clone()),
            clock,
            data: data.clone(),
            placement: control.placement(),
            settings: FleetSettings::default(),
            view: FleetView::default(),
        })
        .unwrap();
        let wanted = WantedFlow { flow: self.settings.name.clone(), revision: "1".into() };
        fleet.set_wanted(vec![wanted], Vec::new()).await.unwrap();
        let settings = self.settings.clone();
        Engine { fleet, factory, control, data, log, threads, leases, settings }
    }
}

impl Engine {
    pub(super) fn log(&self) -> &LogHandle {
        &self.log
    }

    pub(super) fn status(&self) -> Option<Arc<FlowStatus>> {
        self.fleet.view().flow(&self.settings.name)
    }

    #[track_caller]
    pub(super) fn shows(&self, phase: Phase) -> impl Future<Output = Arc<FlowStatus>> {
        eventually(phase.name(), move || async move {
            let status = self.status()?;
            status.conditions.iter().any(|condition| condition.reason.phase == phase).then_some(status)
        })
    }

    /// Both halves work.
    pub(super) async fn runs(&self) {
        eventually("the flow runs", || async {
            let phase = self.status()?.phase();
            [Phase::CatchingUp, Phase::Streaming].contains(&phase).then_some(())
        })
        .await;
    }

    /// Ends everything in an orderly way.
    pub(super) async fn end(self) {
        self.fleet.close().await.unwrap();
        self.data.idle().await;
        self.leases.abort();
        let _ = self.leases.await;
        drop((self.fleet, self.factory));
        tokio::task::spawn_blocking(move || {
            self.control.join(DEADLINE).unwrap();
            drop(self.log);
            assert!(self.threads.stop(DEADLINE), "the log is flushed");
        })
        .await
        .unwrap();
    }
}
