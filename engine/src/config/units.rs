//! Durations and sizes as people write them, always with a unit.

use std::time::Duration;

/// `30s`, `500ms`, `2h`.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = split(text)?;
    let milliseconds = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.checked_mul(milliseconds).map(Duration::from_millis)
}

/// `4GiB`, `512MiB`: binary units only, because a budget that is 7 % off is a surprise.
pub(super) fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = split(text)?;
    let shift = match unit {
        "B" => 0,
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        "TiB" => 40,
        _ => return None,
    };
    number.checked_mul(1 << shift)
}

/// The shortest text that `duration` reads back.
pub(super) fn show_duration(duration: Duration) -> String {
    let milliseconds = duration.as_millis();
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s")];
    let whole = units.iter().find(|(size, _)| milliseconds >= *size && milliseconds.is_multiple_of(*size));
    whole.map_or_else(|| format!("{milliseconds}ms"), |(size, unit)| format!("{}{unit}", milliseconds / size))
}

/// The shortest text that `bytes` reads back.
pub(super) fn show_bytes(bytes: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let whole = units.iter().find(|(shift, _)| bytes >= 1 << shift && bytes.is_multiple_of(1 << shift));
    whole.map_or_else(|| format!("{bytes}B"), |(shift, unit)| format!("{}{unit}", bytes >> shift))
}

fn split(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(end);
    Some((number.parse().ok()?, unit.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes_read_back_what_they_show() {
        for text in ["500ms", "30s", "90m", "2h", "7d"] {
            assert_eq!(duration(text).map(show_duration).as_deref(), Some(text));
        }
        for text in ["17B", "64KiB", "512MiB", "4GiB", "2TiB"] {
            assert_eq!(bytes(text).map(show_bytes).as_deref(), Some(text));
        }
    }

    #[test]
    fn a_number_without_a_unit_or_with_a_decimal_one_is_not_read() {
        for text in ["30", "", "s", "1.5h", "-1s", "30 sec", "99999999999999999999s"] {
            assert_eq!(duration(text), None, "{text}");
        }
        for text in ["4", "4GB", "4G", "-1GiB", "18446744073709551615GiB"] {
            assert_eq!(bytes(text), None, "{text}");
        }
    }
}
