//! Reading one section: every key is asked for by name and type; what nobody asked for is unknown.

use std::collections::BTreeMap;
use std::time::Duration;

use super::finding::Findings;
use super::tree::{Item, Node, Origin};
use super::units;

/// A single value with the place where it was written.
#[derive(Clone, Debug)]
pub(super) struct Text {
    pub(super) text: String,
    /// Without quotes in YAML.
    pub(super) plain: bool,
    pub(super) origin: Origin,
}

/// A section being read. `finish` reports the keys that were never asked for.
#[derive(Debug)]
pub(super) struct Section<'f> {
    items: BTreeMap<String, Item>,
    origin: Origin,
    known: Vec<&'static str>,
    /// False when something else stood in its place: then nothing in it is missing.
    sound: bool,
    findings: &'f Findings,
}

impl<'f> Section<'f> {
    /// Anything but a section is a finding, and then an empty one is read.
    pub(super) fn new(item: Item, findings: &'f Findings) -> Self {
        let kind = item.kind();
        let (items, sound) = match item.node {
            Node::Table(items) => (items, true),
            Node::Null => (BTreeMap::new(), true),
            Node::Scalar { .. } | Node::List(_) => {
                findings.add(&item.origin, format!("is {kind}, a section is expected"), None);
                (BTreeMap::new(), false)
            }
        };
        Self { items, origin: item.origin, known: Vec::new(), sound, findings }
    }

    pub(super) fn origin(&self) -> &Origin {
        &self.origin
    }

    pub(super) fn is_sound(&self) -> bool {
        self.sound
    }

    pub(super) fn findings(&self) -> &'f Findings {
        self.findings
    }

    /// The item under a key; null counts as absent.
    pub(super) fn item(&mut self, key: &'static str) -> Option<Item> {
        self.known.push(key);
        self.items.remove(key).filter(|item| item.node != Node::Null)
    }

    /// The section under a key; an absent one reads as empty.
    pub(super) fn section(&mut self, key: &'static str) -> Section<'f> {
        let origin = Origin { place: self.origin.place.clone(), path: self.path_of(key) };
        let empty = Item::new(Node::Table(BTreeMap::new()), origin);
        Section::new(self.item(key).unwrap_or(empty), self.findings)
    }

    pub(super) fn text(&mut self, key: &'static str) -> Option<Text> {
        let item = self.item(key)?;
        let kind = item.kind();
        let Node::Scalar { text, plain } = item.node else {
            self.findings.add(&item.origin, format!("is {kind}, a single value is expected"), None);
            return None;
        };
        Some(Text { text, plain, origin: item.origin })
    }

    pub(super) fn required(&mut self, key: &'static str, example: &str) -> Option<Text> {
        let missing = self.sound && !self.items.get(key).is_some_and(|item| item.node != Node::Null);
        let text = self.text(key);
        if missing {
            let origin = Origin { place: self.origin.place.clone(), path: self.path_of(key) };
            self.findings.add(&origin, "is missing", Some(format!("write {key}: {example}")));
        }
        text
    }

    /// A value of its own syntax. `expected` completes "is not ...".
    pub(super) fn parsed<T>(
        &mut self,
        key: &'static str,
        expected: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.text(key)?;
        let value = parse(&text.text);
        if value.is_none() {
            self.findings.add(&text.origin, format!("{:?} is not {expected}", text.text), None);
        }
        value
    }

    pub(super) fn duration(&mut self, key: &'static str, default: Duration) -> Duration {
        let expected = "a duration, write for instance 30s, 500ms or 2h";
        self.parsed(key, expected, units::duration).unwrap_or(default)
    }

    pub(super) fn bytes(&mut self, key: &'static str) -> Option<u64> {
        self.parsed(key, "a size, write for instance 512MiB or 4GiB", units::bytes)
    }

    pub(super) fn number(&mut self, key: &'static str) -> Option<u32> {
        self.parsed(key, "a whole number above 0", |text| text.parse().ok().filter(|number| *number > 0))
    }

    /// `on` and `off`, as PostgreSQL writes them; YAML's own words too.
    pub(super) fn switch(&mut self, key: &'static str, default: bool) -> bool {
        let choices = [("on", true), ("off", false), ("true", true), ("false", false)];
        self.choice(key, &choices).unwrap_or(default)
    }

    pub(super) fn choice<T: Copy>(&mut self, key: &'static str, choices: &[(&str, T)]) -> Option<T> {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        let expected = format!("one of {}", names.join(", "));
        self.parsed(key, &expected, |text| {
            choices.iter().find(|(name, _)| *name == text).map(|(_, choice)| *choice)
        })
    }

    /// Single values of a list. Where lists cannot be written (CSV cells, the environment), one value holds
    /// them all, separated by commas or spaces.
    pub(super) fn texts(&mut self, key: &'static str) -> Option<Vec<Text>> {
        let item = self.item(key)?;
        let kind = item.kind();
        let origin = item.origin;
        match item.node {
            Node::List(items) => Some(items.into_iter().filter_map(|item| self.element(item)).collect()),
            Node::Scalar { text, plain: false } => {
                let words = text.split([',', ' ']).filter(|word| !word.is_empty());
                let texts =
                    words.map(|word| Text { text: word.to_owned(), plain: false, origin: origin.clone() });
                Some(texts.collect())
            }
            Node::Scalar { text, plain: true } => {
                let instead = Some(format!("write {key}: [{text}]"));
                self.findings.add(&origin, "is a single value, a list is expected", instead);
                None
            }
            Node::Null | Node::Table(_) => {
                self.findings.add(&origin, format!("is {kind}, a list is expected"), None);
                None
            }
        }
    }

    fn element(&self, item: Item) -> Option<Text> {
        let kind = item.kind();
        let Node::Scalar { text, plain } = item.node else {
            self.findings.add(&item.origin, format!("is {kind}, a single value is expected"), None);
            return None;
        };
        Some(Text { text, plain, origin: item.origin })
    }

    /// Keys with single values, for sections whose keys are the user's own.
    pub(super) fn entries(self) -> Vec<(String, Text)> {
        let entry = |(key, item): (String, Item)| Some((key, self.element(item)?));
        self.items.clone().into_iter().filter_map(entry).collect()
    }

    /// Nothing may be left.
    pub(super) fn finish(self) {
        for (key, item) in &self.items {
            let known = format!("known here: {}", self.known.join(", "));
            self.findings.add(&item.origin, format!("unknown key {key:?}"), Some(known));
        }
    }

    fn path_of(&self, key: &str) -> String {
        if self.origin.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.origin.path) }
    }
}

impl Text {
    /// YAML would read it as a number or a truth value, so that `0001` and `1` are the same.
    pub(super) fn is_ambiguous(&self) -> bool {
        let number = self.text.parse::<f64>().is_ok() || self.text.starts_with("0x");
        self.plain && (number || matches!(self.text.as_str(), "true" | "false" | "yes" | "no" | "on" | "off"))
    }
}
