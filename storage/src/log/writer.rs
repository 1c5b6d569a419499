//! The log writer thread: takes rounds of the fair queue and makes each one durable with one fsync.
//!
//! It completes a receipt after the fsync that covers it and never before (I1). A full disk makes it wait
//! and try again; any other failure ends it, and with it the engine: nothing may be assumed about what
//! reached the disk.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError};
use tokio::sync::{oneshot, watch};
use tracing::{error, info, warn};

use super::permits::Permit;
use super::turns::{ROUND_BYTES, Turns};
use crate::{Batch, Durability, Error, FlowId, Store};

/// Buffered bytes after which the next write is synced, so that no commit waits for more than these.
const UNSYNCED_BYTES: usize = ROUND_BYTES;
/// First and longest wait before a write is tried again on a full disk.
const FULL_BACKOFF: Duration = Duration::from_millis(50);
const FULL_BACKOFF_MAX: Duration = Duration::from_secs(1);

/// What the writer is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriterState {
    Running,
    /// Waiting for room; goes on by itself.
    DiskFull,
    /// A write failed; no acknowledgement is given any more and the engine must end.
    Failed(String),
    Stopped,
}

impl WriterState {
    /// Why a request is not taken.
    pub(super) fn refusal(&self) -> Error {
        match self {
            WriterState::Failed(what) => Error::WriteFailed(what.clone()),
            WriterState::Running | WriterState::DiskFull | WriterState::Stopped => Error::Closed,
        }
    }
}

/// Counters since the start, for metrics.
#[derive(Debug, Default)]
pub struct WriterStats {
    requests: AtomicU64,
    bytes: AtomicU64,
    writes: AtomicU64,
    syncs: AtomicU64,
}

/// `WriterStats` at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WriterCounts {
    pub requests: u64,
    pub bytes: u64,
    /// Write batches, and those of them that ended in an fsync.
    pub writes: u64,
    pub syncs: u64,
}

impl WriterStats {
    pub fn counts(&self) -> WriterCounts {
        WriterCounts {
            requests: self.requests.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            writes: self.writes.load(Ordering::Relaxed),
            syncs: self.syncs.load(Ordering::Relaxed),
        }
    }

    fn wrote(&self, requests: usize, bytes: usize, durability: Durability) {
        self.requests.fetch_add(requests as u64, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.writes.fetch_add(1, Ordering::Relaxed);
        self.syncs.fetch_add(u64::from(durability == Durability::Synced), Ordering::Relaxed);
    }
}

pub(super) enum Command {
    Write(Box<Request>),
    /// Write what is queued, then end.
    Stop,
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Command::Write(_) => "Write",
            Command::Stop => "Stop",
        })
    }
}

/// One submitted batch.
pub(super) struct Request {
    pub(super) flow: FlowId,
    pub(super) batch: Batch,
    pub(super) durability: Durability,
    pub(super) done: Option<oneshot::Sender<Result<(), Error>>>,
    pub(super) permit: Permit,
}

/// Requests that are written together.
struct Group {
    batch: Batch,
    durability: Durability,
    waiting: Vec<oneshot::Sender<Result<(), Error>>>,
    permits: Vec<Permit>,
}

struct Writer {
    store: Arc<dyn Store>,
    inbox: Receiver<Command>,
    turns: Turns<Request>,
    stopping: bool,
    /// Bytes written since the last sync.
    unsynced: usize,
    state: watch::Sender<WriterState>,
    stats: Arc<WriterStats>,
}

pub(super) fn start(
    store: Arc<dyn Store>,
    inbox: Receiver<Command>,
    state: watch::Sender<WriterState>,
    stats: Arc<WriterStats>,
) -> std::io::Result<JoinHandle<()>> {
    let writer = Writer { store, inbox, turns: Turns::default(), stopping: false, unsynced: 0, state, stats };
    thread::Builder::new().name("log-writer".to_owned()).spawn(move || writer.run())
}

impl Writer {
    fn run(mut self) {
        while self.collect() {
            let group = self.next_group();
            if let Err(failure) = self.commit(group) {
                self.refuse_the_rest(&failure);
                return;
            }
        }
        self.enter(WriterState::Stopped);
    }

    /// Takes everything that has arrived; waits only when there is nothing to write. False at the end.
    fn collect(&mut self) -> bool {
        if self.turns.is_empty() && !self.stopping {
            match self.inbox.recv() {
                Ok(command) => self.accept(command),
                Err(_) => self.stopping = true,
            }
        }
        while let Ok(command) = self.inbox.try_recv() {
            self.accept(command);
        }
        !self.turns.is_empty()
    }

