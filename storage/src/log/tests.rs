#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use super::{FlowLogHandle, LogHandle, LogThreads, WriterState, start};
use crate::memory::Keep;
use crate::store::{Order, Visitor};
use crate::{Batch, Durability, Error, Family, FlowId, MemoryStore, Store};

const PATIENCE: Duration = Duration::from_secs(20);

/// A store whose writes wait until the gate opens, and that counts them.
#[derive(Debug, Default)]
struct Gate {
    inner: MemoryStore,
    open: Mutex<bool>,
    opened: Condvar,
    writes: Mutex<Vec<(usize, Durability)>>,
}

impl Gate {
    fn open(&self) {
        *self.open.lock().unwrap() = true;
        self.opened.notify_all();
    }
}

impl Store for Gate {
    fn get(&self, family: Family, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.inner.get(family, key)
    }

    fn scan(
        &self,
        f: Family,
        from: &[u8],
        to: &[u8],
        o: Order,
        visit: &mut Visitor<'_>,
    ) -> Result<(), Error> {
        self.inner.scan(f, from, to, o, visit)
    }

    fn apply(&self, batch: &Batch, durability: Durability) -> Result<(), Error> {
        let open = self.open.lock().unwrap();
        let (open, waited) = self.opened.wait_timeout_while(open, PATIENCE, |open| !*open).unwrap();
        assert!(!waited.timed_out(), "the test opens the gate");
        drop(open);
        self.writes.lock().unwrap().push((batch.bytes(), durability));
        self.inner.apply(batch, durability)
    }
}

fn one(key: &str, bytes: usize) -> Batch {
    let mut batch = Batch::new();
    batch.put(Family::Events, key.as_bytes().to_vec(), vec![7; bytes]);
    batch
}

fn flow(log: &LogHandle, n: u32) -> FlowLogHandle {
    log.for_flow(FlowId::new(n))
}

fn stop(log: LogHandle, threads: LogThreads) {
    drop(log);
    assert!(threads.stop(PATIENCE), "the log's threads end");
}

