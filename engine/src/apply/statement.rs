//! SQL of one run: set-based over arrays through `unnest`, or about a single row.
//!
//! The one danger: a value that changes on its way. Arrays are typed by the column's base type without
//! modifier, so that the column's own checks raise; nothing is ever cast to a length.

use std::fmt::Write;

use crate::contract::{Identity, Lookup, Mapping, TargetColumn};
use crate::postgres::ident::{Qualified, identifier, identifiers};

/// What a statement does. Columns are places in `relation.columns`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Form {
    /// `tolerant`: a row that is there already is left alone and not counted.
    Insert {
        sent: Vec<usize>,
        tolerant: bool,
    },
    /// Rows by an unchanged key.
    Update {
        set: Vec<usize>,
    },
    /// One row, found by `found`, which may be its old key or its whole old image.
    UpdateOne {
        set: Vec<usize>,
        found: Found,
    },
    /// One row whose GENERATED ALWAYS identity changes: deleted and inserted in one statement.
    Move {
        set: Vec<usize>,
        found: Found,
    },
    /// Rows by their key.
    Delete,
    DeleteOne {
        found: Found,
    },
}

/// How the one row of a statement is found: columns with a value, and columns that are NULL.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Found {
    pub(super) equal: Vec<usize>,
    pub(super) null: Vec<usize>,
    /// By the whole row: others may look the same, and exactly one is taken.
    pub(super) one_of_many: bool,
}

/// Which row image a parameter takes its values from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Image {
    /// The row as it was; where the source sent none, the new row has the same key.
    Old,
    New,
}

/// One array parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Input {
    pub(super) image: Image,
    pub(super) column: usize,
    pub(super) delimiter: u8,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Statement {
    pub(super) sql: String,
    pub(super) inputs: Vec<Input>,
}

pub(super) fn build(mapping: &Mapping, form: &Form) -> Statement {
    let mut builder = Builder { mapping, inputs: Vec::new(), types: Vec::new() };
    let sql = match form {
        Form::Insert { sent, tolerant } => builder.insert(sent, *tolerant),
        Form::Update { set } => builder.update(set),
        Form::UpdateOne { set, found } => builder.update_one(set, found),
        Form::Move { set, found } => builder.move_row(set, found),
        Form::Delete => builder.delete(),
        Form::DeleteOne { found } => builder.delete_one(found),
    };
    Statement { sql, inputs: builder.inputs }
}

struct Builder<'a> {
    mapping: &'a Mapping,
    inputs: Vec<Input>,
    /// Array type of each input.
    types: Vec<String>,
}

