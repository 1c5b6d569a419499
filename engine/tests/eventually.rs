//! Waiting for an observed state. The only place of these tests where time passes on purpose.

use std::future::Future;
use std::panic::Location;
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Longest that a state may take to show; a loaded two-core machine needs the room.
const DEADLINE: Duration = Duration::from_secs(30);

/// Asks `probe` until it returns something.
///
/// # Panics
/// After [`DEADLINE`], naming `what` and the caller.
#[track_caller]
pub(crate) fn eventually<T, F>(what: &str, mut probe: impl FnMut() -> F) -> impl Future<Output = T>
where
    F: Future<Output = Option<T>>,
{
    let caller = Location::caller();
    async move {
        let deadline = Instant::now() + DEADLINE;
        loop {
            if let Some(seen) = probe().await {
                return seen;
            }
            assert!(Instant::now() < deadline, "waited {DEADLINE:?} for: {what} ({caller})");
            sleep(Duration::from_millis(10)).await;
        }
    }
}
