//! Which flows a request is about.

use serde::{Deserialize, Serialize};

/// Flows by name and by label; both narrow. Names are `source:dataset`, a source alone where that is
/// unique, a unique prefix, or a glob. Empty means every flow for reports; commands want `all` for that.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Selector {
    pub flows: Vec<String>,
    /// `name=value`.
    pub labels: Vec<String>,
    pub all: bool,
}

impl Selector {
    /// One flow by name.
    pub fn flow(name: impl Into<String>) -> Self {
        Self { flows: vec![name.into()], ..Self::default() }
    }

    pub fn is_empty(&self) -> bool {
        self.flows.is_empty() && self.labels.is_empty()
    }

    /// As `flows=a,b&labels=c=d` for a query: neither names nor labels may hold a comma.
    pub fn query(&self) -> String {
        let part = |name: &str, values: &[String]| {
            let values: Vec<String> = values.iter().map(|value| crate::path::encode(value)).collect();
            (!values.is_empty()).then(|| format!("{name}={}", values.join(",")))
        };
        let parts = [part("flows", &self.flows), part("labels", &self.labels)];
        parts.into_iter().flatten().collect::<Vec<_>>().join("&")
    }
}

/// The query of a report about a selection.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct SelectorQuery {
    pub flows: String,
    pub labels: String,
}

impl From<SelectorQuery> for Selector {
    fn from(query: SelectorQuery) -> Self {
        let list =
            |text: String| text.split(',').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        Selector { flows: list(query.flows), labels: list(query.labels), all: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_becomes_a_query_that_reads_back_the_same() {
        let selector = Selector {
            flows: vec!["store-00*".to_owned(), "hub:retail".to_owned()],
            labels: vec!["region=west".to_owned()],
            all: false,
        };
        assert_eq!(selector.query(), "flows=store-00%2A,hub%3Aretail&labels=region%3Dwest");
        let query =
            SelectorQuery { flows: "store-00*,hub:retail".to_owned(), labels: "region=west".to_owned() };
        assert_eq!(Selector::from(query), selector);
    }
}
