use trellara_storage::records::ReplicaIdentity;

use super::*;
use crate::apply::testing::{mapping, relation, table};
use crate::contract::ValueForm;

fn plain() -> Mapping {
    mapping(&relation(ReplicaIdentity::Default, &["*k", "v"]), table(&["k", "v"], &[&[1]]))
}

#[test]
fn inserts_take_one_typed_array_for_each_column() {
    let statement = build(&plain(), &Form::Insert { sent: vec![0, 1], tolerant: false });
    assert_eq!(
        statement.sql,
        "INSERT INTO \"app\".\"t\" (\"k\", \"v\") OVERRIDING SYSTEM VALUE SELECT u.c0, u.c1 \
         FROM unnest($1::integer[], $2::integer[]) AS u(c0, c1)"
    );
    assert_eq!(statement.inputs.len(), 2);
}

#[test]
fn updates_and_deletes_match_by_key_and_leave_children_of_the_table_alone() {
    let update = build(&plain(), &Form::Update { set: vec![1] });
    assert_eq!(
        update.sql,
        "UPDATE ONLY \"app\".\"t\" AS t SET \"v\" = u.c1 \
         FROM unnest($1::integer[], $2::integer[]) AS u(c0, c1) WHERE t.\"k\" = u.c0"
    );
    assert_eq!(update.inputs[0].image, Image::Old);
    let delete = build(&plain(), &Form::Delete);
    assert_eq!(
        delete.sql,
        "DELETE FROM ONLY \"app\".\"t\" AS t USING unnest($1::integer[]) AS u(c0) WHERE t.\"k\" = u.c0"
    );
}

#[test]
fn an_update_that_writes_nothing_still_looks_for_its_row() {
    let statement = build(&plain(), &Form::Update { set: Vec::new() });
    assert!(statement.sql.starts_with("SELECT FROM ONLY \"app\".\"t\" AS t, unnest("));
}

#[test]
fn a_whole_row_lookup_takes_exactly_one_tuple() {
    let found = Found { equal: vec![0], null: vec![1], one_of_many: true };
    let statement = build(&plain(), &Form::DeleteOne { found });
    assert_eq!(
        statement.sql,
        "DELETE FROM ONLY \"app\".\"t\" AS t WHERE t.ctid = (SELECT x.ctid FROM ONLY \"app\".\"t\" AS x \
         WHERE x.\"k\" = ($1::integer[])[1] AND x.\"v\" IS NULL LIMIT 1)"
    );
}

#[test]
fn a_partitioned_table_is_written_through_its_root_and_tuples_carry_their_partition() {
    let mut mapping = plain();
    mapping.table.partitioned = true;
    let found = Found { equal: vec![0], null: Vec::new(), one_of_many: true };
    let statement = build(&mapping, &Form::DeleteOne { found });
    assert!(!statement.sql.contains("ONLY"));
    assert!(statement.sql.contains("(t.tableoid, t.ctid) = (SELECT x.tableoid, x.ctid FROM"));
}

#[test]
fn types_without_equality_are_compared_by_their_text() {
    let mut mapping = plain();
    mapping.table.columns[1].value.equality = None;
    let found = Found { equal: vec![0, 1], null: Vec::new(), one_of_many: true };
    let statement = build(&mapping, &Form::DeleteOne { found });
    assert!(statement.sql.contains("x.\"v\"::text = ($2::text[])[1]"));
}

#[test]
fn arrays_and_composites_travel_as_text_and_are_cast_in_the_select_list() {
    let mut mapping = plain();
    mapping.table.columns[1].value =
        ValueForm { sql_type: "integer[]".into(), as_text: true, delimiter: ',', equality: None };
    let statement = build(&mapping, &Form::Insert { sent: vec![0, 1], tolerant: false });
    assert!(statement.sql.contains("SELECT u.c0, u.c1::integer[] FROM unnest($1::integer[], $2::text[])"));
}

#[test]
fn a_fixed_identity_moves_by_delete_and_insert_and_keeps_what_was_not_sent() {
    let mut mapping = plain();
    mapping.table.columns[0].identity = Identity::Always;
    let found = Found { equal: vec![0], null: Vec::new(), one_of_many: false };
    let statement = build(&mapping, &Form::Move { set: vec![0], found });
    assert_eq!(
        statement.sql,
        "WITH gone AS (DELETE FROM ONLY \"app\".\"t\" AS t WHERE t.\"k\" = ($1::integer[])[1] RETURNING t.*) \
         INSERT INTO \"app\".\"t\" (\"k\", \"v\") OVERRIDING SYSTEM VALUE \
         SELECT ($2::integer[])[1], gone.\"v\" FROM gone"
    );
}

#[test]
fn one_truncate_empties_all_tables_and_never_cascades() {
    let mapping = plain();
    assert_eq!(
        truncate(&[&mapping, &mapping], true),
        "TRUNCATE ONLY \"app\".\"t\", ONLY \"app\".\"t\" RESTART IDENTITY"
    );
}
