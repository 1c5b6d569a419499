//! Ages, sizes and paths as people read them.

use std::path::Path;
use std::time::Duration;

use trellara_api::{Known, Time};

/// The two largest units: `3d 4h`, `12m 5s`, `0.4s`.
pub(crate) fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..10 => format!("{:.1}s", duration.as_secs_f64()),
        10..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m {}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h {}m", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{}d {}h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

pub(crate) fn age(now: Time, then: Time) -> String {
    duration(now.since(then))
}

pub(crate) fn seconds(seconds: f64) -> String {
    Duration::try_from_secs_f64(seconds.max(0.0)).map_or_else(|_| "?".to_owned(), duration)
}

pub(crate) fn bytes(bytes: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    match units.iter().find(|(shift, _)| bytes >= 1 << shift) {
        // Sizes stay far below 2^52, where f64 counts exactly.
        Some((shift, unit)) => format!("{:.1} {unit}", bytes as f64 / (1_u64 << shift) as f64),
        None => format!("{bytes} B"),
    }
}

/// The value as `show` writes it, or `unknown: why`.
pub(crate) fn known<T>(known: &Known<T>, show: impl Fn(&T) -> String) -> String {
    match known {
        Known::Value(value) => show(value),
        Known::Unknown { unknown } => format!("unknown: {unknown}"),
    }
}

/// As `known`, where a table has no room for the reason.
pub(crate) fn known_short<T>(known: &Known<T>, show: impl Fn(&T) -> String) -> String {
    known.value().map_or_else(|| "unknown".to_owned(), show)
}

/// A path as a shell reads it back.
pub(crate) fn shell(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+:@%".contains(&byte);
    if text.bytes().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_show_their_two_largest_units() {
        let shown = |seconds: f64| duration(Duration::from_secs_f64(seconds));
        assert_eq!(shown(0.42), "0.4s");
        assert_eq!(shown(59.9), "59s");
        assert_eq!(shown(725.0), "12m 5s");
        assert_eq!(shown(7_500.0), "2h 5m");
        assert_eq!(shown(273_600.0), "3d 4h");
    }

    #[test]
    fn sizes_show_one_decimal_in_binary_units() {
        assert_eq!(bytes(17), "17 B");
        assert_eq!(bytes(1_536), "1.5 KiB");
        assert_eq!(bytes(4 << 30), "4.0 GiB");
    }
}
