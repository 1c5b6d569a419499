//! Breaches of the schema contract: named before the first change, and the printed DDL, run as printed,
//! makes the next attempt succeed.

use trellara_actors::failure::{Class, Code, Failure};
use trellara_actors::ports::{ApplyOutcome, Applying};

use super::stage::{Stage, assert_failure};

/// Applies what `change` does at the source, expects the breach, runs its DDL, applies again.
async fn repaired_by_its_ddl(source: &str, target: &str, change: &str, code: Code, query: &str) -> Failure {
    let mut stage = Stage::with_parts(source, target, "", 1 << 20, |_| ()).await;
    stage.run(change).await;
    let transactions = stage.received().await;
    let group = stage.group(&transactions);
    let mut failures = Vec::new();
    for how in [Applying::SetBased, Applying::ChangeByChange] {
        let ApplyOutcome::Failed { failure, .. } = stage.apply(&group, how).await else { panic!("{how:?}") };
        assert_failure(&failure, Class::SchemaContract, code);
        failures.push(failure);
    }
    let failure = failures.pop().unwrap();
    assert!(!failure.detail.remedy.is_empty());
    for statement in &failure.detail.remedy {
        stage.target.batch_execute(statement).await.unwrap();
    }
    let outcome = stage.apply(&group, Applying::SetBased).await;
    assert!(matches!(outcome, ApplyOutcome::Applied), "{outcome:?}");
    stage.assert_equal(query).await;
    failure
}

#[tokio::test]
async fn a_missing_table_and_schema_are_created_as_printed() {
    repaired_by_its_ddl(
        r#"CREATE SCHEMA "My App"; CREATE TABLE "My App"."Or""der"("Id" bigint PRIMARY KEY, note varchar(10),
           amount numeric(10,2)[], at timestamptz(3), b bit(3), c "char", raw "bit")"#,
        "",
        r#"INSERT INTO "My App"."Or""der" VALUES (1, 'a', '{1.50}', '2020-01-01', B'101', 'x', B'1')"#,
        Code::TableMissing,
        r#"SELECT * FROM "My App"."Or""der""#,
    )
    .await;
}

#[tokio::test]
async fn a_missing_column_is_added_as_printed() {
    let failure = repaired_by_its_ddl(
        "CREATE TABLE t(k int PRIMARY KEY, \"New Col\" varchar(7))",
        "CREATE TABLE t(k int PRIMARY KEY)",
        "INSERT INTO t VALUES (1, 'abc')",
        Code::ColumnMissing,
        "SELECT * FROM t",
    )
    .await;
    assert_eq!(failure.detail.column.as_deref(), Some("New Col"));
    assert_eq!(failure.detail.table.as_deref(), Some("t"));
}

#[tokio::test]
async fn an_incompatible_type_is_changed_as_printed() {
    repaired_by_its_ddl(
        "CREATE TABLE t(k int PRIMARY KEY, v text)",
        "CREATE TABLE t(k int PRIMARY KEY, v int)",
        "INSERT INTO t VALUES (1, 'abc')",
        Code::ColumnTypeMismatch,
        "SELECT * FROM t",
    )
    .await;
}

#[tokio::test]
async fn a_missing_key_index_is_created_as_printed() {
    repaired_by_its_ddl(
        "CREATE TABLE t(a int, b text, v int, PRIMARY KEY (a, b))",
        "CREATE TABLE t(a int, b text, v int); CREATE UNIQUE INDEX ON t (a, b) WHERE v > 0; CREATE INDEX ON t (a, b)",
        "INSERT INTO t VALUES (1, 'x', 1); UPDATE t SET v = 2",
        Code::KeyMissing,
        "SELECT * FROM t",
    )
    .await;
}

#[tokio::test]
async fn a_required_column_that_the_source_lacks_is_relaxed_as_printed() {
    repaired_by_its_ddl(
        "CREATE TABLE t(k int PRIMARY KEY)",
        "CREATE TABLE t(k int PRIMARY KEY, own int NOT NULL)",
        "INSERT INTO t VALUES (1)",
        Code::ColumnRequired,
        "SELECT k FROM t",
    )
    .await;
}

/// P055.
#[tokio::test]
async fn a_generated_target_column_never_loses_the_sources_value() {
    repaired_by_its_ddl(
        "CREATE TABLE g(a int PRIMARY KEY, c int)",
        "CREATE TABLE g(a int PRIMARY KEY, c int GENERATED ALWAYS AS (a + 1) STORED)",
        "INSERT INTO g VALUES (1, 50)",
        Code::ContractBroken,
        "SELECT * FROM g",
    )
    .await;
}

