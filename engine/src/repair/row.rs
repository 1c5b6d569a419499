//! SQL about one row of the target: shows it, puts it there, takes it away.

use trellara_storage::records::{ChangeImage, ColumnValue};

use crate::postgres::ident::{Qualified, identifier, identifiers, literal};
use crate::settings::FlowSettings;

type Columns = [(String, ColumnValue)];

/// The table of a change as the target has it, quoted.
pub(super) fn table(image: &ChangeImage, settings: &FlowSettings) -> String {
    let schema = settings.target.schema.as_deref().unwrap_or(&image.schema);
    Qualified { schema, name: &image.table }.to_string()
}

/// None when nothing is known of the row that could find it.
pub(super) fn select(table: &str, row: &Columns) -> Option<String> {
    Some(format!("SELECT * FROM {table} WHERE {}", condition(row)?))
}

pub(super) fn delete(table: &str, row: &Columns) -> Option<String> {
    Some(format!("DELETE FROM {table} WHERE {}", condition(row)?))
}

/// Every value that is known; none when there is none.
pub(super) fn insert(table: &str, row: &Columns) -> Option<String> {
    let known: Vec<(&str, String)> =
        row.iter().filter_map(|(column, value)| Some((column.as_str(), sql(value)?))).collect();
    if known.is_empty() {
        return None;
    }
    let columns = identifiers(known.iter().map(|(column, _)| *column));
    let values = known.iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>().join(", ");
    Some(format!("INSERT INTO {table} ({columns}) OVERRIDING SYSTEM VALUE VALUES ({values})"))
}

/// Columns that the source did not send.
pub(super) fn not_sent(row: &Columns) -> Vec<&str> {
    row.iter().filter(|(_, value)| sql(value).is_none()).map(|(column, _)| column.as_str()).collect()
}

fn condition(row: &Columns) -> Option<String> {
    let part = |(column, value): &(String, ColumnValue)| {
        let column = identifier(column);
        match value {
            ColumnValue::Null => Some(format!("{column} IS NULL")),
            ColumnValue::UnchangedToast => None,
            ColumnValue::Text(_) | ColumnValue::Bytes(_) => Some(format!("{column} = {}", sql(value)?)),
        }
    };
    let parts: Vec<String> = row.iter().filter_map(part).collect();
    (!parts.is_empty()).then(|| parts.join(" AND "))
}

/// A text for SQL inside a shell line: in dollar quotes where they fit, so that there are no quotes inside
/// quotes.
pub(super) fn quoted(text: &str) -> String {
    if text.contains('$') { literal(text).trim_start().to_owned() } else { format!("$${text}$$") }
}

fn sql(value: &ColumnValue) -> Option<String> {
    match value {
        ColumnValue::Null => Some("NULL".to_owned()),
        ColumnValue::UnchangedToast => None,
        ColumnValue::Text(text) => Some(quoted(text)),
        ColumnValue::Bytes(hex) => {
            Some(format!("convert_from($$\\x{hex}$$, current_setting($$server_encoding$$))"))
        }
    }
}