async fn state(log: &LogHandle, wanted: fn(&WriterState) -> bool) {
    let mut state = log.state();
    tokio::time::timeout(PATIENCE, state.wait_for(wanted)).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_receipt_resolves_after_the_sync_and_what_it_covers_outlives_a_crash() {
    let store = Arc::new(MemoryStore::new());
    let (log, threads) = start(store.clone()).unwrap();
    let writing = flow(&log, 1);
    writing.submit_buffered(one("part", 100)).await.unwrap();
    writing.submit(one("manifest", 100)).await.unwrap().await.unwrap();
    store.crash(Keep::Synced);
    assert!(store.get(Family::Events, b"part").unwrap().is_some());
    assert!(store.get(Family::Events, b"manifest").unwrap().is_some());
    drop(writing);
    stop(log, threads);
}

#[tokio::test]
async fn one_sync_serves_every_flow_that_waited() {
    let store = Arc::new(Gate::default());
    let (log, threads) = start(store.clone()).unwrap();
    let mut receipts = Vec::new();
    for n in 1..=200 {
        receipts.push(flow(&log, n).submit(one(&format!("{n}"), 400)).await.unwrap());
    }
    store.open();
    for receipt in receipts {
        receipt.await.unwrap();
    }
    // The first write took what had arrived when the writer woke, the second everything else.
    assert!(store.writes.lock().unwrap().len() <= 2);
    stop(log, threads);
}

#[tokio::test]
async fn single_rows_wait_for_few_bytes_of_a_flow_that_floods() {
    let store = Arc::new(Gate::default());
    let (log, threads) = start(store.clone()).unwrap();
    let flood = flow(&log, 1);
    for n in 0..15 {
        flood.submit_buffered(one(&format!("flood {n}"), 256 * 1024 - 16)).await.unwrap();
    }
    let mut receipts = Vec::new();
    for n in 2..=51 {
        receipts.push(flow(&log, n).submit(one(&format!("single {n}"), 400)).await.unwrap());
    }
    store.open();
    for receipt in receipts {
        receipt.await.unwrap();
    }
    let writes = store.writes.lock().unwrap().clone();
    let synced = writes.iter().position(|(_, durability)| *durability == Durability::Synced).unwrap();
    let ahead: usize = writes[..=synced].iter().map(|(bytes, _)| bytes).sum();
    assert!(ahead <= 1024 * 1024, "{ahead} bytes were written before or with the single rows");
    drop(flood);
    stop(log, threads);
}

#[tokio::test]
async fn unsynced_bytes_between_two_syncs_are_bounded() {
    let store = Arc::new(Gate::default());
    store.open();
    let (log, threads) = start(store.clone()).unwrap();
    let writing = flow(&log, 1);
    for n in 0..64 {
        writing.submit_buffered(one(&format!("{n}"), 256 * 1024 - 16)).await.unwrap();
    }
    writing.submit(one("end", 1)).await.unwrap().await.unwrap();
    let mut unsynced = 0;
    for (bytes, durability) in store.writes.lock().unwrap().iter() {
        unsynced += bytes;
        assert!(unsynced <= 2 * 1024 * 1024, "{unsynced}");
        if *durability == Durability::Synced {
            unsynced = 0;
        }
    }
    drop(writing);
    stop(log, threads);
}

#[tokio::test]
async fn a_flow_out_of_permits_waits_and_does_not_make_others_wait() {
    let store = Arc::new(Gate::default());
    let (log, threads) = start(store.clone()).unwrap();
    let greedy = flow(&log, 1);
    let first = greedy.submit(one("larger than the whole permit", 5 * 1024 * 1024)).await.unwrap();
    let mut second = Box::pin(greedy.submit(one("second", 1)));
    let pending = std::future::poll_fn(|context| std::task::Poll::Ready(second.as_mut().poll(context)));
    assert!(pending.await.is_pending());
    let other = flow(&log, 2).submit(one("other", 1)).await.unwrap();
    store.open();
    first.await.unwrap();
    other.await.unwrap();
    second.await.unwrap().await.unwrap();
    drop(greedy);
    stop(log, threads);
}

#[tokio::test]
async fn a_full_disk_makes_waiters_wait_until_there_is_room() {
    let store = Arc::new(MemoryStore::new());
    let (log, threads) = start(store.clone()).unwrap();
    store.set_disk_full(true);
    let receipt = flow(&log, 1).submit(one("a", 10)).await.unwrap();
    state(&log, |state| *state == WriterState::DiskFull).await;
    store.set_disk_full(false);
    receipt.await.unwrap();
    state(&log, |state| *state == WriterState::Running).await;
    stop(log, threads);
}

#[tokio::test]
async fn a_stop_on_a_full_disk_ends_and_acknowledges_nothing() {
    let store = Arc::new(MemoryStore::new());
    let (log, threads) = start(store.clone()).unwrap();
    store.set_disk_full(true);
    let receipt = flow(&log, 1).submit(one("a", 10)).await.unwrap();
    state(&log, |state| *state == WriterState::DiskFull).await;
    stop(log, threads);
    assert!(matches!(receipt.await, Err(Error::DiskFull)));
}

#[tokio::test]
async fn a_failed_sync_fails_every_waiter_and_everyone_who_comes_later() {
    let store = Arc::new(MemoryStore::new());
    let (log, threads) = start(store.clone()).unwrap();
    store.fail_next_sync();
    let receipt = flow(&log, 1).submit(one("a", 10)).await.unwrap();
    assert!(matches!(receipt.await, Err(Error::WriteFailed(_))));
    state(&log, |state| matches!(state, WriterState::Failed(_))).await;
    // The channel closes a moment after the state says so; a request in between is refused by its receipt.
    let later = match flow(&log, 2).submit(one("b", 10)).await {
        Ok(receipt) => receipt.await.unwrap_err(),
        Err(refused) => refused,
    };
    assert!(matches!(later, Error::WriteFailed(_) | Error::Closed), "{later}");
    assert!(store.get(Family::Events, b"b").unwrap().is_none());
    stop(log, threads);
}

#[tokio::test]
async fn a_stop_writes_what_was_queued_and_refuses_what_comes_later() {
    let store = Arc::new(Gate::default());
    let (log, threads) = start(store.clone()).unwrap();
    let writing = flow(&log, 1);
    let receipt = writing.submit(one("a", 10)).await.unwrap();
    store.open();
    let stopping = std::thread::spawn(move || threads.stop(PATIENCE));
    receipt.await.unwrap();
    state(&log, |state| *state == WriterState::Stopped).await;
    let refused = match writing.submit(one("b", 10)).await {
        Ok(receipt) => receipt.await.unwrap_err(),
        Err(refused) => refused,
    };
    assert!(matches!(refused, Error::Closed));
    drop((writing, log));
    assert!(stopping.join().unwrap());
}

#[tokio::test]
async fn a_query_that_panics_reaches_its_caller_and_leaves_the_readers_running() {
    let (log, threads) = start(Arc::new(MemoryStore::new())).unwrap();
    for _ in 0..3 {
        let asking = log.clone();
        let asked = tokio::spawn(async move { asking.read::<(), _>(|_| panic!("planted")).await });
        assert!(asked.await.unwrap_err().is_panic());
    }
    assert_eq!(log.read(|store| store.get(Family::Log, b"x").unwrap()).await, None);
    stop(log, threads);
}