impl Builder<'_> {
    fn insert(&mut self, sent: &[usize], tolerant: bool) -> String {
        let table = self.table();
        let on_conflict = if tolerant { self.on_conflict() } else { String::new() };
        if sent.is_empty() {
            return format!("INSERT INTO {table} DEFAULT VALUES{on_conflict}");
        }
        let values: Vec<String> = sent.iter().map(|at| self.of_rows(Image::New, *at)).collect();
        let names = identifiers(sent.iter().map(|at| self.column(*at).name.as_str()));
        format!(
            "INSERT INTO {table} ({names}) OVERRIDING SYSTEM VALUE SELECT {} FROM {}{on_conflict}",
            values.join(", "),
            self.rows()
        )
    }

    /// The key's own index is named: without a name deferrable ones would be refused.
    fn on_conflict(&self) -> String {
        let table = &self.mapping.table;
        let Lookup::Key(keys) = &self.mapping.lookup else { return String::new() };
        let in_key = |number: &i16| keys.iter().any(|at| self.column(*at).number == *number);
        let index = table.indexes.iter().find(|index| index.usable && index.columns.iter().all(in_key));
        let columns = index.into_iter().flat_map(|index| &index.columns);
        let names = columns.filter_map(|number| table.by_number(*number)).map(|c| c.name.as_str());
        format!(" ON CONFLICT ({}) DO NOTHING", identifiers(names))
    }

    fn update(&mut self, set: &[usize]) -> String {
        let matched = self.match_key();
        let assignments: Vec<String> =
            set.iter().map(|at| format!("{} = {}", self.name(*at), self.of_rows(Image::New, *at))).collect();
        let (target, rows) = (self.target(), self.rows());
        if assignments.is_empty() {
            // Nothing to write, but the row must be there.
            return format!("SELECT FROM {target}, {rows} WHERE {matched}");
        }
        format!("UPDATE {target} SET {} FROM {rows} WHERE {matched}", assignments.join(", "))
    }

    fn delete(&mut self) -> String {
        let matched = self.match_key();
        format!("DELETE FROM {} USING {} WHERE {matched}", self.target(), self.rows())
    }

    fn update_one(&mut self, set: &[usize], found: &Found) -> String {
        let matched = self.match_one(found);
        let assignments: Vec<String> =
            set.iter().map(|at| format!("{} = {}", self.name(*at), self.single(Image::New, *at))).collect();
        if assignments.is_empty() {
            return format!("SELECT FROM {} WHERE {matched}", self.target());
        }
        format!("UPDATE {} SET {} WHERE {matched}", self.target(), assignments.join(", "))
    }

    fn delete_one(&mut self, found: &Found) -> String {
        let matched = self.match_one(found);
        format!("DELETE FROM {} WHERE {matched}", self.target())
    }

    fn move_row(&mut self, set: &[usize], found: &Found) -> String {
        let matched = self.match_one(found);
        let mut names = Vec::new();
        let mut values = Vec::new();
        for (place, column) in self.mapping.table.columns.iter().enumerate() {
            if column.generated {
                continue;
            }
            let name = identifier(&column.name);
            let replaced = set.iter().find(|at| self.mapping.columns[**at] == place);
            values.push(match replaced {
                Some(at) => self.single(Image::New, *at),
                None => format!("gone.{name}"),
            });
            names.push(name);
        }
        format!(
            "WITH gone AS (DELETE FROM {} WHERE {matched} RETURNING t.*) \
             INSERT INTO {} ({}) OVERRIDING SYSTEM VALUE SELECT {} FROM gone",
            self.target(),
            self.table(),
            names.join(", "),
            values.join(", ")
        )
    }

    fn match_key(&mut self) -> String {
        let mapping = self.mapping;
        let Lookup::Key(keys) = &mapping.lookup else { return "false".to_owned() };
        let terms: Vec<String> = keys
            .iter()
            .map(|at| {
                let value = self.of_rows(Image::Old, *at);
                format!("t.{} {} {value}", self.name(*at), self.equality(*at))
            })
            .collect();
        terms.join(" AND ")
    }

    fn match_one(&mut self, found: &Found) -> String {
        let alias = if found.one_of_many { "x" } else { "t" };
        let mut terms = Vec::new();
        for at in &found.equal {
            let name = self.name(*at);
            if self.column(*at).value.equality.is_some() {
                let value = self.single(Image::Old, *at);
                terms.push(format!("{alias}.{name} {} {value}", self.equality(*at)));
            } else {
                let value = self.single_text(*at);
                terms.push(format!("{alias}.{name}::text = {value}"));
            }
        }
        terms.extend(found.null.iter().map(|at| format!("{alias}.{} IS NULL", self.name(*at))));
        if terms.is_empty() {
            terms.push("true".to_owned());
        }
        let matched = terms.join(" AND ");
        if !found.one_of_many {
            return matched;
        }
        let source = format!("{}{} AS x WHERE {matched} LIMIT 1", self.mapping.table.only(), self.table());
        // A tuple id is unique in one partition only.
        if self.mapping.table.partitioned {
            format!("(t.tableoid, t.ctid) = (SELECT x.tableoid, x.ctid FROM {source})")
        } else {
            format!("t.ctid = (SELECT x.ctid FROM {source})")
        }
    }

    /// A column of `u`, the rows of the arrays.
    fn of_rows(&mut self, image: Image, at: usize) -> String {
        let n = self.input(image, at, false);
        self.typed(at, &format!("u.c{n}"))
    }

    /// The only element of an array.
    fn single(&mut self, image: Image, at: usize) -> String {
        let n = self.input(image, at, false);
        let element = format!("(${}::{})[1]", n + 1, self.types[n]);
        self.typed(at, &element)
    }

    fn single_text(&mut self, at: usize) -> String {
        let n = self.input(Image::Old, at, true);
        format!("(${}::text[])[1]", n + 1)
    }

    fn typed(&self, at: usize, value: &str) -> String {
        let form = &self.column(at).value;
        if form.as_text { format!("{value}::{}", form.sql_type) } else { value.to_owned() }
    }

    fn input(&mut self, image: Image, column: usize, text: bool) -> usize {
        let form = &self.mapping.table.columns[self.mapping.columns[column]].value;
        let text = text || form.as_text;
        let delimiter = if text { b',' } else { u8::try_from(form.delimiter).unwrap_or(b',') };
        let input = Input { image, column, delimiter };
        let array = if text { "text[]".to_owned() } else { format!("{}[]", form.sql_type) };
        let known = self.inputs.iter().zip(&self.types).position(|(i, t)| *i == input && *t == array);
        known.unwrap_or_else(|| {
            self.inputs.push(input);
            self.types.push(array);
            self.inputs.len() - 1
        })
    }

    fn rows(&self) -> String {
        let mut arrays = String::new();
        let mut columns = String::new();
        for (n, array) in self.types.iter().enumerate() {
            let separator = if n == 0 { "" } else { ", " };
            write!(arrays, "{separator}${}::{array}", n + 1).expect("writing to a String");
            write!(columns, "{separator}c{n}").expect("writing to a String");
        }
        format!("unnest({arrays}) AS u({columns})")
    }

    fn table(&self) -> String {
        let name = &self.mapping.table.name;
        Qualified { schema: &name.schema, name: &name.name }.to_string()
    }

    fn target(&self) -> String {
        format!("{}{} AS t", self.mapping.table.only(), self.table())
    }

    fn column(&self, at: usize) -> &TargetColumn {
        &self.mapping.table.columns[self.mapping.columns[at]]
    }

    fn name(&self, at: usize) -> String {
        identifier(&self.column(at).name)
    }

    fn equality(&self, at: usize) -> &str {
        self.column(at).value.equality.as_deref().unwrap_or("=")
    }
}

/// TRUNCATE of several tables in one statement. Never CASCADE: it would empty tables that nobody named.
pub(super) fn truncate(mappings: &[&Mapping], restart_identity: bool) -> String {
    let tables: Vec<String> = mappings
        .iter()
        .map(|mapping| {
            let name = &mapping.table.name;
            format!("{}{}", mapping.table.only(), Qualified { schema: &name.schema, name: &name.name })
        })
        .collect();
    let identity = if restart_identity { " RESTART IDENTITY" } else { "" };
    format!("TRUNCATE {}{identity}", tables.join(", "))
}

/// A column that only a DELETE and INSERT can change.
pub(super) fn is_fixed(column: &TargetColumn) -> bool {
    column.identity == Identity::Always
}

#[cfg(test)]
mod tests;
