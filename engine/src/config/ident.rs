//! Names: ids of sources and datasets, default slot and publication names, tables, placeholders.

use sha2::{Digest, Sha256};
use trellara_storage::FlowName;

use super::finding::Findings;
use super::section::Text;
use crate::settings::TableName;

/// PostgreSQL cuts names off here, which would make two of one.
const MAX_NAME_BYTES: usize = 63;

/// An id, checked by itself so that each mistake is reported where it is.
pub(super) fn id(text: Text, findings: &Findings) -> Option<String> {
    if text.is_ambiguous() {
        let what = format!("{} is not text in YAML", text.text);
        findings.add(&text.origin, what, Some(format!("quote it: \"{}\"", text.text)));
        return None;
    }
    if FlowName::new(&text.text, "x").is_err() {
        let what = format!("{:?} is not an id", text.text);
        let instead = "write 1 to 31 of a-z, 0-9, _ and -, beginning with a letter or digit";
        findings.add(&text.origin, what, Some(instead.to_owned()));
        return None;
    }
    Some(text.text)
}

/// `trellara_{source}_{dataset}` with `-` turned into `_`; what PostgreSQL would cut ends in a digest
/// instead.
pub(super) fn default_slot(flow: &FlowName) -> String {
    let name = format!("trellara_{}_{}", flow.source(), flow.dataset());
    let slot = name.replace('-', "_");
    if slot.len() <= MAX_NAME_BYTES {
        return slot;
    }
    let digest = Sha256::digest(name.as_bytes());
    let tail: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!("{}_{tail}", &slot[..MAX_NAME_BYTES - 1 - tail.len()])
}

pub(super) fn default_publication(flow: &FlowName) -> String {
    format!("trellara_{}", flow.dataset())
}

/// What PostgreSQL accepts as the name of a replication slot.
pub(super) fn is_slot_name(text: &str) -> bool {
    let fits = (1..=MAX_NAME_BYTES).contains(&text.len());
    fits && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

/// `schema.table`; other than lower-case names are quoted as in SQL.
pub(super) fn table(text: &Text, findings: &Findings) -> Option<TableName> {
    let (schema, rest) = part(&text.text).unwrap_or_default();
    let (name, rest) = rest.strip_prefix('.').and_then(part).unwrap_or_default();
    if schema.is_empty() || name.is_empty() || !rest.is_empty() {
        let what = format!("{:?} is not a table", text.text);
        let instead = "write schema.table; quote other than lower-case names: '\"Shop\".\"Sales\"'";
        findings.add(&text.origin, what, Some(instead.to_owned()));
        return None;
    }
    Some(TableName { schema, name })
}

/// One name and what follows it.
fn part(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        let end = text.find(|c| !plain(c)).unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        let starts = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_');
        return starts.then(|| (name.to_owned(), rest));
    };
    let mut name = String::new();
    let mut rest = quoted;
    loop {
        let (before, after) = rest.split_once('"')?;
        name.push_str(before);
        match after.strip_prefix('"') {
            Some(more) => {
                name.push('"');
                rest = more;
            }
            None => return Some((name, after)),
        }
    }
}

/// Replaces `{source}`, `{dataset}` and `{flow}`; any other brace is a finding.
pub(super) fn expand(text: &Text, flow: &FlowName, findings: &Findings) -> String {
    let expanded = text
        .text
        .replace("{source}", flow.source())
        .replace("{dataset}", flow.dataset())
        .replace("{flow}", &flow.to_string());
    if expanded.contains(['{', '}']) {
        let what = format!("{:?} holds an unknown placeholder", text.text);
        findings.add(&text.origin, what, Some("known are {source}, {dataset} and {flow}".to_owned()));
    }
    expanded
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

    use super::*;

    #[test]
    fn slot_names_are_what_postgresql_accepts_and_stay_apart_when_cut() {
        let slot = |source: &str, dataset: &str| default_slot(&FlowName::new(source, dataset).unwrap());
        assert_eq!(slot("store-0001", "retail-sales"), "trellara_store_0001_retail_sales");
        let long = "a".repeat(31);
        let (one, other) = (slot(&long, &"b".repeat(31)), slot(&long, &format!("{}c", "b".repeat(30))));
        assert_ne!(one, other);
        for name in [one, other] {
            assert_eq!(name.len(), MAX_NAME_BYTES);
            assert!(is_slot_name(&name), "{name}");
        }
    }

    #[test]
    fn tables_are_read_as_sql_reads_them() {
        let read = |text: &str| {
            let findings = Findings::default();
            let text = Text { text: text.to_owned(), plain: true, origin: Default::default() };
            table(&text, &findings).map(|table| (table.schema, table.name))
        };
        let pair = |schema: &str, name: &str| Some((schema.to_owned(), name.to_owned()));
        assert_eq!(read("public.sales"), pair("public", "sales"));
        assert_eq!(read(r#""My Shop"."a""b""#), pair("My Shop", "a\"b"));
        for wrong in ["sales", "public.", ".sales", "Public.Sales", "a.b.c", "public.sales x", "\"a.b", ""] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
