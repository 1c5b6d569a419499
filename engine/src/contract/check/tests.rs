#![expect(clippy::unwrap_used, reason = "a failed expectation in a test is a failed test")]

use trellara_storage::records::ColumnRecord;
use trellara_storage::{Lsn, RelationDigest, RelationId, RelationVersion};

use super::super::table::{Identity, TargetColumn, Triggers, UniqueIndex};
use super::*;

fn relation(identity: ReplicaIdentity) -> Arc<RelationRecord> {
    let column = |name: &str, type_oid, type_modifier, key| ColumnRecord {
        name: name.into(),
        type_oid,
        type_modifier,
        type_name: None,
        key,
    };
    Arc::new(RelationRecord {
        relation: RelationId::new(1),
        version: RelationVersion::new(1),
        digest: RelationDigest::default(),
        namespace: "app".into(),
        name: "Order".into(),
        replica_identity: identity,
        columns: vec![column("id", 20, -1, true), column("note", 1043, 24, false)],
        valid_from: Lsn::ZERO,
        encoding: "UTF8".into(),
    })
}

fn name() -> TableName {
    TableName { schema: "app".into(), name: "Order".into() }
}

fn table() -> TargetTable {
    let column = |name: &str, number, base: &str, category| TargetColumn {
        name: name.into(),
        number,
        declared: base.into(),
        base_name: base.into(),
        category,
        modifier: -1,
        ..TargetColumn::default()
    };
    TargetTable {
        name: name(),
        oid: 1,
        partitioned: false,
        columns: vec![column("id", 1, "int8", 'N'), column("note", 2, "text", 'S')],
        indexes: vec![UniqueIndex {
            name: "order_pkey".into(),
            columns: vec![1],
            usable: true,
            opaque: false,
        }],
        deferrable: false,
        deferrable_keys: Vec::new(),
        triggers: Triggers::default(),
        digest: RelationDigest::default(),
    }
}

fn checked(identity: ReplicaIdentity, table: TargetTable) -> Result<Mapping, Breach> {
    check(&relation(identity), &name(), TargetObject::Table(Box::new(table)))
}

fn broken(table: TargetTable) -> (Code, Vec<String>) {
    let breach = checked(ReplicaIdentity::Default, table).unwrap_err();
    (breach.code, breach.ddl)
}

#[test]
fn a_table_of_the_same_shape_fits_and_rows_are_found_by_the_key() {
    let mapping = checked(ReplicaIdentity::Default, table()).unwrap();
    assert_eq!(mapping.columns, [0, 1]);
    assert_eq!(mapping.lookup, Lookup::Key(vec![0]));
}

#[test]
fn columns_are_matched_by_name_whatever_their_order() {
    let mut table = table();
    table.columns.reverse();
    assert_eq!(checked(ReplicaIdentity::Default, table).unwrap().columns, [1, 0]);
}

#[test]
fn a_missing_table_comes_with_its_create_table() {
    let breach =
        check(&relation(ReplicaIdentity::Default), &name(), TargetObject::Missing { schema_exists: false });
    let breach = breach.unwrap_err();
    assert_eq!(breach.code, Code::TableMissing);
    assert_eq!(
        breach.ddl,
        [
            "CREATE SCHEMA \"app\";",
            "CREATE TABLE \"app\".\"Order\" (\"id\" int8 NOT NULL, \"note\" varchar(20), PRIMARY KEY (\"id\"));"
        ]
    );
}

#[test]
fn a_missing_column_comes_with_its_alter_table() {
    let mut table = table();
    table.columns.pop();
    assert_eq!(
        broken(table),
        (
            Code::ColumnMissing,
            vec!["ALTER TABLE \"app\".\"Order\" ADD COLUMN \"note\" varchar(20);".to_owned()]
        )
    );
}

#[test]
fn an_incompatible_type_comes_with_the_sources_type() {
    let mut table = table();
    (table.columns[0].base_name, table.columns[0].category) = ("bool".into(), 'B');
    assert_eq!(
        broken(table),
        (
            Code::ColumnTypeMismatch,
            vec![
                "ALTER TABLE \"app\".\"Order\" ALTER COLUMN \"id\" TYPE int8 USING \"id\"::int8;".to_owned()
            ]
        )
    );
}

#[test]
fn a_missing_key_comes_with_its_index_and_unusable_indexes_do_not_count() {
    let mut table = table();
    table.indexes[0].usable = false;
    assert_eq!(
        broken(table),
        (Code::KeyMissing, vec!["CREATE UNIQUE INDEX ON \"app\".\"Order\" (\"id\");".to_owned()])
    );
}

#[test]
fn a_required_column_that_the_source_lacks_is_a_breach_unless_it_fills_itself() {
    let mut own = TargetColumn { name: "own".into(), number: 3, not_null: true, ..TargetColumn::default() };
    let mut with = table();
    with.columns.push(own.clone());
    assert_eq!(
        broken(with),
        (
            Code::ColumnRequired,
            vec!["ALTER TABLE \"app\".\"Order\" ALTER COLUMN \"own\" DROP NOT NULL;".to_owned()]
        )
    );
    own.identity = Identity::ByDefault;
    let mut with = table();
    with.columns.push(own);
    assert!(checked(ReplicaIdentity::Default, with).is_ok());
}

#[test]
fn a_generated_target_column_never_swallows_what_the_source_sends() {
    let mut table = table();
    table.columns[1].generated = true;
    let (code, ddl) = broken(table);
    assert_eq!(code, Code::ContractBroken);
    assert_eq!(ddl, ["ALTER TABLE \"app\".\"Order\" ALTER COLUMN \"note\" DROP EXPRESSION;"]);
}

#[test]
fn identity_full_uses_an_index_over_columns_that_are_never_null() {
    let mut with = table();
    assert_eq!(checked(ReplicaIdentity::Full, with.clone()).unwrap().lookup, Lookup::WholeRow);
    with.columns[0].not_null = true;
    assert_eq!(checked(ReplicaIdentity::Full, with).unwrap().lookup, Lookup::Key(vec![0]));
}

#[test]
fn without_an_identity_there_is_nothing_to_look_up() {
    let mut without = table();
    without.indexes.clear();
    assert_eq!(checked(ReplicaIdentity::Nothing, without).unwrap().lookup, Lookup::Never);
}
