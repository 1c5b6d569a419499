//! Which flows pause capture so that the store never meets a full disk; pure, but for asking the file
//! system how full it is.
//!
//! A flow at its own budget pauses alone. Above 80 % of the total, flows over their fair share pause,
//! largest unapplied first, until what the others hold fits again. Below the reserve nobody captures.

use std::collections::BTreeMap;
use std::path::Path;

use crate::FlowId;

const GIB: u64 = 1024 * 1024 * 1024;
/// Part of the total above which flows over their fair share pause.
const CROWDED_PERCENT: u64 = 80;
/// A paused flow goes on only when it is this far below what paused it.
const RESUME_PERCENT: u64 = 90;

/// A file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    pub total: u64,
    /// Free to this process.
    pub free: u64,
}

impl Space {
    /// Asks the file system that holds `path`.
    ///
    /// # Errors
    /// What `statvfs` says.
    pub fn of(path: &Path) -> std::io::Result<Self> {
        let found = rustix::fs::statvfs(path)?;
        Ok(Self {
            total: found.f_blocks.saturating_mul(found.f_frsize),
            free: found.f_bavail.saturating_mul(found.f_frsize),
        })
    }
}

/// Budgets over all flows, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub total: u64,
    /// Free space below which nobody captures.
    pub reserve: u64,
}

impl Limits {
    /// 70 % of the file system in all; 5 % of it, and at least 2 GiB, in reserve.
    pub fn for_space(space: Space) -> Self {
        Self { total: space.total / 10 * 7, reserve: (space.total / 20).max(2 * GIB) }
    }
}

/// One flow's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    pub flow: FlowId,
    pub used: u64,
    pub unapplied: u64,
    /// The flow's own budget.
    pub max: u64,
    /// Paused by an earlier decision.
    pub paused: bool,
}

/// Why a flow pauses capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Full {
    /// Its own budget is used up.
    Flow,
    /// The total is crowded, and it holds more than its share.
    Share,
    /// The total is used up.
    Total,
    /// The file system has no more than the reserve left.
    Reserve,
}

/// The flows that must not capture now.
pub fn full(limits: Limits, space: Space, flows: &[Usage]) -> BTreeMap<FlowId, Full> {
    let any_paused = flows.iter().any(|flow| flow.paused);
    let used: u64 = flows.iter().map(|flow| flow.used).sum();
    if space.free < limits.reserve || (any_paused && percent(space.free, RESUME_PERCENT) < limits.reserve) {
        return everyone(flows, Full::Reserve);
    }
    if used >= limits.total {
        return everyone(flows, Full::Total);
    }
    let mut full = over_share(limits, used, flows);
    for flow in flows.iter().filter(|flow| flow.used >= resume_below(flow.paused, flow.max)) {
        full.insert(flow.flow, Full::Flow);
    }
    full
}

fn everyone(flows: &[Usage], why: Full) -> BTreeMap<FlowId, Full> {
    flows.iter().map(|flow| (flow.flow, why)).collect()
}

fn over_share(limits: Limits, used: u64, flows: &[Usage]) -> BTreeMap<FlowId, Full> {
    let crowded = percent(limits.total, CROWDED_PERCENT);
    let share = limits.total / (flows.len() as u64).max(1);
    let mut over: Vec<_> = flows.iter().filter(|flow| flow.used > resume_below(flow.paused, share)).collect();
    over.sort_by_key(|flow| (std::cmp::Reverse(flow.unapplied), flow.flow));
    let mut capturing = used;
    let mut full = BTreeMap::new();
    for flow in over {
        if capturing <= crowded {
            break;
        }
        capturing -= flow.used;
        full.insert(flow.flow, Full::Share);
    }
    full
}

fn resume_below(paused: bool, limit: u64) -> u64 {
    if paused { percent(limit, RESUME_PERCENT) } else { limit }
}

fn percent(of: u64, percent: u64) -> u64 {
    u64::try_from(u128::from(of) * u128::from(percent) / 100).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { total: 1000, reserve: 100 };
    const ROOMY: Space = Space { total: 10_000, free: 5_000 };

    fn usage(flow: u32, used: u64) -> Usage {
        Usage { flow: FlowId::new(flow), used, unapplied: used, max: 600, paused: false }
    }

    fn decide(space: Space, flows: &[Usage]) -> Vec<(u32, Full)> {
        full(LIMITS, space, flows).into_iter().map(|(flow, why)| (flow.get(), why)).collect()
    }

    #[test]
    fn nobody_pauses_while_there_is_room() {
        assert_eq!(decide(ROOMY, &[usage(1, 500), usage(2, 100)]), []);
    }

    #[test]
    fn a_flow_at_its_own_budget_pauses_alone_and_goes_on_with_some_room() {
        assert_eq!(decide(ROOMY, &[usage(1, 600), usage(2, 10)]), [(1, Full::Flow)]);
        let paused = |used| Usage { paused: true, ..usage(1, used) };
        assert_eq!(decide(ROOMY, &[paused(590)]), [(1, Full::Flow)]);
        assert_eq!(decide(ROOMY, &[paused(500)]), []);
    }

    #[test]
    fn in_a_crowd_the_largest_unapplied_over_its_share_pauses_first() {
        let flows = [usage(1, 400), usage(2, 350), usage(3, 60), usage(4, 50)];
        assert_eq!(decide(ROOMY, &flows), [(1, Full::Share)]);
        let applied = Usage { unapplied: 10, ..usage(1, 400) };
        assert_eq!(decide(ROOMY, &[applied, flows[1], flows[2], flows[3]]), [(2, Full::Share)]);
    }

    #[test]
    fn a_flow_within_its_share_never_pauses_for_others() {
        let mut flows = vec![usage(1, 500), usage(2, 450)];
        flows.extend((3..=10).map(|flow| usage(flow, 4)));
        let paused = decide(ROOMY, &flows);
        assert!(paused.iter().all(|(flow, _)| *flow <= 2), "{paused:?}");
    }

    #[test]
    fn nobody_captures_at_the_total_or_into_the_reserve() {
        let flows = [usage(1, 500), usage(2, 500)];
        assert_eq!(decide(ROOMY, &flows), [(1, Full::Total), (2, Full::Total)]);
        let tight = Space { free: 99, ..ROOMY };
        assert_eq!(decide(tight, &[usage(1, 1)]), [(1, Full::Reserve)]);
        let barely = Space { free: 105, ..ROOMY };
        assert_eq!(decide(barely, &[usage(1, 1)]), []);
        assert_eq!(decide(barely, &[Usage { paused: true, ..usage(1, 1) }]), [(1, Full::Reserve)]);
    }

    #[test]
    fn the_file_system_of_a_path_has_a_size() {
        let space = Space::of(Path::new("/")).expect("the root is a file system");
        assert!(space.total > 0 && space.free <= space.total);
        assert!(Limits::for_space(space).reserve >= 2 * GIB);
    }
}
