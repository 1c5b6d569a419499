//! Handles on the log's threads: what flows write and read through, and how the threads end.

use std::future::Future;
use std::panic::resume_unwind;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Sender, bounded};
use tokio::sync::{oneshot, watch};

use super::permits::{FlowPermits, MAX_REQUESTS, Permits};
use super::reader::{self, Query};
use super::writer::{self, Command, Request, WriterState, WriterStats};
use crate::{Batch, Durability, Error, FlowId, Store};

/// How often a waiting `stop` looks whether the threads have ended.
const JOIN_POLL: Duration = Duration::from_millis(5);

/// Starts the writer and the readers on this store.
///
/// # Errors
/// When the operating system gives no threads.
pub fn start(store: Arc<dyn Store>) -> std::io::Result<(LogHandle, LogThreads)> {
    // One place more than there can be requests, for the stop.
    let (commands, inbox) = bounded(MAX_REQUESTS + 1);
    let (state, watched) = watch::channel(WriterState::Running);
    let stats = Arc::new(WriterStats::default());
    let (queries, readers) = reader::start(&store)?;
    let writer = writer::start(store, inbox, state, Arc::clone(&stats))?;
    let shared =
        Shared { commands: commands.clone(), queries, permits: Permits::new(), state: watched, stats };
    Ok((LogHandle { shared: Arc::new(shared) }, LogThreads { commands, writer, readers }))
}

/// The way into the store for everything that runs. Cheap to clone.
#[derive(Clone, Debug)]
pub struct LogHandle {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    commands: Sender<Command>,
    queries: Sender<Query>,
    permits: Permits,
    state: watch::Receiver<WriterState>,
    stats: Arc<WriterStats>,
}

impl LogHandle {
    /// One flow's handle; all handles of a flow share its permits.
    pub fn for_flow(&self, flow: FlowId) -> FlowLogHandle {
        FlowLogHandle { flow, permits: self.shared.permits.of(flow), log: self.clone() }
    }

    /// The handle for what belongs to no flow: identities of flows, the audit trail.
    pub fn for_store(&self) -> FlowLogHandle {
        self.for_flow(FlowId::STORE)
    }

    /// What the writer is doing. `Failed` ends the engine with exit code 75.
    pub fn state(&self) -> watch::Receiver<WriterState> {
        self.shared.state.clone()
    }

    pub fn stats(&self) -> &WriterStats {
        &self.shared.stats
    }

    /// Runs a query on a reader thread. A panic of the query is the caller's.
    ///
    /// # Panics
    /// When the query does.
    pub async fn read<R, F>(&self, query: F) -> R
    where
        R: Send + 'static,
        F: FnOnce(&dyn Store) -> R + Send + 'static,
    {
        let (query, answer) = reader::query(query);
        self.shared.queries.send(query).expect("readers run as long as there is a handle");
        match answer.await.expect("a reader answers every query it took") {
            Ok(result) => result,
            Err(panic) => resume_unwind(panic),
        }
    }

    fn queue(&self, request: Request) -> Result<(), Error> {
        let sent = self.shared.commands.try_send(Command::Write(Box::new(request)));
        sent.map_err(|_| self.shared.state.borrow().refusal())
    }
}

/// One flow's way into the durable log and out of it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct FlowLogHandle {
    flow: FlowId,
    permits: FlowPermits,
    log: LogHandle,
}

impl FlowLogHandle {
    pub fn flow(&self) -> FlowId {
        self.flow
    }

    /// Waits for a permit in bytes, then queues the batch behind the flow's earlier ones; the receipt
    /// resolves after the fsync. Dropping the receipt does not take the batch back.
    ///
    /// # Errors
    /// `Closed` when the log is stopped, `WriteFailed` when the writer died.
    ///
    /// # Cancel safety
    /// Until it returns nothing was queued.
    pub async fn submit(&self, batch: Batch) -> Result<Receipt, Error> {
        let permit = self.permits.take(batch.bytes()).await?;
        let (done, receipt) = oneshot::channel();
        let durability = Durability::Synced;
        self.log.queue(Request { flow: self.flow, batch, durability, done: Some(done), permit })?;
        Ok(Receipt(receipt))
    }

    /// As `submit`, without an fsync of its own: durable with the next synced batch of this flow. For
    /// chunk parts, which mean nothing before their manifest.
    ///
    /// # Errors
    /// As `submit`.
    ///
    /// # Cancel safety
    /// As `submit`.
    pub async fn submit_buffered(&self, batch: Batch) -> Result<(), Error> {
        let permit = self.permits.take(batch.bytes()).await?;
        let durability = Durability::Buffered;
        self.log.queue(Request { flow: self.flow, batch, durability, done: None, permit })
    }

    /// Runs a query on a reader thread.
    ///
    /// # Panics
    /// When the query does.
    pub async fn read<R, F>(&self, query: F) -> R
    where
        R: Send + 'static,
        F: FnOnce(&dyn Store) -> R + Send + 'static,
    {
        self.log.read(query).await
    }
}

/// Resolves once its batch, and everything that its flow submitted before it, is fsynced.
#[derive(Debug)]
pub struct Receipt(oneshot::Receiver<Result<(), Error>>);

impl Future for Receipt {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map(|answer| answer.unwrap_or(Err(Error::Closed)))
    }
}

/// The threads behind the handles, owned by whoever shuts the engine down.
#[derive(Debug)]
pub struct LogThreads {
    commands: Sender<Command>,
    writer: JoinHandle<()>,
    readers: Vec<JoinHandle<()>>,
}

impl LogThreads {
    /// Writes what is queued, refuses what comes later, and waits for the writer, and for the readers,
    /// which end with the last handle. True when all ended before the deadline.
    pub fn stop(self, deadline: Duration) -> bool {
        // A disconnected channel means that the writer has ended already.
        let _ = self.commands.send(Command::Stop);
        drop(self.commands);
        let until = Instant::now() + deadline;
        let ended = || self.writer.is_finished() && self.readers.iter().all(JoinHandle::is_finished);
        while !ended() {
            if Instant::now() >= until {
                return false;
            }
            std::thread::sleep(JOIN_POLL);
        }
        true
    }
}
