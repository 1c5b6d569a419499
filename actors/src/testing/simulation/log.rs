//! The durable log over the in-memory store: a queue, and a writer task that groups, delays and dies with
//! its engine.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::sync::{Notify, oneshot};
use trellara_storage::store::Entry;
use trellara_storage::{Batch, Durability, Error, Family, MemoryStore, Store};

use super::executor::SimClock;
use crate::ports::FlowLog;

type Done = oneshot::Sender<Result<(), Error>>;

#[derive(Debug)]
struct Queue {
    waiting: Mutex<VecDeque<(Batch, Option<Done>)>>,
    bell: Notify,
}

/// One engine's log.
#[derive(Clone, Debug)]
pub(super) struct SimLog {
    store: Arc<MemoryStore>,
    queue: Arc<Queue>,
    clock: SimClock,
    /// Plants a writer that reports evidence written and writes none.
    loses_evidence: bool,
}

impl SimLog {
    pub(super) fn new(store: Arc<MemoryStore>, clock: SimClock, loses_evidence: bool) -> Self {
        let queue = Queue { waiting: Mutex::default(), bell: Notify::new() };
        Self { store, queue: Arc::new(queue), clock, loses_evidence }
    }

    /// The writer; it ends when a sync failed, and the engine has to.
    pub(super) async fn write(self) {
        loop {
            while self.waiting().is_empty() {
                self.queue.bell.notified().await;
            }
            self.clock.dawdle(3).await;
            let count = 1 + self.clock.index(4);
            let taken: Vec<_> = {
                let mut waiting = self.waiting();
                let count = count.min(waiting.len());
                waiting.drain(..count).collect()
            };
            if !self.write_group(taken).await {
                return;
            }
        }
    }

    async fn write_group(&self, taken: Vec<(Batch, Option<Done>)>) -> bool {
        let mut group = Batch::new();
        let mut dones = Vec::new();
        for (batch, done) in taken {
            group.append(if self.loses_evidence { without_evidence(batch) } else { batch });
            dones.extend(done);
        }
        let durability = if dones.is_empty() { Durability::Buffered } else { Durability::Synced };
        let written = self.store.write(group, durability);
        // Written, and not yet told.
        self.clock.dawdle(1).await;
        let text = written.err().map(|error| error.to_string());
        for done in dones {
            let _ = done.send(text.clone().map_or(Ok(()), |text| Err(Error::WriteFailed(text))));
        }
        text.is_none()
    }

    async fn queue(&self, batch: Batch, done: Option<Done>) {
        self.clock.dawdle(1).await;
        self.waiting().push_back((batch, done));
        self.queue.bell.notify_one();
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<(Batch, Option<Done>)>> {
        self.queue.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn without_evidence(batch: Batch) -> Batch {
    let mut kept = Batch::new();
    for entry in batch.into_entries() {
        match entry {
            Entry::Put { family: Family::Quarantine, .. } => {}
            Entry::Put { family, key, value } => kept.put(family, key, value),
            Entry::Delete { family, key } => kept.delete(family, key),
            Entry::DeleteRange { family, from, to } => kept.delete_range(family, from, to),
        }
    }
    kept
}

/// Resolves after the fsync.
#[derive(Debug)]
pub(super) struct SimReceipt(oneshot::Receiver<Result<(), Error>>);

impl Future for SimReceipt {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map(|answer| answer.unwrap_or(Err(Error::Closed)))
    }
}

impl FlowLog for SimLog {
    type Receipt = SimReceipt;

    async fn submit(&self, batch: Batch) -> Result<SimReceipt, Error> {
        let (done, receipt) = oneshot::channel();
        self.queue(batch, Some(done)).await;
        Ok(SimReceipt(receipt))
    }

    async fn submit_buffered(&self, batch: Batch) -> Result<(), Error> {
        self.queue(batch, None).await;
        Ok(())
    }

    async fn read<R, F>(&self, query: F) -> R
    where
        R: Send + 'static,
        F: FnOnce(&dyn Store) -> R + Send + 'static,
    {
        self.clock.dawdle(1).await;
        query(&*self.store)
    }
}
