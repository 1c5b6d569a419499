//! Wanted flows against those that are there: what a reload does, as a pure comparison.

use std::collections::{BTreeMap, BTreeSet};

use trellara_storage::FlowName;

/// One configured flow. The revision changes with every setting of it that is live on reload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedFlow {
    pub flow: FlowName,
    pub revision: String,
}

/// What a reload does. Nothing is ever dropped: a flow that left the configuration is detached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetDiff {
    pub start: Vec<FlowName>,
    /// Other settings: a new generation by them.
    pub restart: Vec<FlowName>,
    pub detach: Vec<FlowName>,
    pub unchanged: usize,
}

/// `present`: revision of each flow that is there, none while it is detached.
pub fn diff(present: &BTreeMap<FlowName, Option<String>>, wanted: &[WantedFlow]) -> FleetDiff {
    let mut diff = FleetDiff::default();
    for WantedFlow { flow, revision } in wanted {
        match present.get(flow) {
            None | Some(None) => diff.start.push(flow.clone()),
            Some(Some(running)) if running == revision => diff.unchanged += 1,
            Some(Some(_)) => diff.restart.push(flow.clone()),
        }
    }
    let names: BTreeSet<&FlowName> = wanted.iter().map(|wanted| &wanted.flow).collect();
    let left = present.iter().filter(|(flow, revision)| revision.is_some() && !names.contains(flow));
    diff.detach = left.map(|(flow, _)| flow.clone()).collect();
    diff
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "tests state what must hold")]

    use super::*;

    fn flow(text: &str) -> FlowName {
        text.parse().unwrap()
    }

    #[test]
    fn a_reload_starts_new_restarts_changed_and_detaches_missing_flows() {
        let present =
            [("a:d", Some("1")), ("b:d", Some("1")), ("c:d", Some("1")), ("d:d", None), ("e:d", None)]
                .map(|(name, revision)| (flow(name), revision.map(str::to_owned)))
                .into();
        let wanted = [("a:d", "1"), ("b:d", "2"), ("d:d", "1"), ("f:d", "1")]
            .map(|(name, revision)| WantedFlow { flow: flow(name), revision: revision.to_owned() });
        let expected = FleetDiff {
            start: vec![flow("d:d"), flow("f:d")],
            restart: vec![flow("b:d")],
            detach: vec![flow("c:d")],
            unchanged: 1,
        };
        assert_eq!(diff(&present, &wanted), expected);
    }
}
