//! The statements that make a target table fit, exact and complete: they are printed in a repair plan and
//! run as printed.

use trellara_storage::records::{ColumnRecord, RelationRecord, ReplicaIdentity};

use super::type_name::SourceType;
use crate::postgres::ident::{Qualified, identifier, identifiers};
use crate::settings::TableName;

pub(super) fn qualified(table: &TableName) -> String {
    Qualified { schema: &table.schema, name: &table.name }.to_string()
}

/// Empty when the stream did not describe one of the types.
pub(super) fn create_table(relation: &RelationRecord, table: &TableName, schema_exists: bool) -> Vec<String> {
    let keyed = matches!(relation.replica_identity, ReplicaIdentity::Default | ReplicaIdentity::Index);
    let mut lines = Vec::with_capacity(relation.columns.len() + 1);
    for column in &relation.columns {
        let Some(sql_type) = SourceType::of(column).map(|of| of.sql()) else { return Vec::new() };
        let not_null = if keyed && column.key { " NOT NULL" } else { "" };
        lines.push(format!("{} {sql_type}{not_null}", identifier(&column.name)));
    }
    let keys = identifiers(key_names(relation));
    if keyed && !keys.is_empty() {
        let primary = relation.replica_identity == ReplicaIdentity::Default;
        lines.push(format!("{} ({keys})", if primary { "PRIMARY KEY" } else { "UNIQUE" }));
    }
    let mut statements = Vec::new();
    if !schema_exists {
        statements.push(format!("CREATE SCHEMA {};", identifier(&table.schema)));
    }
    statements.push(format!("CREATE TABLE {} ({});", qualified(table), lines.join(", ")));
    statements
}

pub(super) fn add_column(table: &TableName, column: &ColumnRecord) -> Vec<String> {
    SourceType::of(column)
        .map(|of| {
            format!("ALTER TABLE {} ADD COLUMN {} {};", qualified(table), identifier(&column.name), of.sql())
        })
        .into_iter()
        .collect()
}

pub(super) fn change_type(table: &TableName, column: &str, source: &SourceType) -> Vec<String> {
    let (column, sql_type) = (identifier(column), source.sql());
    vec![format!(
        "ALTER TABLE {} ALTER COLUMN {column} TYPE {sql_type} USING {column}::{sql_type};",
        qualified(table)
    )]
}

pub(super) fn key_index(relation: &RelationRecord, table: &TableName) -> Vec<String> {
    vec![format!("CREATE UNIQUE INDEX ON {} ({});", qualified(table), identifiers(key_names(relation)))]
}

pub(super) fn drop_not_null(table: &TableName, column: &str) -> Vec<String> {
    vec![format!("ALTER TABLE {} ALTER COLUMN {} DROP NOT NULL;", qualified(table), identifier(column))]
}

pub(super) fn drop_expression(table: &TableName, column: &str) -> Vec<String> {
    vec![format!("ALTER TABLE {} ALTER COLUMN {} DROP EXPRESSION;", qualified(table), identifier(column))]
}

/// For each column that is narrower than at the source, the statement that gives it the source's type.
pub fn widening(mapping: &super::Mapping) -> Vec<String> {
    let table = &mapping.table;
    let columns = mapping.relation.columns.iter().zip(&mapping.columns);
    columns
        .filter_map(|(source, place)| {
            let (target, source) = (&table.columns[*place], SourceType::of(source)?);
            source.is_wider_than(target).then(|| change_type(&table.name, &target.name, &source))
        })
        .flatten()
        .collect()
}

fn key_names(relation: &RelationRecord) -> impl Iterator<Item = &str> {
    relation.columns.iter().filter(|column| column.key).map(|column| column.name.as_str())
}
