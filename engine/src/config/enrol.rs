//! `flows_from`: one flow per row of a CSV file whose header holds dotted keys. This is how thousands are
//! enrolled.

use std::collections::BTreeMap;
use std::path::Path;

use super::finding::Findings;
use super::tree::{self, Item, Node, Origin};

/// The rows as flow sections. Empty cells say nothing, so the flow inherits.
pub(super) fn read(path: &Path, shown: &str, from: &Origin, findings: &Findings) -> Vec<Item> {
    let mut reader = match csv::ReaderBuilder::new().trim(csv::Trim::All).comment(Some(b'#')).from_path(path)
    {
        Ok(reader) => reader,
        Err(error) => {
            findings.add(from, format!("cannot read {shown}: {}", plain(&error)), None);
            return Vec::new();
        }
    };
    let Some(header) = header(&mut reader, shown, findings) else { return Vec::new() };
    let mut flows = Vec::new();
    for record in reader.records() {
        match record {
            Ok(record) => flows.extend(row(&record, &header, shown, flows.len(), findings)),
            Err(error) => {
                let line = error.position().map_or(0, csv::Position::line);
                let origin = Origin { place: format!("{shown}:{line}"), path: String::new() };
                findings.add(&origin, format!("not a valid row: {}", plain(&error)), None);
            }
        }
    }
    flows
}

fn header(reader: &mut csv::Reader<std::fs::File>, shown: &str, findings: &Findings) -> Option<Vec<String>> {
    let origin = Origin { place: format!("{shown}:1"), path: String::new() };
    match reader.headers() {
        Ok(header) if header.iter().any(|name| !name.is_empty()) => {
            Some(header.iter().map(str::to_owned).collect())
        }
        Ok(_) => {
            let instead = "begin with dotted keys: source.id,source.url,labels.region".to_owned();
            findings.add(&origin, "has no header row", Some(instead));
            None
        }
        Err(error) => {
            findings.add(&origin, format!("not a valid header: {}", plain(&error)), None);
            None
        }
    }
}

fn row(
    record: &csv::StringRecord,
    header: &[String],
    shown: &str,
    number: usize,
    findings: &Findings,
) -> Option<Item> {
    let line = record.position().map_or(0, csv::Position::line);
    let origin = |path: &str| Origin { place: format!("{shown}:{line}"), path: path.to_owned() };
    let mut table = BTreeMap::new();
    for (name, cell) in header.iter().zip(record).filter(|(_, cell)| !cell.is_empty()) {
        let item = Item::new(Node::Scalar { text: cell.to_owned(), plain: false }, origin(name));
        if let Err(what) = tree::put(&mut table, name, item) {
            findings.add(&origin(name), format!("column {name} {what}"), None);
        }
    }
    (!table.is_empty()).then(|| Item::new(Node::Table(table), origin(&format!("row {}", number + 1))))
}

/// The library's text without its own line numbers.
fn plain(error: &csv::Error) -> String {
    match error.kind() {
        csv::ErrorKind::Io(error) => error.to_string(),
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("{len} cells where the header has {expected_len}")
        }
        csv::ErrorKind::Utf8 { .. } => "text that is not UTF-8".to_owned(),
        csv::ErrorKind::Seek | csv::ErrorKind::Serialize(_) | csv::ErrorKind::Deserialize { .. } => {
            error.to_string()
        }
        other => format!("{other:?}"),
    }
}
