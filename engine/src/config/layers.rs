//! The layers: file, then `TRELLARA__...` environment, then flags. The crate `config` lays them over each
//! other; what comes out is joined again with the lines that the values were written on.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use config::{Map, Source, Value, ValueKind};

use super::finding::Findings;
use super::tree::{Item, Node, Origin};
use super::yaml;

/// What comes on top of the file.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// Variables by name; only those beginning with `TRELLARA__` count.
    pub environment: HashMap<String, String>,
    /// Dotted keys with values.
    pub flags: Vec<(String, String)>,
}

impl Overrides {
    /// The process's own environment. Variables that are not text are none of ours.
    pub fn from_environment() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self { environment: std::env::vars_os().filter_map(text).collect(), flags: Vec::new() }
    }
}

const ENVIRONMENT: &str = "the environment";

/// The tree of all layers; none when the file could not be read, which is then a finding.
pub(super) fn read(path: &Path, shown: &str, overrides: &Overrides, findings: &Findings) -> Option<Item> {
    let whole = Origin { place: shown.to_owned(), path: String::new() };
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => {
            findings.add(&whole, format!("cannot be read: {error}"), None);
            return None;
        }
    };
    let file = yaml::read(&text, shown, findings)?;
    let Node::Table(keys) = &file.node else {
        findings.add(&file.origin, "is not a section", Some("begin with config_version: 1".into()));
        return None;
    };
    let environment = config::Environment::with_prefix("TRELLARA")
        .prefix_separator("__")
        .separator("__")
        .source(Some(overrides.environment.clone()));
    let mut builder = config::Config::builder().add_source(Written(keys.clone())).add_source(environment);
    for (key, value) in &overrides.flags {
        builder = match builder.set_override(key, value.clone()) {
            Ok(builder) => builder,
            Err(error) => {
                findings.add(&whole, format!("flag for {key} is not valid: {error}"), None);
                return None;
            }
        };
    }
    match builder.build() {
        Ok(layered) => Some(Lines::of(&file).attach(layered.cache, String::new())),
        Err(error) => {
            findings.add(&whole, error.to_string(), None);
            None
        }
    }
}

/// The file as a layer: every value as the text that was written.
#[derive(Clone, Debug)]
struct Written(BTreeMap<String, Item>);

impl Source for Written {
    fn clone_into_box(&self) -> Box<dyn Source + Send + Sync> {
        Box::new(self.clone())
    }

    fn collect(&self) -> Result<Map<String, Value>, config::ConfigError> {
        Ok(self.0.iter().map(|(key, item)| (key.clone(), value(item))).collect())
    }
}

fn value(item: &Item) -> Value {
    let kind = match &item.node {
        Node::Null => ValueKind::Nil,
        Node::Scalar { text, .. } => ValueKind::String(text.clone()),
        Node::List(items) => ValueKind::Array(items.iter().map(value).collect()),
        Node::Table(table) => {
            ValueKind::Table(table.iter().map(|(key, item)| (key.clone(), value(item))).collect())
        }
    };
    Value::new(Some(&item.origin.place), kind)
}

/// What the file says at each path.
struct Lines<'t> {
    written: HashMap<String, &'t Item>,
}

impl<'t> Lines<'t> {
    fn of(file: &'t Item) -> Self {
        let mut lines = Self { written: HashMap::new() };
        lines.collect(file);
        lines
    }

    fn collect(&mut self, item: &'t Item) {
        self.written.insert(item.origin.path.clone(), item);
        match &item.node {
            Node::Null | Node::Scalar { .. } => {}
            Node::List(items) => items.iter().for_each(|item| self.collect(item)),
            Node::Table(table) => table.values().for_each(|item| self.collect(item)),
        }
    }

    fn attach(&self, value: Value, path: String) -> Item {
        let overridden = value.origin() == Some(ENVIRONMENT) || value.origin().is_none();
        let written = self.written.get(&path);
        let place = match (written, value.origin()) {
            (Some(item), _) if !overridden => item.origin.place.clone(),
            (_, Some(ENVIRONMENT)) => {
                format!("TRELLARA__{}", path.to_uppercase().replace('.', "__"))
            }
            (Some(item), _) => item.origin.place.clone(),
            (None, Some(origin)) => origin.to_owned(),
            (None, None) => "flags".to_owned(),
        };
        let plain =
            !overridden && written.is_some_and(|item| matches!(item.node, Node::Scalar { plain: true, .. }));
        let node = match value.kind {
            ValueKind::Nil => Node::Null,
            ValueKind::Array(values) => Node::List(
                values
                    .into_iter()
                    .enumerate()
                    .map(|(n, value)| self.attach(value, format!("{path}[{n}]")))
                    .collect(),
            ),
            ValueKind::Table(table) => {
                let child = |(key, value): (String, Value)| {
                    let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    (key, self.attach(value, path))
                };
                Node::Table(table.into_iter().map(child).collect())
            }
            ValueKind::String(text) => Node::Scalar { text, plain },
            number @ (ValueKind::Boolean(_)
            | ValueKind::I64(_)
            | ValueKind::I128(_)
            | ValueKind::U64(_)
            | ValueKind::U128(_)
            | ValueKind::Float(_)) => Node::Scalar { text: number.to_string(), plain: false },
        };
        Item::new(node, Origin { place, path })
    }
}