    fn accept(&mut self, command: Command) {
        match command {
            Command::Write(request) => self.turns.push(request.flow, request.batch.bytes(), *request),
            Command::Stop => self.stopping = true,
        }
    }

    fn next_group(&mut self) -> Group {
        let mut group = Group {
            batch: Batch::new(),
            durability: Durability::Buffered,
            waiting: Vec::new(),
            permits: Vec::new(),
        };
        for request in self.turns.round() {
            group.batch.append(request.batch);
            group.permits.push(request.permit);
            group.waiting.extend(request.done);
            if request.durability == Durability::Synced {
                group.durability = Durability::Synced;
            }
        }
        if self.unsynced + group.batch.bytes() > UNSYNCED_BYTES {
            group.durability = Durability::Synced;
        }
        group
    }

    /// Writes a group, then tells those who wait for it.
    fn commit(&mut self, group: Group) -> Result<(), Error> {
        let result = self.write(&group.batch, group.durability);
        match &result {
            Ok(()) => self.wrote(&group),
            Err(failure) => self.enter(WriterState::Failed(reason(failure))),
        }
        drop(group.permits);
        for done in group.waiting {
            // Whoever dropped the receipt does not want to know.
            let _ = done.send(result.as_ref().map(|_| ()).map_err(for_everyone));
        }
        result
    }

    fn wrote(&mut self, group: &Group) {
        let bytes = group.batch.bytes();
        self.stats.wrote(group.permits.len(), bytes, group.durability);
        self.unsynced = match group.durability {
            Durability::Synced => 0,
            Durability::Buffered => self.unsynced + bytes,
        };
    }

    /// The one place that moves the state; watchers wake only when it changes.
    fn enter(&self, next: WriterState) {
        self.state.send_if_modified(|state| {
            if *state == next {
                return false;
            }
            match &next {
                WriterState::Running => info!("there is room for the store again, writing goes on"),
                WriterState::DiskFull => warn!("no space left for the store, writing waits for room"),
                WriterState::Failed(what) => error!(error = %what, "log writer ended"),
                WriterState::Stopped => {}
            }
            *state = next;
            true
        });
    }

    /// One write, tried again while the disk is full and nobody stops the log.
    fn write(&mut self, batch: &Batch, durability: Durability) -> Result<(), Error> {
        let mut backoff = FULL_BACKOFF;
        loop {
            match self.store.apply(batch, durability) {
                Err(Error::DiskFull) if !self.stopping => {
                    self.enter(WriterState::DiskFull);
                    self.wait(backoff);
                    backoff = (backoff * 2).min(FULL_BACKOFF_MAX);
                }
                Ok(()) => {
                    self.enter(WriterState::Running);
                    return Ok(());
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Waits, taking requests meanwhile so that a stop is noticed.
    fn wait(&mut self, backoff: Duration) {
        let until = std::time::Instant::now() + backoff;
        while !self.stopping {
            match self.inbox.recv_deadline(until) {
                Ok(command) => self.accept(command),
                Err(RecvTimeoutError::Timeout) => return,
                Err(RecvTimeoutError::Disconnected) => self.stopping = true,
            }
        }
    }

    /// Nothing is acknowledged any more: everyone who waits, or asks later, is told.
    fn refuse_the_rest(&mut self, failure: &Error) {
        self.stopping = true;
        while self.collect() {
            for request in self.turns.round() {
                if let Some(done) = request.done {
                    let _ = done.send(Err(for_everyone(failure)));
                }
            }
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let unfinished = matches!(*self.state.borrow(), WriterState::Running | WriterState::DiskFull);
        if unfinished {
            self.enter(WriterState::Failed("the log writer panicked".to_owned()));
        }
    }
}

/// One failure of a group, for each of those who waited for it.
fn for_everyone(failure: &Error) -> Error {
    match failure {
        Error::DiskFull => Error::DiskFull,
        Error::Closed => Error::Closed,
        Error::WriteFailed(what) => Error::WriteFailed(what.clone()),
        Error::Corruption { .. }
        | Error::StoreDamaged { .. }
        | Error::FormatVersion { .. }
        | Error::Locked { .. }
        | Error::BackupFailed(_)
        | Error::ReadFailed(_) => Error::WriteFailed(reason(failure)),
    }
}

fn reason(failure: &Error) -> String {
    if let Error::WriteFailed(what) = failure { what.clone() } else { failure.to_string() }
}
