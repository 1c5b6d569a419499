//! What the failing change was, and what stands in its way: row images, and the target's row.
//!
//! Everything here is made of row values: it goes into the failure's evidence and nowhere else.

use tokio_postgres::{Client, Error};
use trellara_actors::failure::ChangeEvidence;
use trellara_storage::records::{ChangeImage, ColumnValue, Operation};

use super::array::ArrayText;
use super::change::{parse, value};
use super::stop::ChangeCopy;
use crate::contract::{Lookup, UniqueIndex};
use crate::decode::{Before, Column, Tuple};
use crate::postgres::ident::{Qualified, identifier};

type Row = Vec<(String, ColumnValue)>;

pub(super) fn of(change: &ChangeCopy, server_version: &str) -> ChangeEvidence {
    ChangeEvidence {
        image: image(change),
        conflicting_row: None,
        source_relation: Some(change.mapped.mapping.relation.digest),
        target_relation: Some(change.mapped.mapping.table.digest),
        target_version: Some(server_version.to_owned()),
    }
}

fn image(change: &ChangeCopy) -> Option<ChangeImage> {
    let relation = &change.mapped.mapping.relation;
    let named = |operation: &str| ChangeImage {
        operation: operation.to_owned(),
        schema: relation.namespace.clone(),
        table: relation.name.clone(),
        key: Vec::new(),
        old: Vec::new(),
        new: Vec::new(),
    };
    let operation = match change.operation {
        Operation::Insert => "insert",
        Operation::Update => "update",
        Operation::Delete => "delete",
        Operation::Truncate => return Some(named("truncate")),
        Operation::Message => return None,
    };
    let body = parse(change.operation, &change.body).ok()?;
    let old = body.before().map(|before| match before {
        // What is no part of a key tuple is NULL there and says nothing.
        Before::Key(tuple) => row(change, tuple, |at| relation.columns[at].key),
        Before::Full(tuple) => row(change, tuple, |_| true),
    });
    let new = body.new_row().map(|tuple| row(change, tuple, |_| true)).unwrap_or_default();
    let key_of = |row: &Row| {
        let keys = lookup_names(change);
        row.iter().filter(|(name, _)| keys.contains(&name.as_str())).cloned().collect()
    };
    let key = old.as_ref().map_or_else(|| key_of(&new), key_of);
    Some(ChangeImage { key, old: old.unwrap_or_default(), new, ..named(operation) })
}

/// The key of the changed row as one JSON text, for the target's outcomes table.
pub(super) fn key_text(change: &ChangeCopy) -> Option<String> {
    let image = image(change)?;
    let row = if image.key.is_empty() { image.old } else { image.key };
    let pairs = row.into_iter().map(|(name, value)| {
        let value = match value {
            ColumnValue::Null | ColumnValue::UnchangedToast => serde_json::Value::Null,
            ColumnValue::Text(text) | ColumnValue::Bytes(text) => serde_json::Value::String(text),
        };
        (name, value)
    });
    Some(serde_json::Value::Object(pairs.collect()).to_string())
}

/// The target row that has the change's new values in the columns of this index.
///
/// # Errors
/// Whatever the server or the connection says.
pub(super) async fn conflicting_row(
    client: &Client,
    change: &ChangeCopy,
    index: &UniqueIndex,
) -> Result<Option<Row>, Error> {
    let body = parse(change.operation, &change.body).ok();
    let Some(new) = body.as_ref().and_then(crate::decode::ChangeBody::new_row) else { return Ok(None) };
    find(client, change, new, &index.columns).await
}

/// The target row that the change was to find.
///
/// # Errors
/// Whatever the server or the connection says.
pub(super) async fn row_to_change(client: &Client, change: &ChangeCopy) -> Result<Option<Row>, Error> {
    let Ok(body) = parse(change.operation, &change.body) else { return Ok(None) };
    let Lookup::Key(keys) = &change.mapped.mapping.lookup else { return Ok(None) };
    let numbers: Vec<i16> = keys.iter().map(|at| change.mapped.target(*at).number).collect();
    match body.before().map(|before| before.tuple()).or(body.new_row()) {
        Some(tuple) => find(client, change, tuple, &numbers).await,
        None => Ok(None),
    }
}

