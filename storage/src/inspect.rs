//! What `store inspect` shows: the range of every flow, and any one record decoded. Reads only.
//!
//! A decoded record may hold row values: it is for the operator's eyes, never for a log line.

use serde_json::{Value, json};

use crate::codec::value;
use crate::families::flows::FlowParts;
use crate::families::{damaged, flows, log};
use crate::records::{ArchivedChangeBlock, ArchivedContent, ArchivedDedupRecord, ArchivedTransactionRecord};
use crate::{Error, Family, FlowId, Lsn, Store, TransactionDigest};

/// One flow as the store holds it.
#[derive(Debug)]
pub struct FlowRange {
    pub flow: FlowId,
    /// Damage of one flow's parts stays with that flow.
    pub parts: Result<FlowParts, Error>,
    /// First and last commit LSN in the log of the newest incarnation.
    pub first: Option<Lsn>,
    pub last: Option<Lsn>,
}

/// Every flow, removed ones included.
///
/// # Errors
/// `ReadFailed`, `Corruption` of a key.
pub fn flow_ranges(store: &dyn Store) -> Result<Vec<FlowRange>, Error> {
    let ranges = flows::all(store)?.into_iter().map(|(flow, parts)| {
        let lineage = parts.as_ref().ok().and_then(|parts| parts.lineage.as_ref());
        let (first, last) = match lineage {
            Some(lineage) => log::extent(store, flow, lineage.incarnation)?,
            None => (None, None),
        };
        Ok(FlowRange { flow, parts, first, last })
    });
    ranges.collect()
}

/// One record, verified and decoded; none when there is none under this key.
///
/// # Errors
/// `ReadFailed`; `Corruption` with what is wrong.
pub fn record(store: &dyn Store, family: Family, key: &[u8]) -> Result<Option<Value>, Error> {
    let Some(stored) = store.get(family, key)? else { return Ok(None) };
    let damage = |what: &dyn std::fmt::Display| damaged(family, None, key, what);
    match family {
        Family::Log => transaction(&stored, &damage),
        Family::Chunks => part(&stored, &damage),
        Family::Dedup => dedup(&stored, &damage),
        Family::Default if stored.len() == 4 => Ok(json!(stored)),
        Family::Default
        | Family::Flows
        | Family::Quarantine
        | Family::Relations
        | Family::Events
        | Family::Audit => value::open_json(&stored).map_err(|error| damage(&error)),
    }
    .map(Some)
}

type Damage<'a> = dyn Fn(&dyn std::fmt::Display) -> Error + 'a;

fn transaction(stored: &[u8], damage: &Damage<'_>) -> Result<Value, Error> {
    let payload = value::open_archived(stored).map_err(|error| damage(&error))?;
    let record = rkyv::access::<ArchivedTransactionRecord, rkyv::rancor::Error>(payload)
        .map_err(|error| damage(&error))?;
    let header = &record.header;
    Ok(json!({
        "xid": header.xid.to_native(),
        "commit_lsn": Lsn::new(header.commit_lsn.to_native()),
        "end_lsn": Lsn::new(header.end_lsn.to_native()),
        "commit_time": header.commit_time.to_native(),
        "received": header.received.to_native(),
        "digest": TransactionDigest::new(header.digest),
        "changes": header.changes.to_native(),
        "bytes": header.bytes.to_native(),
        "origin": header.origin.as_ref().map(|origin| origin.as_str()),
        "content": content(&record.content),
    }))
}

fn content(content: &ArchivedContent) -> Value {
    match content {
        ArchivedContent::Inline(block) => json!({ "inline": changes(block) }),
        ArchivedContent::Chunked(manifest) => json!({ "chunked": {
            "session": manifest.session.to_native(),
            "parts": manifest.parts.len(),
            "aborted": manifest.aborted.iter().map(|xid| xid.to_native()).collect::<Vec<_>>(),
        }}),
    }
}

fn changes(block: &ArchivedChangeBlock) -> Vec<Value> {
    let change = |head: &crate::records::ArchivedChangeHead| {
        json!({
            "operation": format!("{:?}", head.operation).to_lowercase(),
            "relation": head.relation.to_native(),
            "version": head.version.to_native(),
            "sub_xid": head.sub_xid.to_native(),
            "bytes": head.length.to_native(),
        })
    };
    block.heads.iter().map(change).collect()
}

fn part(stored: &[u8], damage: &Damage<'_>) -> Result<Value, Error> {
    if stored.is_empty() {
        return Ok(json!({ "open": true }));
    }
    let payload = value::open_archived(stored).map_err(|error| damage(&error))?;
    let block =
        rkyv::access::<ArchivedChangeBlock, rkyv::rancor::Error>(payload).map_err(|error| damage(&error))?;
    Ok(json!({ "changes": changes(block), "bytes": block.body.len() }))
}

fn dedup(stored: &[u8], damage: &Damage<'_>) -> Result<Value, Error> {
    let payload = value::open_archived(stored).map_err(|error| damage(&error))?;
    let record =
        rkyv::access::<ArchivedDedupRecord, rkyv::rancor::Error>(payload).map_err(|error| damage(&error))?;
    let record = rkyv::deserialize::<crate::records::DedupRecord, rkyv::rancor::Error>(record)
        .map_err(|error| damage(&error))?;
    Ok(json!({
        "xid": record.xid,
        "digest": TransactionDigest::new(record.digest),
        "bytes": record.bytes,
        "received": record.received,
        "outcome": record.outcome,
    }))
}
