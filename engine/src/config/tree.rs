//! Configuration as a tree whose every value knows where it was written.

use std::collections::BTreeMap;

/// Where a value was written, and as what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Origin {
    /// `trellara.yml:12`, or the environment.
    pub(super) place: String,
    /// `flows[3].source.url`.
    pub(super) path: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) node: Node,
    pub(super) origin: Origin,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Null,
    /// Text as written. `plain`: without quotes in YAML, so that a number or truth value could be meant.
    Scalar {
        text: String,
        plain: bool,
    },
    List(Vec<Item>),
    Table(BTreeMap<String, Item>),
}

impl Item {
    pub(super) fn new(node: Node, origin: Origin) -> Self {
        Self { node, origin }
    }

    /// What a person calls it.
    pub(super) fn kind(&self) -> &'static str {
        match self.node {
            Node::Null => "nothing",
            Node::Scalar { .. } => "a single value",
            Node::List(_) => "a list",
            Node::Table(_) => "a section",
        }
    }
}

/// A secret is one choice among several keys, so it is replaced whole.
const REPLACED_WHOLE: &str = "password";

/// `over` on top of `base`: sections merge key by key, everything else is replaced, an explicit null
/// included.
pub(super) fn merge(base: &Item, over: Item) -> Item {
    let (Node::Table(below), Node::Table(above)) = (&base.node, &over.node) else { return over };
    let mut merged = below.clone();
    for (key, item) in above {
        let item = match merged.remove(key) {
            Some(old) if key != REPLACED_WHOLE => merge(&old, item.clone()),
            Some(_) | None => item.clone(),
        };
        merged.insert(key.clone(), item);
    }
    Item::new(Node::Table(merged), over.origin)
}

/// Puts an item at a dotted path, making sections on the way.
///
/// # Errors
/// A value stands where the path needs a section, or the path is taken.
pub(super) fn put(table: &mut BTreeMap<String, Item>, path: &str, item: Item) -> Result<(), &'static str> {
    match path.split_once('.') {
        None if table.contains_key(path) => Err("is set twice"),
        None => {
            table.insert(path.to_owned(), item);
            Ok(())
        }
        Some((first, rest)) => {
            let section = table
                .entry(first.to_owned())
                .or_insert_with(|| Item::new(Node::Table(BTreeMap::new()), item.origin.clone()));
            match &mut section.node {
                Node::Table(inner) => put(inner, rest, item),
                Node::Null | Node::Scalar { .. } | Node::List(_) => Err("is both a value and a section"),
            }
        }
    }
}