async fn find(
    client: &Client,
    change: &ChangeCopy,
    tuple: Tuple<'_>,
    numbers: &[i16],
) -> Result<Option<Row>, Error> {
    let mapping = &change.mapped.mapping;
    let columns: Vec<Column<'_>> = tuple.columns().collect();
    let mut terms = Vec::new();
    let mut arrays = Vec::new();
    for number in numbers {
        let at = (0..mapping.columns.len()).find(|at| change.mapped.target(*at).number == *number);
        let Some(at) = at else { return Ok(None) };
        let Ok(Some(value)) = value(columns[at], mapping.relation.columns[at].type_oid) else {
            return Ok(None);
        };
        let target = change.mapped.target(at);
        let mut array = ArrayText::new(b',');
        array.push(Some(&value));
        arrays.push(array);
        // One value, so neither the delimiter nor the array form of the type matters.
        let (form, n) = (&target.value, arrays.len());
        let equality = form.equality.as_deref().unwrap_or("=");
        terms.push(format!("t.{} {equality} (${n}::text[])[1]::{}", identifier(&target.name), form.sql_type));
    }
    let outputs: Vec<String> =
        mapping.table.columns.iter().map(|column| format!("t.{}::text", identifier(&column.name))).collect();
    let name = Qualified { schema: &mapping.table.name.schema, name: &mapping.table.name.name };
    let sql = format!(
        "SELECT {} FROM {}{name} AS t WHERE {} LIMIT 1",
        outputs.join(", "),
        mapping.table.only(),
        terms.join(" AND ")
    );
    let statement = client.prepare(&sql).await?;
    let parameters: Vec<&(dyn tokio_postgres::types::ToSql + Sync)> =
        arrays.iter().map(|array| array as &(dyn tokio_postgres::types::ToSql + Sync)).collect();
    let Some(found) = client.query_opt(&statement, &parameters).await? else { return Ok(None) };
    let mut row = Vec::with_capacity(outputs.len());
    for (n, column) in mapping.table.columns.iter().enumerate() {
        let text: Option<String> = found.try_get(n)?;
        row.push((column.name.clone(), text.map_or(ColumnValue::Null, ColumnValue::Text)));
    }
    Ok(Some(row))
}

/// The columns that name a row: those of the lookup, or what the source flags.
fn lookup_names(change: &ChangeCopy) -> Vec<&str> {
    let columns = &change.mapped.mapping.relation.columns;
    match &change.mapped.mapping.lookup {
        Lookup::Key(keys) => keys.iter().map(|at| columns[*at].name.as_str()).collect(),
        Lookup::WholeRow | Lookup::Never => {
            columns.iter().filter(|column| column.key).map(|column| column.name.as_str()).collect()
        }
    }
}

fn row(change: &ChangeCopy, tuple: Tuple<'_>, means: impl Fn(usize) -> bool) -> Row {
    let columns = &change.mapped.mapping.relation.columns;
    let named = columns.iter().zip(tuple.columns()).enumerate().filter(|(at, _)| means(*at));
    named.map(|(_, (column, value))| (column.name.clone(), shown(value))).collect()
}

fn shown(column: Column<'_>) -> ColumnValue {
    let hexadecimal = |bytes: &[u8]| {
        use std::fmt::Write;
        bytes.iter().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").expect("writing to a String");
            text
        })
    };
    match column {
        Column::Null => ColumnValue::Null,
        Column::UnchangedToast => ColumnValue::UnchangedToast,
        Column::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => ColumnValue::Text(text.to_owned()),
            Err(_) => ColumnValue::Bytes(hexadecimal(bytes)),
        },
        Column::Binary(bytes) => ColumnValue::Bytes(hexadecimal(bytes)),
    }
}
