//! Numbers for the events of one flow. Its tasks and its actor each write events in batches of their own,
//! so the numbers come from one place.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Shared by everything that writes events of one flow.
#[derive(Clone, Debug)]
pub struct EventSequence(Arc<AtomicU64>);

impl EventSequence {
    /// Goes on behind `newest`, the newest number in the store, zero for none.
    pub fn after(newest: u64) -> Self {
        Self(Arc::new(AtomicU64::new(newest)))
    }

    /// A number that nobody else gets.
    pub fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}
