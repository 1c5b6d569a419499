//! Reads YAML into a tree with lines: the layering library drops positions, and a mistake without a line
//! is half a message.

use std::collections::{BTreeMap, HashMap};

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span, StrInput};

use super::finding::Findings;
use super::tree::{Item, Node, Origin};

/// Deeper nesting is no configuration of this program.
const MAX_DEPTH: usize = 16;

/// The document as a tree. A file that is not YAML, a duplicate key or a second document is a finding; the
/// tree then holds what could be read, none when nothing could.
pub(super) fn read(text: &str, file: &str, findings: &Findings) -> Option<Item> {
    let mut reader =
        Reader { events: Parser::new_from_str(text), file, anchors: HashMap::new(), findings, ended: false };
    match reader.document() {
        Ok(item) => Some(item),
        Err(error) => {
            let origin = reader.origin(*error.marker(), "");
            findings.add(&origin, format!("not valid YAML: {}", error.info()), None);
            None
        }
    }
}

struct Reader<'t> {
    events: Parser<'t, StrInput<'t>>,
    file: &'t str,
    anchors: HashMap<usize, Item>,
    findings: &'t Findings,
    ended: bool,
}

impl<'t> Reader<'t> {
    fn document(&mut self) -> Result<Item, ScanError> {
        let mut document = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamEnd => break,
                Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd | Event::Nothing => {}
                Event::Alias(_) | Event::Scalar(..) | Event::SequenceStart(..) | Event::MappingStart(..) => {
                    if document.is_some() {
                        let origin = self.origin(span.start, "");
                        self.findings.add(&origin, "a second document", Some("keep one per file".into()));
                    }
                    let item = self.item(event, span, String::new(), 0)?;
                    document.get_or_insert(item);
                }
                Event::SequenceEnd | Event::MappingEnd => return Err(unbalanced(span)),
            }
        }
        let empty = || Item::new(Node::Table(BTreeMap::new()), self.origin(Marker::new(0, 1, 0), ""));
        Ok(document.unwrap_or_else(empty))
    }

    fn next(&mut self) -> Result<(Event<'t>, Span), ScanError> {
        if self.ended {
            return Ok((Event::StreamEnd, Span::default()));
        }
        match self.events.next() {
            Some(next) => {
                self.ended = matches!(next, Err(_) | Ok((Event::StreamEnd, _)));
                next
            }
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn item(&mut self, event: Event<'t>, span: Span, path: String, depth: usize) -> Result<Item, ScanError> {
        if depth > MAX_DEPTH {
            return Err(ScanError::new_str(span.start, "nested too deeply"));
        }
        let origin = self.origin(span.start, &path);
        let (node, anchor) = match event {
            Event::Scalar(text, style, anchor, _) => (scalar(&text, style), anchor),
            Event::SequenceStart(anchor, _) => (self.list(&path, depth)?, anchor),
            Event::MappingStart(anchor, _) => (self.table(&path, depth)?, anchor),
            Event::Alias(anchor) => {
                let known = self.anchors.get(&anchor).map(|item| item.node.clone());
                (known.ok_or_else(|| ScanError::new_str(span.start, "alias of an unknown anchor"))?, 0)
            }
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd
            | Event::SequenceEnd
            | Event::MappingEnd => return Err(unbalanced(span)),
        };
        let item = Item::new(node, origin);
        if anchor > 0 {
            self.anchors.insert(anchor, item.clone());
        }
        Ok(item)
    }

    fn list(&mut self, path: &str, depth: usize) -> Result<Node, ScanError> {
        let mut items = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if event == Event::SequenceEnd {
                return Ok(Node::List(items));
            }
            items.push(self.item(event, span, format!("{path}[{}]", items.len()), depth + 1)?);
        }
    }

    fn table(&mut self, path: &str, depth: usize) -> Result<Node, ScanError> {
        let mut table: BTreeMap<String, Item> = BTreeMap::new();
        loop {
            let (event, at) = self.next()?;
            let key = match event {
                Event::MappingEnd => return Ok(Node::Table(table)),
                Event::Scalar(text, ..) => text.into_owned(),
                Event::Nothing
                | Event::StreamStart
                | Event::StreamEnd
                | Event::DocumentStart(_)
                | Event::DocumentEnd
                | Event::Alias(_)
                | Event::SequenceStart(..)
                | Event::SequenceEnd
                | Event::MappingStart(..) => return Err(ScanError::new_str(at.start, "a key is a name")),
            };
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            let (event, span) = self.next()?;
            let mut item = self.item(event, span, path.clone(), depth + 1)?;
            // A section begins at its key, whatever line its content is on.
            item.origin = self.origin(at.start, &path);
            if let Some(first) = table.get(&key) {
                let what = format!("is written twice, first at {}", first.origin.place);
                self.findings.add(&item.origin, what, Some("keep one of them".into()));
            }
            table.insert(key, item);
        }
    }

    fn origin(&self, at: Marker, path: &str) -> Origin {
        Origin { place: format!("{}:{}", self.file, at.line().max(1)), path: path.to_owned() }
    }
}

fn scalar(text: &str, style: ScalarStyle) -> Node {
    let plain = style == ScalarStyle::Plain;
    if plain && matches!(text, "" | "~" | "null" | "Null" | "NULL") {
        return Node::Null;
    }
    Node::Scalar { text: text.to_owned(), plain }
}

fn unbalanced(span: Span) -> ScanError {
    ScanError::new_str(span.start, "unexpected end of a section")
}
