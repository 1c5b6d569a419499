//! One wheel for all flows: each has at most one deadline here, and no timer of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use trellara_storage::FlowName;

/// Deadlines by monotonic time. Shared by the flows that set them and the supervisor that watches.
#[derive(Debug, Default)]
pub struct Wheel(Mutex<Deadlines>);

#[derive(Debug, Default)]
struct Deadlines {
    by_flow: BTreeMap<FlowName, Duration>,
    by_time: BTreeSet<(Duration, FlowName)>,
}

impl Wheel {
    /// Replaces the flow's deadline; none takes it away.
    pub fn set(&self, flow: &FlowName, deadline: Option<Duration>) {
        let mut deadlines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if deadlines.by_flow.get(flow) == deadline.as_ref() {
            return;
        }
        if let Some(earlier) = deadlines.by_flow.remove(flow) {
            deadlines.by_time.remove(&(earlier, flow.clone()));
        }
        if let Some(deadline) = deadline {
            deadlines.by_flow.insert(flow.clone(), deadline);
            deadlines.by_time.insert((deadline, flow.clone()));
        }
    }

    /// Takes out everything that is due.
    pub fn due(&self, now: Duration) -> Vec<FlowName> {
        let mut deadlines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut due = Vec::new();
        while deadlines.by_time.first().is_some_and(|(at, _)| *at <= now) {
            if let Some((_, flow)) = deadlines.by_time.pop_first() {
                deadlines.by_flow.remove(&flow);
                due.push(flow);
            }
        }
        due
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests state what must hold")]

    use super::*;

    fn flow(text: &str) -> FlowName {
        text.parse().unwrap()
    }

    #[test]
    fn a_deadline_comes_due_once_in_order_and_the_newest_counts() {
        let wheel = Wheel::default();
        wheel.set(&flow("a:d"), Some(Duration::from_secs(9)));
        wheel.set(&flow("b:d"), Some(Duration::from_secs(2)));
        wheel.set(&flow("a:d"), Some(Duration::from_secs(1)));
        wheel.set(&flow("c:d"), Some(Duration::from_secs(1)));
        wheel.set(&flow("c:d"), None);
        assert_eq!(wheel.due(Duration::ZERO), []);
        assert_eq!(wheel.due(Duration::from_secs(3)), [flow("a:d"), flow("b:d")]);
        assert_eq!(wheel.due(Duration::from_secs(30)), []);
    }
}
