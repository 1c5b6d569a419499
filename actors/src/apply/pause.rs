//! How long to wait before another attempt.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(10);

/// Doubles with every failure in a row, counted from 1; between half and the whole of it, by `random`.
pub(super) fn pause(failures: u32, random: u64) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    let whole = FIRST.saturating_mul(1 << doublings).min(LONGEST);
    let half = whole / 2;
    let micros = u64::try_from(half.as_micros()).unwrap_or(u64::MAX);
    half + Duration::from_micros(random % (micros + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_doubles_up_to_its_end_and_never_falls_below_half() {
        let mut whole = FIRST;
        for failures in 1..100 {
            for random in [0, 1, u64::MAX / 2, u64::MAX] {
                let pause = pause(failures, random);
                assert!(pause >= whole / 2 && pause <= whole, "{failures} {random} {pause:?}");
            }
            whole = (whole * 2).min(LONGEST);
        }
    }
}
