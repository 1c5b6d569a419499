//! Time, chance and waiting.

use std::future::Future;
use std::time::Duration;

use trellara_storage::Timestamp;

/// Time as the cores see it. In the simulation both run on scheduled time.
pub trait Clock: Clone + Send + Sync + 'static {
    /// Wall clock, for records and people.
    fn now(&self) -> Timestamp;

    /// Monotonic time since an arbitrary start, for deadlines.
    fn elapsed(&self) -> Duration;

    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send;

    /// A random number, for jitter and ids.
    fn random(&self) -> u64;
}
