//! A target table as its catalog shows it: what statements and the contract check need to know, no more.

use trellara_storage::RelationDigest;

use crate::settings::TableName;

/// What a name stands for at the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetObject {
    Table(Box<TargetTable>),
    /// A view, foreign table or sequence: nothing that rows can be applied to.
    NotATable,
    Missing {
        schema_exists: bool,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetTable {
    pub name: TableName,
    pub oid: u32,
    pub partitioned: bool,
    /// In the order of the catalog, dropped ones left out.
    pub columns: Vec<TargetColumn>,
    /// Unique and exclusion indexes, the primary key first.
    pub indexes: Vec<UniqueIndex>,
    /// Has, or is referenced by, a deferrable constraint.
    pub deferrable: bool,
    /// Deferrable unique, primary key and exclusion constraints over plain columns.
    pub deferrable_keys: Vec<DeferrableKey>,
    pub triggers: Triggers,
    /// Over names, types and keys, to be shown beside the source's.
    pub digest: RelationDigest,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Identity {
    #[default]
    None,
    Always,
    ByDefault,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetColumn {
    pub name: String,
    /// `attnum`: how indexes and constraints name it.
    pub number: i16,
    /// As declared, modifier included (`numeric(10,2)`).
    pub declared: String,
    /// `atttypmod`, -1 without modifier.
    pub modifier: i32,
    /// The type below all domains: OID, name, category (`pg_type.typcategory`).
    pub base_oid: u32,
    pub base_name: String,
    pub category: char,
    pub value: ValueForm,
    pub not_null: bool,
    /// A default of the column or of its domain.
    pub has_default: bool,
    pub identity: Identity,
    pub generated: bool,
    pub primary_key: bool,
}

/// How values of a column travel as one array parameter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValueForm {
    /// SQL name of the base type without modifier, so that the column's own length check raises.
    pub sql_type: String,
    /// `unnest` would flatten arrays and expand composites: those go as `text[]` and are cast afterwards.
    pub as_text: bool,
    pub delimiter: char,
    /// `=` as btree or hash know it, with its schema where that is not `pg_catalog`; types without one are
    /// compared by their text.
    pub equality: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UniqueIndex {
    /// Also the name of its constraint, where it has one.
    pub name: String,
    /// `attnum` of the key columns.
    pub columns: Vec<i16>,
    /// Valid, immediate, unique, not partial, without expressions: rows can be found by it.
    pub usable: bool,
    /// Partial or over expressions: which columns it depends on is not in its key.
    pub opaque: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeferrableKey {
    pub constraint: String,
    /// `attnum` and the operator under which two values conflict.
    pub columns: Vec<(i16, String)>,
}

/// Which triggers of the table fire in the session's replication role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Triggers {
    /// In role `replica`: ENABLE REPLICA or ALWAYS.
    pub in_replica: bool,
    /// In role `origin`, foreign keys included.
    pub in_origin: bool,
}

impl TargetTable {
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    pub fn by_number(&self, number: i16) -> Option<&TargetColumn> {
        self.columns.iter().find(|column| column.number == number)
    }

    /// `ONLY` keeps children of an inheritance parent untouched; a partitioned table has no rows of its own.
    pub fn only(&self) -> &'static str {
        if self.partitioned { "" } else { "ONLY " }
    }
}
