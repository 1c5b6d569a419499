//! Two threads that run queries, so that no async worker waits for the disk.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use crossbeam_channel::{Sender, unbounded};
use tokio::sync::oneshot;

use crate::Store;

const READERS: usize = 2;

/// A query with its way back.
pub(super) type Query = Box<dyn FnOnce(&dyn Store) + Send>;

/// Queries end the threads by the last sender going away. The channel has no bound of its own: a task
/// waits for its answer before it asks again.
pub(super) fn start(store: &Arc<dyn Store>) -> std::io::Result<(Sender<Query>, Vec<JoinHandle<()>>)> {
    let (queries, inbox) = unbounded::<Query>();
    let threads = (0..READERS).map(|n| {
        let (store, inbox) = (Arc::clone(store), inbox.clone());
        thread::Builder::new().name(format!("store-reader-{n}")).spawn(move || {
            for query in inbox {
                query(&*store);
            }
        })
    });
    Ok((queries, threads.collect::<Result<_, _>>()?))
}

/// Packs a query; the answer is what it returned, or what it panicked with.
pub(super) fn query<R, F>(query: F) -> (Query, oneshot::Receiver<thread::Result<R>>)
where
    R: Send + 'static,
    F: FnOnce(&dyn Store) -> R + Send + 'static,
{
    let (answer, receiver) = oneshot::channel();
    let packed = move |store: &dyn Store| {
        let result = catch_unwind(AssertUnwindSafe(|| query(store)));
        // Nobody waits any more: the caller was cancelled.
        let _ = answer.send(result);
    };
    (Box::new(packed), receiver)
}
