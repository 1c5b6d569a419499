//! When a flow that ended is started again: a pure policy over exit and history.
//!
//! An orderly end is final. Everything else is tried again after an exponential backoff with jitter; a
//! flow that died `deaths` times inside `window` is parked as Failed while the fleet runs on. A store
//! without room is nobody's defect and is waited out for ever.

use std::collections::VecDeque;
use std::time::Duration;

use crate::failure::{Class, Code};
use crate::flow::state::Fault;
use crate::runtime::FlowExit;

/// Pace of restarts; of flows, and of the tasks inside one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestartPolicy {
    pub first: Duration,
    pub longest: Duration,
    /// This many deaths ...
    pub deaths: usize,
    /// ... inside this time park the flow.
    pub window: Duration,
}

impl Default for RestartPolicy {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(500),
            longest: Duration::from_secs(30),
            deaths: 6,
            window: Duration::from_secs(600),
        }
    }
}

/// What the supervisor does with a flow that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It was meant to end.
    Leave,
    RestartAfter(Duration),
    /// Failed, until someone restarts it.
    Park(Fault),
}

/// The deaths of one flow that still count, by monotonic time.
#[derive(Clone, Debug, Default)]
pub struct Deaths {
    at: VecDeque<Duration>,
    /// Since the process started.
    total: u64,
    last: Option<FlowExit>,
}

impl Deaths {
    pub fn total(&self) -> u64 {
        self.total
    }

    /// How it died last.
    pub fn last(&self) -> Option<&FlowExit> {
        self.last.as_ref()
    }

    /// A restart by an operator begins a new account.
    pub fn forgive(&mut self) {
        self.at.clear();
    }
}

impl RestartPolicy {
    /// Delay before attempt `failures + 1`: doubled with each failure, then drawn from its upper half, so
    /// that flows that failed together do not come back together.
    pub fn backoff(&self, failures: u32, random: u64) -> Duration {
        let doubled = 2_u32.saturating_pow(failures.saturating_sub(1).min(20));
        let full = self.first.saturating_mul(doubled).min(self.longest);
        let half = full / 2;
        half + half.mul_f64(fraction(random))
    }

    /// `now` is monotonic time.
    pub fn decide(&self, exit: &FlowExit, deaths: &mut Deaths, now: Duration, random: u64) -> Decision {
        match exit {
            FlowExit::Completed | FlowExit::Stopped => return Decision::Leave,
            FlowExit::NoRoom => return Decision::RestartAfter(self.backoff(u32::MAX, random)),
            FlowExit::Failed(_) | FlowExit::Panicked | FlowExit::Stalled | FlowExit::Lost => {}
        }
        deaths.total += 1;
        deaths.last = Some(exit.clone());
        deaths.at.push_back(now);
        while deaths.at.front().is_some_and(|at| now.saturating_sub(*at) > self.window) {
            deaths.at.pop_front();
        }
        if deaths.at.len() >= self.deaths {
            return Decision::Park(self.fault(exit, deaths.at.len()));
        }
        let failures = u32::try_from(deaths.at.len()).unwrap_or(u32::MAX);
        Decision::RestartAfter(self.backoff(failures, random))
    }

    fn fault(&self, exit: &FlowExit, deaths: usize) -> Fault {
        let why = match exit {
            FlowExit::Failed(fault) => fault.what.clone(),
            FlowExit::Panicked => Code::Panicked.title().to_owned(),
            FlowExit::Stalled => Code::Stalled.title().to_owned(),
            FlowExit::Lost => "its thread ended".to_owned(),
            FlowExit::NoRoom => Code::StoreFull.title().to_owned(),
            FlowExit::Completed | FlowExit::Stopped => "it was stopped".to_owned(),
        };
        let what = format!("ended {deaths} times within {} s, last: {why}", self.window.as_secs());
        Fault::new(Class::Defect, Code::KeepsDying, what)
    }
}

/// A random number as a fraction of one.
fn fraction(random: u64) -> f64 {
    f64::from(u32::try_from(random >> 32).expect("the upper half fits")) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn an_orderly_end_is_left_alone_and_every_death_is_tried_again() {
        let policy = RestartPolicy::default();
        for exit in [FlowExit::Completed, FlowExit::Stopped] {
            assert_eq!(policy.decide(&exit, &mut Deaths::default(), SECOND, 0), Decision::Leave);
        }
        let fault = Fault::new(Class::Defect, Code::StoreDamaged, "damaged");
        for exit in [FlowExit::Failed(fault), FlowExit::Panicked, FlowExit::Stalled, FlowExit::Lost] {
            let decision = policy.decide(&exit, &mut Deaths::default(), SECOND, 0);
            assert_eq!(decision, Decision::RestartAfter(policy.first / 2), "{exit:?}");
        }
    }

    #[test]
    fn a_flow_that_keeps_dying_is_parked_with_its_code() {
        let policy = RestartPolicy::default();
        let mut deaths = Deaths::default();
        let mut decisions =
            (0..).map(|n| policy.decide(&FlowExit::Panicked, &mut deaths, SECOND * n, u64::MAX));
        assert!(decisions.by_ref().take(policy.deaths - 1).all(|d| matches!(d, Decision::RestartAfter(_))));
        let Some(Decision::Park(fault)) = decisions.next() else { panic!("not parked") };
        assert_eq!(fault.code, Code::KeepsDying);
    }

    #[test]
    fn deaths_outside_the_window_do_not_count() {
        let policy = RestartPolicy::default();
        let mut deaths = Deaths::default();
        for n in 0..1_000 {
            let now = policy.window * n / 3;
            assert_ne!(
                std::mem::discriminant(&policy.decide(&FlowExit::Panicked, &mut deaths, now, 0)),
                std::mem::discriminant(&Decision::Park(Fault::new(Class::Defect, Code::KeepsDying, "")))
            );
        }
        assert_eq!(deaths.total(), 1_000);
    }

    #[test]
    fn a_store_without_room_is_waited_out_for_ever() {
        let policy = RestartPolicy::default();
        let mut deaths = Deaths::default();
        for _ in 0..100 {
            let decision = policy.decide(&FlowExit::NoRoom, &mut deaths, SECOND, 0);
            assert_eq!(decision, Decision::RestartAfter(policy.longest / 2));
        }
    }

    proptest! {
        #[test]
        fn backoff_grows_stays_bounded_and_is_never_less_than_half(failures in 1_u32..200, random: u64) {
            let policy = RestartPolicy::default();
            let full = policy.first.saturating_mul(2_u32.saturating_pow((failures - 1).min(20)))
                .min(policy.longest);
            let delay = policy.backoff(failures, random);
            prop_assert!(delay >= full / 2 && delay <= full);
        }
    }
}
