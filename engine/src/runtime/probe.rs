//! Both sides of one flow without a store: what `preflight` asks its questions through.

use std::io;
use std::sync::Arc;

use trellara_storage::log::{FlowLogHandle, LogThreads};
use trellara_storage::{FlowId, MemoryStore};

use crate::apply::PgTarget;
use crate::postgres::pool::Pools;
use crate::settings::FlowSettings;
use crate::source::{Heartbeats, Source};

/// Nothing that is done through it is remembered.
#[derive(Debug)]
pub struct Probe {
    pub source: Source,
    pub target: PgTarget<FlowLogHandle>,
    _threads: LogThreads,
}

impl Probe {
    /// # Errors
    /// The operating system gives no threads.
    pub fn new(flow: &FlowSettings) -> io::Result<Self> {
        let (log, threads) = trellara_storage::log::start(Arc::new(MemoryStore::new()))?;
        let pool = Pools::new(&flow.instance).pool(&flow.target);
        Ok(Self {
            source: Source::new(flow, 0, Heartbeats::default()),
            target: PgTarget::new(flow, log.for_flow(FlowId::STORE), pool),
            _threads: threads,
        })
    }
}