/// P042 and columns of the target's own.
#[tokio::test]
async fn columns_of_the_targets_own_that_fill_themselves_are_left_alone() {
    let mut stage = Stage::with_parts(
        "CREATE TABLE sk(a int); CREATE TABLE t(b int, a int PRIMARY KEY)",
        "CREATE TABLE sk(a int, b serial PRIMARY KEY); CREATE TABLE t(a int PRIMARY KEY, b int, mine text DEFAULT 'own')",
        "",
        1 << 20,
        |_| (),
    )
    .await;
    stage.run("INSERT INTO sk VALUES (7),(7),(8); INSERT INTO t VALUES (1, 2); UPDATE t SET b = 3").await;
    stage.apply_all().await;
    assert_eq!(stage.at_target("SELECT count(*), count(DISTINCT b) FROM sk").await, ["(3,3)"]);
    assert_eq!(stage.at_target("SELECT a, b, mine FROM t").await, ["(2,3,own)"]);
}

#[tokio::test]
async fn a_view_is_no_target() {
    let mut stage = Stage::with_parts(
        "CREATE TABLE t(k int PRIMARY KEY)",
        "CREATE VIEW t AS SELECT 1 AS k",
        "",
        1 << 20,
        |_| (),
    )
    .await;
    stage.run("INSERT INTO t VALUES (1)").await;
    let (_, failure) = stage.first_failure().await.unwrap();
    assert_failure(&failure, Class::SchemaContract, Code::ContractBroken);
}

#[tokio::test]
async fn a_column_added_at_the_source_while_streaming_breaks_only_from_there_on() {
    let mut stage = Stage::new("CREATE TABLE t(k int PRIMARY KEY)").await;
    stage.run("INSERT INTO t VALUES (1)").await;
    stage.run("ALTER TABLE t ADD COLUMN v int").await;
    stage.run("INSERT INTO t VALUES (2, 2)").await;
    let (_, failure) = stage.first_failure().await.unwrap();
    assert_failure(&failure, Class::SchemaContract, Code::ColumnMissing);
    assert_eq!(stage.at_target("SELECT * FROM t").await, ["(1)"]);
}

#[tokio::test]
async fn tables_outside_the_dataset_are_left_out_or_refused_as_configured() {
    let both = "CREATE TABLE t(k int PRIMARY KEY); CREATE TABLE other(k int PRIMARY KEY)";
    let named = || vec![trellara_engine::settings::TableName { schema: "public".into(), name: "t".into() }];
    let mut stage = Stage::with(both, "DROP TABLE other", |settings| settings.source.tables = named()).await;
    stage.run("INSERT INTO t VALUES (1); INSERT INTO other VALUES (1); TRUNCATE other").await;
    stage.apply_all().await;
    stage.assert_equal("SELECT * FROM t").await;

    let mut stage = Stage::with(both, "", |settings| {
        settings.source.tables = named();
        settings.target.quarantine_unlisted_tables = true;
    })
    .await;
    stage.run("INSERT INTO other VALUES (1)").await;
    let (_, failure) = stage.first_failure().await.unwrap();
    assert_failure(&failure, Class::SchemaContract, Code::ContractBroken);
}

/// T041.
#[tokio::test]
async fn a_truncate_of_a_missing_table_is_a_missing_table() {
    let mut stage = Stage::with(
        "CREATE TABLE tm1(k int PRIMARY KEY); CREATE TABLE tm2(k int PRIMARY KEY)",
        "DROP TABLE tm2",
        |_| (),
    )
    .await;
    stage.run("BEGIN; INSERT INTO tm1 VALUES (1); TRUNCATE tm2; INSERT INTO tm1 VALUES (2); COMMIT").await;
    let (_, failure) = stage.first_failure().await.unwrap();
    assert_failure(&failure, Class::SchemaContract, Code::TableMissing);
    assert!(stage.at_target("SELECT * FROM tm1").await.is_empty());
}

#[tokio::test]
async fn a_truncate_that_meets_a_foreign_key_of_the_targets_own_never_cascades() {
    let mut stage = Stage::with(
        "CREATE TABLE p(k int PRIMARY KEY)",
        "CREATE TABLE own(k int REFERENCES p); INSERT INTO p VALUES (1); INSERT INTO own VALUES (1)",
        |_| (),
    )
    .await;
    stage.run("TRUNCATE p").await;
    let (_, failure) = stage.first_failure().await.unwrap();
    assert_failure(&failure, Class::SchemaContract, Code::ContractBroken);
    assert_eq!(stage.at_target("SELECT * FROM own").await, ["(1)"]);
}
