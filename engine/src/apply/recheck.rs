//! Deferrable unique, primary key and exclusion constraints in a session that does not enforce them: the
//! values that a source transaction wrote are counted at its end.

use std::sync::Arc;

use super::array::ArrayText;
use super::change::{Misfit, Routed, value};
use super::mapped::Mapped;
use crate::contract::{DeferrableKey, TargetColumn};
use crate::decode::Column;
use crate::postgres::ident::{Qualified, identifier};

/// Values of one constraint's columns, as one transaction wrote them.
#[derive(Debug)]
pub(super) struct Written {
    mapped: Arc<Mapped>,
    key: usize,
    pub(super) arrays: Vec<ArrayText>,
}

impl Written {
    pub(super) fn constraint(&self) -> &DeferrableKey {
        &self.mapped.mapping.table.deferrable_keys[self.key]
    }

    pub(super) fn mapped(&self) -> &Arc<Mapped> {
        &self.mapped
    }

    /// One row for any two rows of the table that conflict over a written value.
    pub(super) fn sql(&self) -> String {
        let table = &self.mapped.mapping.table;
        let name = Qualified { schema: &table.name.schema, name: &table.name.name };
        let only = table.only();
        let columns: Vec<&TargetColumn> = self.columns().map(|(_, column)| column).collect();
        let mut arrays = Vec::new();
        let mut names = Vec::new();
        let mut written = Vec::new();
        let mut conflicts = Vec::new();
        for (n, (column, (_, operator))) in columns.iter().zip(&self.constraint().columns).enumerate() {
            let (form, quoted) = (&column.value, identifier(&column.name));
            let (array, element) = if form.as_text {
                ("text".to_owned(), format!("u.c{n}::{}", form.sql_type))
            } else {
                (form.sql_type.clone(), format!("u.c{n}"))
            };
            arrays.push(format!("${}::{array}[]", n + 1));
            names.push(format!("c{n}"));
            let equality = form.equality.as_deref().unwrap_or("=");
            written.push(format!("a.{quoted} {equality} {element}"));
            let operator = if operator == "=" { equality } else { operator };
            conflicts.push(format!("b.{quoted} {operator} a.{quoted}"));
        }
        format!(
            "SELECT 1 FROM unnest({}) AS u({}) JOIN {only}{name} AS a ON {} JOIN {only}{name} AS b ON {} \
             AND (b.tableoid, b.ctid) <> (a.tableoid, a.ctid) LIMIT 1",
            arrays.join(", "),
            names.join(", "),
            written.join(" AND "),
            conflicts.join(" AND "),
        )
    }

    /// The constraint's columns with their places in the relation.
    fn columns(&self) -> impl Iterator<Item = (Option<usize>, &TargetColumn)> {
        let mapping = &self.mapped.mapping;
        self.constraint().columns.iter().filter_map(|(number, _)| {
            let place = mapping.table.columns.iter().position(|column| column.number == *number)?;
            Some((mapping.columns.iter().position(|at| *at == place), &mapping.table.columns[place]))
        })
    }
}

/// Notes what the change writes into deferrable keys. A row with a NULL, or with a column that was not
/// sent, takes part in no new conflict.
pub(super) fn note(
    written: &mut Vec<Written>,
    mapped: &Arc<Mapped>,
    routed: &Routed<'_>,
) -> Result<(), Misfit> {
    for key in 0..mapped.mapping.table.deferrable_keys.len() {
        let at = match written.iter().position(|w| w.key == key && Arc::ptr_eq(&w.mapped, mapped)) {
            Some(at) => at,
            None => {
                written.push(start(mapped, key));
                written.len() - 1
            }
        };
        let places: Option<Vec<usize>> = written[at].columns().map(|(place, _)| place).collect();
        let Some(places) = places else { continue };
        let row: Option<Vec<(usize, Column<'_>)>> =
            places.iter().map(|place| routed.new_value(*place).map(|value| (*place, value))).collect();
        let Some(row) = row.filter(|row| row.iter().all(|(_, value)| *value != Column::Null)) else {
            continue;
        };
        for ((place, column), array) in row.into_iter().zip(&mut written[at].arrays) {
            let oid = mapped.mapping.relation.columns[place].type_oid;
            array.push(value(column, oid)?.as_deref());
        }
    }
    Ok(())
}

fn start(mapped: &Arc<Mapped>, key: usize) -> Written {
    let mut written = Written { mapped: Arc::clone(mapped), key, arrays: Vec::new() };
    let arrays = written.columns().map(|(_, column)| {
        let form = &column.value;
        let own = u8::try_from(form.delimiter).unwrap_or(b',');
        ArrayText::new(if form.as_text { b',' } else { own })
    });
    written.arrays = arrays.collect();
    written
}
