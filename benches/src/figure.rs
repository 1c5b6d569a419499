//! Figures: medians over the runs, their ratio, and the target that it is held against.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

/// One line of the result, as JSON.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// Target and workload: `P2/w1`.
    pub id: String,
    /// What `other` is.
    pub against: &'static str,
    /// Median seconds.
    pub ours: f64,
    /// Median seconds.
    pub other: f64,
    /// `other / ours`: above one is faster than the other.
    pub ratio: f64,
    /// Smallest and largest ratio of a single run.
    pub spread: [f64; 2],
    pub target: f64,
    pub ok: bool,
}

impl Figure {
    /// Pairs are of one run each; there is at least one.
    pub fn of(id: String, against: &'static str, ours: &[Duration], other: &[Duration], target: f64) -> Self {
        let ratios: Vec<f64> =
            ours.iter().zip(other).map(|(ours, other)| other.as_secs_f64() / ours.as_secs_f64()).collect();
        let (ours, other) = (median(ours), median(other));
        let ratio = other / ours;
        let spread = [
            ratios.iter().copied().fold(f64::INFINITY, f64::min),
            ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        ];
        Self { id, against, ours, other, ratio, spread, target, ok: ratio >= target }
    }
}

/// For people.
pub fn table(figures: &[Figure]) -> String {
    let mut text = format!(
        "{:<7} {:<28} {:>8} {:>8} {:>7} {:>15} {:>7}  met\n",
        "id", "against", "ours s", "other s", "ratio", "spread", "target"
    );
    for figure in figures {
        let spread = format!("{:.2} to {:.2}", figure.spread[0], figure.spread[1]);
        let met = if figure.ok { "yes" } else { "no" };
        let written = writeln!(
            text,
            "{:<7} {:<28} {:>8.2} {:>8.2} {:>7.2} {:>15} {:>7.2}  {met}",
            figure.id, figure.against, figure.ours, figure.other, figure.ratio, spread, figure.target
        );
        debug_assert!(written.is_ok(), "a String takes everything");
    }
    text
}

fn median(times: &[Duration]) -> f64 {
    let mut seconds: Vec<f64> = times.iter().map(Duration::as_secs_f64).collect();
    seconds.sort_by(f64::total_cmp);
    seconds.get(seconds.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_as_fast_is_a_ratio_of_two_and_the_spread_is_of_single_runs() {
        let seconds = |all: [u64; 3]| all.map(Duration::from_secs);
        let figure = Figure::of("P2/w1".into(), "native", &seconds([1, 2, 4]), &seconds([4, 4, 4]), 2.0);
        assert!((figure.ratio - 2.0).abs() < f64::EPSILON);
        assert!(
            (figure.spread[0] - 1.0).abs() < f64::EPSILON && (figure.spread[1] - 4.0).abs() < f64::EPSILON
        );
        assert!(figure.ok);
        assert!(table(&[figure]).contains("P2/w1"));
    }
}
