//! Makes flows out of the configuration and the store: numbers, handles, drivers.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::Mutex;
use trellara_actors::apply::EngineIdentity;
use trellara_actors::ports::{Clock, FlowFactory, OpenFlow, RemoveOptions, RemovedPart};
use trellara_storage::families::flows;
use trellara_storage::log::{FlowLogHandle, LogHandle};
use trellara_storage::records::{FlowIdentity, FlowPart};
use trellara_storage::{Batch, Error, FlowId, FlowName, Lsn};

use super::clock::SystemClock;
use super::generations::Generations;
use super::tasks::EngineTasks;
use super::{leases, removal};
use crate::apply::PgTarget;
use crate::postgres::pool::Pools;
use crate::settings::FlowSettings;
use crate::source::{Heartbeats, Source};

/// The flows that the configuration names now, and what all of them share. Cheap to clone.
#[derive(Clone, Debug)]
pub struct EngineFactory(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    configured: RwLock<HashMap<FlowName, FlowSettings>>,
    engine: EngineIdentity,
    log: LogHandle,
    pools: Pools,
    heartbeats: Heartbeats,
    generations: Generations,
    clock: SystemClock,
    /// Held while a new flow gets its number.
    numbering: Mutex<()>,
}

impl EngineFactory {
    pub fn new(engine: EngineIdentity, instance: &str, log: LogHandle, clock: SystemClock) -> Self {
        Self(Arc::new(Shared {
            configured: RwLock::default(),
            engine,
            log,
            pools: Pools::new(instance),
            heartbeats: Heartbeats::default(),
            generations: Generations::default(),
            clock,
            numbering: Mutex::new(()),
        }))
    }

    /// Takes over what the configuration says now; flows are opened by it from here on.
    pub fn configure(&self, flows: &[FlowSettings]) {
        let flows = flows.iter().map(|flow| (flow.name.clone(), flow.clone())).collect();
        *self.0.configured.write().unwrap_or_else(PoisonError::into_inner) = flows;
    }

    /// None for a flow that is not configured.
    pub fn settings(&self, flow: &FlowName) -> Option<FlowSettings> {
        self.0.configured.read().unwrap_or_else(PoisonError::into_inner).get(flow).cloned()
    }

    /// Renews the leases of every flow that it opened, until it is dropped.
    pub fn renew_leases(&self) -> impl Future<Output = ()> + Send + use<> {
        leases::renew(self.0.generations.clone(), self.0.engine.clone())
    }

    pub(super) fn source(&self, settings: &FlowSettings) -> Source {
        Source::new(settings, self.0.engine.boot, self.0.heartbeats.clone())
    }

    pub(super) fn target(&self, settings: &FlowSettings, log: FlowLogHandle) -> PgTarget<FlowLogHandle> {
        PgTarget::new(settings, log, self.0.pools.pool(&settings.target))
    }

    /// As the flow's capture last read it; none while it does not run.
    pub(super) fn restart_lsn(&self, flow: &FlowName) -> Option<Lsn> {
        self.0.generations.restart_lsn(flow)
    }

    pub(super) fn log(&self) -> &LogHandle {
        &self.0.log
    }

    pub(super) fn clock(&self) -> SystemClock {
        self.0.clock
    }

    /// The number of a flow that was not removed, given to it on its first run.
    async fn number(&self, settings: &FlowSettings) -> Result<FlowId, Error> {
        let _alone = self.0.numbering.lock().await;
        if let Some((flow, _)) = self.stored(&settings.name).await? {
            return Ok(flow);
        }
        let flow = self.0.log.read(flows::next_id).await?;
        let identity = FlowIdentity {
            name: settings.name.clone(),
            created: self.0.clock.now(),
            removed: None,
            spec_digest: settings.spec_digest.clone(),
        };
        let mut batch = Batch::new();
        flows::put(&mut batch, flow, FlowPart::Identity, &identity);
        self.0.log.for_store().submit(batch).await?.await?;
        Ok(flow)
    }

    /// The flow of this name that has a number and was not removed.
    pub(super) async fn stored(&self, name: &FlowName) -> Result<Option<(FlowId, FlowIdentity)>, Error> {
        let name = name.clone();
        self.0
            .log
            .read(move |store| {
                for flow in flows::ids(store)?.into_iter().rev() {
                    let identity: Option<FlowIdentity> = flows::get(store, flow, FlowPart::Identity)?;
                    if let Some(identity) = identity
                        && identity.name == name
                        && identity.removed.is_none()
                    {
                        return Ok(Some((flow, identity)));
                    }
                }
                Ok(None)
            })
            .await
    }
}

impl FlowFactory for EngineFactory {
    type Log = FlowLogHandle;

    fn open(&self, flow: &FlowName) -> BoxFuture<'static, Result<OpenFlow<Self::Log>, Error>> {
        let (factory, flow) = (self.clone(), flow.clone());
        async move {
            let settings = factory.settings(&flow).ok_or(Error::Closed)?;
            let id = factory.number(&settings).await?;
            let log = factory.0.log.for_flow(id);
            let tasks = EngineTasks {
                flow: id,
                engine: factory.0.engine.clone(),
                source: Arc::new(factory.source(&settings)),
                target: Arc::new(factory.target(&settings, log.clone())),
                settings,
                log: log.clone(),
                generations: factory.0.generations.clone(),
                clock: factory.0.clock,
            };
            Ok(OpenFlow { id, log, tasks: Box::new(tasks) })
        }
        .boxed()
    }

    fn log_of(&self, flow: &FlowName) -> BoxFuture<'static, Result<Option<(FlowId, Self::Log)>, Error>> {
        let (factory, flow) = (self.clone(), flow.clone());
        async move { Ok(factory.stored(&flow).await?.map(|(id, _)| (id, factory.0.log.for_flow(id)))) }
            .boxed()
    }

    fn remove(
        &self,
        flow: &FlowName,
        options: RemoveOptions,
    ) -> BoxFuture<'static, Result<Vec<RemovedPart>, Error>> {
        let (factory, flow) = (self.clone(), flow.clone());
        async move { removal::remove(&factory, &flow, options).await }.boxed()
    }
}
