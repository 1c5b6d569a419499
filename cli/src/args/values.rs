//! Values of arguments.

use std::time::Duration;

/// `30s`, `500ms`, `2h`, as in the configuration.
///
/// # Errors
/// What to write instead.
pub fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let milliseconds: u64 = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err("write a number with a unit: 30s, 5m, 2h".to_owned()),
    };
    let number = number.parse::<u64>().ok().and_then(|number| number.checked_mul(milliseconds));
    number.map(Duration::from_millis).ok_or_else(|| "write a number with a unit: 30s, 5m, 2h".to_owned())
}
