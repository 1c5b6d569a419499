//! One flow's way into the durable log and out of it.

use std::future::Future;

use trellara_storage::log::{FlowLogHandle, Receipt};
use trellara_storage::{Batch, Error, Store};

/// The flow's handle on the log writer and on the store readers.
pub trait FlowLog: Clone + Send + Sync + 'static {
    /// Resolves once the batch, and everything submitted before it, is fsynced.
    type Receipt: Future<Output = Result<(), Error>> + Send + Unpin + 'static;

    /// Waits for a permit in bytes, then queues the batch behind the flow's earlier ones; the receipt
    /// resolves after the fsync. Dropping the receipt does not take the batch back.
    ///
    /// # Cancel safety
    /// Until it returns nothing was queued.
    fn submit(&self, batch: Batch) -> impl Future<Output = Result<Self::Receipt, Error>> + Send;

    /// As `submit`, without an fsync of its own: durable with the next synced batch of this flow. For chunk
    /// parts, which mean nothing before their manifest.
    fn submit_buffered(&self, batch: Batch) -> impl Future<Output = Result<(), Error>> + Send;

    /// Runs a query on a reader thread.
    fn read<R, F>(&self, query: F) -> impl Future<Output = R> + Send
    where
        R: Send + 'static,
        F: FnOnce(&dyn Store) -> R + Send + 'static;
}

impl FlowLog for FlowLogHandle {
    type Receipt = Receipt;

    fn submit(&self, batch: Batch) -> impl Future<Output = Result<Receipt, Error>> + Send {
        FlowLogHandle::submit(self, batch)
    }

    fn submit_buffered(&self, batch: Batch) -> impl Future<Output = Result<(), Error>> + Send {
        FlowLogHandle::submit_buffered(self, batch)
    }

    fn read<R, F>(&self, query: F) -> impl Future<Output = R> + Send
    where
        R: Send + 'static,
        F: FnOnce(&dyn Store) -> R + Send + 'static,
    {
        FlowLogHandle::read(self, query)
    }
}
