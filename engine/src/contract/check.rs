//! Does this relation version fit its target table? Pure: facts in, a mapping or a breach out.

use std::sync::Arc;

use trellara_actors::failure::Code;
use trellara_storage::records::{RelationRecord, ReplicaIdentity};

use super::ddl;
use super::table::{TargetObject, TargetTable};
use super::type_name::SourceType;
use crate::settings::TableName;

/// A relation version and the target table that takes its changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    pub relation: Arc<RelationRecord>,
    pub table: TargetTable,
    /// For each column of the relation, its place in `table.columns`.
    pub columns: Vec<usize>,
    pub lookup: Lookup,
}

/// How the row of an UPDATE or DELETE is found. Columns are places in `relation.columns`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// By columns that a usable unique index of the target covers.
    Key(Vec<usize>),
    /// By the whole old row (identity FULL without such an index).
    WholeRow,
    /// The source has no identity: it sends inserts only.
    Never,
}

/// Why it does not fit, and what would make it. `what` names things, never values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    pub code: Code,
    pub what: String,
    /// The target table, whether it exists or not.
    pub table: Box<TableName>,
    pub column: Option<String>,
    /// To be run at the target as printed; empty where only a person can decide.
    pub ddl: Vec<String>,
    /// The relation's digest at the target, where there is a table.
    pub target_relation: Option<trellara_storage::RelationDigest>,
}

/// # Errors
/// The first breach in the order: table, columns of the source, columns of the target, key.
pub fn check(
    relation: &Arc<RelationRecord>,
    name: &TableName,
    object: TargetObject,
) -> Result<Mapping, Breach> {
    let table = match object {
        TargetObject::Table(table) => *table,
        TargetObject::NotATable => {
            return Err(breach(name, Code::ContractBroken, "target is not a table", None, Vec::new()));
        }
        TargetObject::Missing { schema_exists } => {
            let ddl = ddl::create_table(relation, name, schema_exists);
            return Err(breach(name, Code::TableMissing, "table is missing", None, ddl));
        }
    };
    let fitted = fit(relation, &table);
    let (columns, lookup) =
        fitted.map_err(|found| Breach { target_relation: Some(table.digest), ..found })?;
    Ok(Mapping { relation: Arc::clone(relation), table, columns, lookup })
}

fn fit(relation: &RelationRecord, table: &TargetTable) -> Result<(Vec<usize>, Lookup), Breach> {
    let columns = match_columns(relation, table)?;
    check_unsent(&columns, table)?;
    let lookup = find_lookup(relation, table, &columns)?;
    Ok((columns, lookup))
}

fn match_columns(relation: &RelationRecord, table: &TargetTable) -> Result<Vec<usize>, Breach> {
    let name = &table.name;
    let mut columns = Vec::with_capacity(relation.columns.len());
    for column in &relation.columns {
        let named = |code, what, ddl| breach(name, code, what, Some(&column.name), ddl);
        let Some(place) = table.column(&column.name) else {
            return Err(named(Code::ColumnMissing, "column is missing", ddl::add_column(name, column)));
        };
        let target = &table.columns[place];
        if target.generated {
            let ddl = ddl::drop_expression(name, &column.name);
            return Err(named(Code::ContractBroken, "source sends values for a generated column", ddl));
        }
        // A type that the stream did not describe is left to the column's own input.
        if let Some(source) = SourceType::of(column)
            && !source.fits(target)
        {
            let what = format!("source type {} does not fit {}", source.sql(), target.declared);
            let ddl = ddl::change_type(name, &column.name, &source);
            return Err(named(Code::ColumnTypeMismatch, &what, ddl));
        }
        columns.push(place);
    }
    Ok(columns)
}

/// Columns that only the target has must be able to stay as they are.
fn check_unsent(columns: &[usize], table: &TargetTable) -> Result<(), Breach> {
    let optional = |column: &super::table::TargetColumn| {
        !column.not_null || column.has_default || column.generated || column.identity != super::Identity::None
    };
    let missing = (0..table.columns.len())
        .filter(|place| !columns.contains(place))
        .map(|place| &table.columns[place])
        .find(|column| !optional(column));
    let Some(column) = missing else { return Ok(()) };
    // The columns of a primary key cannot lose their NOT NULL.
    let ddl = if column.primary_key { Vec::new() } else { ddl::drop_not_null(&table.name, &column.name) };
    let what = "target requires a column that the source does not send";
    Err(breach(&table.name, Code::ColumnRequired, what, Some(&column.name), ddl))
}

fn find_lookup(relation: &RelationRecord, table: &TargetTable, columns: &[usize]) -> Result<Lookup, Breach> {
    let flagged = (0..relation.columns.len()).filter(|at| relation.columns[*at].key);
    match relation.replica_identity {
        ReplicaIdentity::Nothing => Ok(Lookup::Never),
        ReplicaIdentity::Full => Ok(full_lookup(table, columns)),
        ReplicaIdentity::Default | ReplicaIdentity::Index => {
            let keys: Vec<usize> = flagged.collect();
            if keys.is_empty() {
                return Ok(Lookup::Never);
            }
            let numbers: Vec<i16> = keys.iter().map(|at| table.columns[columns[*at]].number).collect();
            let covered = table
                .indexes
                .iter()
                .any(|index| index.usable && index.columns.iter().all(|number| numbers.contains(number)));
            if covered {
                return Ok(Lookup::Key(keys));
            }
            let ddl = ddl::key_index(relation, &table.name);
            Err(breach(
                &table.name,
                Code::KeyMissing,
                "no usable unique index over the replica identity",
                None,
                ddl,
            ))
        }
    }
}

/// Under identity FULL every old value is known, so any unique index over sent, not-null columns will do.
fn full_lookup(table: &TargetTable, columns: &[usize]) -> Lookup {
    let source_of = |number: i16| {
        columns.iter().position(|place| {
            let column = &table.columns[*place];
            column.number == number && column.not_null
        })
    };
    table
        .indexes
        .iter()
        .filter(|index| index.usable)
        .find_map(|index| index.columns.iter().map(|number| source_of(*number)).collect::<Option<Vec<_>>>())
        .filter(|keys| !keys.is_empty())
        .map_or(Lookup::WholeRow, Lookup::Key)
}

fn breach(table: &TableName, code: Code, what: &str, column: Option<&str>, ddl: Vec<String>) -> Breach {
    Breach {
        code,
        what: what.to_owned(),
        table: Box::new(table.clone()),
        column: column.map(str::to_owned),
        ddl,
        target_relation: None,
    }
}

#[cfg(test)]
mod tests;
