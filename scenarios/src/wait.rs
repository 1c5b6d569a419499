//! Waiting for observed states.
//!
//! Nothing here waits for a time to pass: every wait names what it looks for and how long that may take at most.
//! The danger is a look that itself hangs; callers give their own connections a timeout.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// Looks again and again until `look` finds something. An error while looking counts as "not yet" and is shown
/// when the time is up.
///
/// # Errors
/// Nothing was found within `within`.
pub async fn until<T>(
    what: &str,
    within: Duration,
    mut look: impl AsyncFnMut() -> Result<Option<T>>,
) -> Result<T> {
    let deadline = Instant::now() + within;
    let mut pause = FIRST_PAUSE;
    loop {
        let seen = look().await;
        if let Ok(Some(found)) = seen {
            return Ok(found);
        }
        if Instant::now() >= deadline {
            let waited = format!("not seen within {} s: {what}", within.as_secs_f32());
            return match seen {
                Err(error) => Err(error).context(waited),
                Ok(_) => bail!(waited),
            };
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
