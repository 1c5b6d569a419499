//! Which flows a request means: by name, source, unique prefix or glob, and by label.

use std::sync::Arc;

use globset::Glob;
use trellara_actors::flow::FlowStatus;
use trellara_api::{Problem, RequestCode, Selector};

use super::{AdminState, settings_of};
use crate::config::Settings;

type Flows = Vec<Arc<FlowStatus>>;

impl AdminState {
    /// The flows of a report; an empty selection means all.
    pub(super) fn chosen(&self, selector: &Selector) -> Result<Flows, Problem> {
        chosen(self.fleet.view().flows(), &self.settings(), selector)
    }

    /// The flows that a command acts on: never all of them by omission.
    pub(super) fn acted_on(&self, selector: &Selector) -> Result<Flows, Problem> {
        if selector.is_empty() != selector.all {
            let hint = "name flows, or choose them by label; or all of them with --all alone";
            return Err(Problem::new(RequestCode::RequestInvalid, "no flows are chosen").hint(hint));
        }
        self.chosen(selector)
    }

    /// Exactly one flow.
    pub(super) fn one(&self, name: &str) -> Result<Arc<FlowStatus>, Problem> {
        let flows = self.fleet.view().flows();
        let mut named = named(&flows, name)?;
        match named.len() {
            1 => Ok(named.remove(0)),
            _ => Err(ambiguous(name, &named)),
        }
    }
}

fn chosen(flows: Flows, settings: &Settings, selector: &Selector) -> Result<Flows, Problem> {
    let labels: Vec<(&str, &str)> = selector
        .labels
        .iter()
        .map(|label| {
            label.split_once('=').ok_or_else(|| {
                Problem::new(RequestCode::RequestInvalid, format!("{label:?} is not name=value"))
            })
        })
        .collect::<Result<_, _>>()?;
    let mut chosen: Flows = Vec::new();
    if selector.flows.is_empty() {
        chosen = flows;
    } else {
        for name in &selector.flows {
            for flow in named(&flows, name)? {
                if !chosen.iter().any(|known| known.flow == flow.flow) {
                    chosen.push(flow);
                }
            }
        }
    }
    chosen.retain(|flow| {
        let own = settings_of(settings, &flow.flow).map(|settings| settings.labels.as_slice());
        let has =
            |name: &str, value: &str| own.unwrap_or_default().iter().any(|(n, v)| n == name && v == value);
        labels.iter().all(|(name, value)| has(name, value))
    });
    if chosen.is_empty() && !selector.is_empty() {
        let asked = selector.flows.iter().chain(&selector.labels).cloned().collect::<Vec<_>>().join(", ");
        return Err(missing(&asked));
    }
    Ok(chosen)
}

/// A glob names any number of flows; anything else exactly one.
fn named(flows: &[Arc<FlowStatus>], name: &str) -> Result<Flows, Problem> {
    let matching = |fits: &dyn Fn(&FlowStatus) -> bool| -> Flows {
        flows.iter().filter(|flow| fits(flow)).cloned().collect()
    };
    if name.contains(['*', '?', '[']) {
        let glob = Glob::new(name)
            .map_err(|error| Problem::new(RequestCode::RequestInvalid, error.to_string()))?
            .compile_matcher();
        let whole = name.contains(':');
        let found = matching(&|flow| {
            if whole { glob.is_match(flow.flow.to_string()) } else { glob.is_match(flow.flow.source()) }
        });
        return if found.is_empty() { Err(missing(name)) } else { Ok(found) };
    }
    let ways: [&dyn Fn(&FlowStatus) -> bool; 3] =
        [&|flow| flow.flow.to_string() == name, &|flow| flow.flow.source() == name, &|flow| {
            flow.flow.to_string().starts_with(name)
        }];
    for way in ways {
        let found = matching(way);
        match found.len() {
            0 => {}
            1 => return Ok(found),
            _ => return Err(ambiguous(name, &found)),
        }
    }
    Err(missing(name))
}

fn missing(name: &str) -> Problem {
    Problem::new(RequestCode::FlowNotFound, format!("{name:?} matches no flow"))
        .hint("see them all: trellara flow list")
}

fn ambiguous(name: &str, found: &[Arc<FlowStatus>]) -> Problem {
    let shown: Vec<String> = found.iter().take(5).map(|flow| flow.flow.to_string()).collect();
    let more = if found.len() > shown.len() { ", ..." } else { "" };
    let detail = format!("{name:?} fits {} flows: {}{more}", found.len(), shown.join(", "));
    Problem::new(RequestCode::NameAmbiguous, detail).hint("write source:dataset")
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

    use trellara_actors::flow::phase::Reason;
    use trellara_actors::flow::{Condition, Phase};
    use trellara_storage::Timestamp;

    use super::*;

    fn flows() -> Flows {
        let flow = |name: &str| {
            let reason = Reason {
                phase: Phase::Connecting,
                class: None,
                code: None,
                sqlstate: None,
                constraint: None,
                cause: "connecting".to_owned(),
                evidence: None,
            };
            let condition = Condition { reason, since: Timestamp::default() };
            Arc::new(FlowStatus::bare(name.parse().unwrap(), 1, condition))
        };
        ["hub:retail", "hub:stock", "store-0001:retail", "store-0010:retail"].map(flow).into()
    }

    fn names(found: Result<Flows, Problem>) -> Result<Vec<String>, String> {
        found
            .map(|flows| flows.iter().map(|flow| flow.flow.to_string()).collect())
            .map_err(|problem| problem.code)
    }

    #[test]
    fn a_name_is_whole_or_a_source_or_a_unique_prefix_or_a_glob() {
        let cases: [(&str, &[&str]); 6] = [
            ("hub:stock", &["hub:stock"]),
            ("store-0001", &["store-0001:retail"]),
            ("store-000", &["store-0001:retail"]),
            ("store-*", &["store-0001:retail", "store-0010:retail"]),
            ("*:retail", &["hub:retail", "store-0001:retail", "store-0010:retail"]),
            ("hub:s", &["hub:stock"]),
        ];
        for (name, expected) in cases {
            let expected = expected.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(names(named(&flows(), name)), Ok(expected), "{name}");
        }
    }

    #[test]
    fn a_name_of_several_flows_is_ambiguous_and_one_of_none_is_not_found() {
        let (ambiguous, missing) =
            (RequestCode::NameAmbiguous.to_string(), RequestCode::FlowNotFound.to_string());
        for (name, code) in
            [("hub", &ambiguous), ("store-00", &ambiguous), ("store-2", &missing), ("x*", &missing)]
        {
            assert_eq!(names(named(&flows(), name)), Err(code.clone()), "{name}");
        }
    }
}
