//! The real clock behind the `Clock` port: system time, tokio's timer, the operating system's randomness.

use std::future::Future;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use trellara_actors::ports::Clock;
use trellara_storage::Timestamp;

/// Time of this process; `elapsed` counts from when it was made.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    pub fn new() -> Self {
        Self { start: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_unix_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }

    fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send {
        tokio::time::sleep(duration)
    }

    fn random(&self) -> u64 {
        rand::random()
    }
}
