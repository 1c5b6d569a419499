//! Whether a relation of the source fits its table at the target, and the exact DDL where it does not.
//!
//! The check is made before the first change of a relation version is sent, so that a schema that does not
//! fit is named as such. The one danger: passing a table in which a change would find or hit another row
//! than at the source.

pub mod catalog;
mod check;
mod ddl;
mod table;
mod type_name;

pub use check::{Breach, Lookup, Mapping, check};
pub use ddl::widening;
pub use table::{
    DeferrableKey, Identity, TargetColumn, TargetObject, TargetTable, Triggers, UniqueIndex, ValueForm,
};
