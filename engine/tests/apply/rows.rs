//! Contents: what the source's transactions leave behind, set-based and change by change alike.

use trellara_actors::failure::{Class, Code};
use trellara_actors::ports::{ApplyOutcome, Applying};
use trellara_engine::settings::{RowPolicy, TriggerPolicy};

use super::stage::{Stage, assert_failure};

/// Applies the same transactions in both ways; each must end with the source's content.
async fn same_content(both: &str, steps: &[&str], query: &str) {
    same_content_with(both, "", steps, query).await;
}

async fn same_content_with(both: &str, more_on_target: &str, steps: &[&str], query: &str) {
    for how in [Applying::SetBased, Applying::ChangeByChange] {
        let mut stage = Stage::with(both, more_on_target, |_| ()).await;
        for step in steps {
            stage.run(step).await;
        }
        let transactions = stage.received().await;
        let group = stage.group(&transactions);
        let outcome = stage.apply(&group, how).await;
        assert!(matches!(outcome, ApplyOutcome::Applied), "{how:?}: {outcome:?}");
        stage.assert_equal(query).await;
    }
}

#[tokio::test]
async fn inserts_updates_and_deletes_of_several_tables_arrive() {
    same_content(
        "CREATE TABLE a(k int PRIMARY KEY, v text); CREATE TABLE b(k int PRIMARY KEY, n int DEFAULT 7)",
        &[
            "INSERT INTO a SELECT g, 'v' || g FROM generate_series(1, 50) g",
            "INSERT INTO b(k) SELECT g FROM generate_series(1, 50) g",
            "BEGIN; UPDATE a SET v = upper(v) WHERE k < 20; DELETE FROM b WHERE k % 3 = 0; \
             UPDATE a SET v = NULL WHERE k = 5; INSERT INTO b VALUES (100, 1); COMMIT",
        ],
        "SELECT 'a', k, v FROM a UNION ALL SELECT 'b', k, n::text FROM b",
    )
    .await;
}

#[tokio::test]
async fn a_key_touched_twice_in_one_group_ends_with_its_last_value() {
    same_content(
        "CREATE TABLE t(k int PRIMARY KEY, v int)",
        &[
            "INSERT INTO t VALUES (1, 1), (2, 1)",
            "BEGIN; UPDATE t SET v = 2 WHERE k = 1; UPDATE t SET v = 3 WHERE k = 1; COMMIT",
            "BEGIN; DELETE FROM t WHERE k = 2; INSERT INTO t VALUES (2, 9); UPDATE t SET v = 10 WHERE k = 2; COMMIT",
        ],
        "SELECT * FROM t",
    )
    .await;
}

#[tokio::test]
async fn keys_that_change_and_move_through_each_other_arrive() {
    same_content(
        "CREATE TABLE t(k int PRIMARY KEY, v text)",
        &[
            "INSERT INTO t SELECT g, 'v' || g FROM generate_series(1, 9) g",
            "UPDATE t SET k = k + 100",
            "UPDATE t SET k = k - 101 WHERE k > 105",
            "BEGIN; UPDATE t SET k = -1 WHERE k = 101; UPDATE t SET k = 101 WHERE k = 102; \
             UPDATE t SET k = 102 WHERE k = -1; COMMIT",
        ],
        "SELECT * FROM t",
    )
    .await;
}

#[tokio::test]
async fn unique_values_that_shift_never_fail_for_being_applied_together() {
    same_content(
        "CREATE TABLE t(k int PRIMARY KEY, u int UNIQUE, x int)",
        &[
            "INSERT INTO t SELECT g, g, 0 FROM generate_series(1, 200) g",
            "DO $$BEGIN FOR i IN REVERSE 200..1 LOOP UPDATE t SET u = u + 1 WHERE k = i; END LOOP; END$$",
            "BEGIN; DELETE FROM t WHERE k = 7; INSERT INTO t VALUES (1007, 8, 1); COMMIT",
        ],
        "SELECT * FROM t",
    )
    .await;
}

/// P006 and P007.
#[tokio::test]
async fn identity_full_with_duplicates_changes_one_row_for_one_change() {
    same_content(
        "CREATE TABLE dup(a int, b text); ALTER TABLE dup REPLICA IDENTITY FULL; \
         CREATE TABLE fd(x text, n int); ALTER TABLE fd REPLICA IDENTITY FULL",
        &[
            "INSERT INTO dup VALUES (1,'x'),(1,'x'),(1,'x'),(2,'y')",
            "DELETE FROM dup WHERE ctid = '(0,1)'",
            "UPDATE dup SET b = 'z' WHERE ctid = '(0,2)'",
            "INSERT INTO fd VALUES ('a',1),('b',2),('b',2),(NULL,3),(NULL,3)",
            "UPDATE fd SET n = n + 1",
            "UPDATE fd SET x = 'bb' WHERE x = 'b'",
        ],
        "SELECT a::text, b FROM dup UNION ALL SELECT x, n::text FROM fd",
    )
    .await;
}

/// P009, P097, P098.
#[tokio::test]
async fn identity_full_finds_rows_by_a_unique_index_or_by_text_where_a_type_has_no_equality() {
    same_content_with(
        "CREATE TABLE fp(a int PRIMARY KEY, b text); ALTER TABLE fp REPLICA IDENTITY FULL; \
         CREATE TABLE fn(x int); ALTER TABLE fn REPLICA IDENTITY FULL; \
         CREATE TABLE fj(a int, j json, f float4, d numeric, p point, js json[]); \
         ALTER TABLE fj REPLICA IDENTITY FULL",
        "ALTER TABLE fn ADD COLUMN y int",
        &[
            "INSERT INTO fp VALUES (1,'a'),(2,'b')",
            "UPDATE fp SET b = 'c' WHERE a = 1",
            "UPDATE fp SET a = 20 WHERE a = 2",
            "DELETE FROM fp WHERE a = 1",
            "INSERT INTO fn VALUES (1),(NULL),(3)",
            "UPDATE fn SET x = x + 1 WHERE x = 1",
            "UPDATE fn SET x = 9 WHERE x IS NULL",
            "DELETE FROM fn WHERE x = 3",
            r#"INSERT INTO fj VALUES (1,'{"k": 1}',0.1,1.50,'(1,2)',ARRAY['{"a":  1}']::json[]),
                                     (2,'{"k":2}','NaN',2,NULL,NULL)"#,
            "UPDATE fj SET a = 10 WHERE a = 1",
            "DELETE FROM fj WHERE a = 2",
        ],
        "SELECT a::text, b FROM fp UNION ALL SELECT x::text, '' FROM fn \
         UNION ALL SELECT a::text, concat(j, f, d, p, js) FROM fj",
    )
    .await;
}

#[tokio::test]
async fn odd_identifiers_are_only_names() {
    let long = "x".repeat(63);
    same_content(
        &format!(
            r#"CREATE SCHEMA "sch""ema.; --";
               CREATE TABLE "sch""ema.; --"."Ta ble'$1"("sel""ect" int PRIMARY KEY, "{long}" text, "列😀" int, "order" int)"#
        ),
        &[
            r#"INSERT INTO "sch""ema.; --"."Ta ble'$1" VALUES (1, 'a', 1, 1), (2, 'b', 2, 2), (3, 'c', 3, 3)"#,
            &format!(r#"UPDATE "sch""ema.; --"."Ta ble'$1" SET "{long}" = 'z', "order" = 9 WHERE "sel""ect" = 2"#),
            r#"DELETE FROM "sch""ema.; --"."Ta ble'$1" WHERE "sel""ect" = 3"#,
        ],
        r#"SELECT * FROM "sch""ema.; --"."Ta ble'$1""#,
    )
    .await;
}

#[tokio::test]
async fn toasted_values_that_were_not_touched_stay_as_they_are() {
    let both = "CREATE TABLE t(k int PRIMARY KEY, big text, n int, m text); \
                ALTER TABLE t ALTER big SET STORAGE EXTERNAL; ALTER TABLE t ALTER m SET STORAGE EXTERNAL";
    same_content(
        both,
        &[
            "INSERT INTO t SELECT g, repeat(md5(g::text), 2000), 0, repeat(md5('m' || g), 2000) FROM generate_series(1, 5) g",
            "UPDATE t SET n = n + 1",
            "UPDATE t SET big = 'short' WHERE k = 2",
            "UPDATE t SET k = 30 WHERE k = 3",
            "UPDATE t SET m = NULL WHERE k = 4",
        ],
        "SELECT k, md5(big), n, md5(m) FROM t",
    )
    .await;
}

#[tokio::test]
async fn identity_and_generated_columns_are_written_as_the_target_wants_them() {
    same_content(
        "CREATE TABLE i(k int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, v text, g text GENERATED ALWAYS AS (upper(v)) STORED); \
         CREATE TABLE f(\"serNo\" int GENERATED ALWAYS AS IDENTITY, name text); ALTER TABLE f REPLICA IDENTITY FULL; \
         CREATE TABLE n(k int PRIMARY KEY, s int GENERATED ALWAYS AS IDENTITY, v text)",
        &[
            "INSERT INTO i(v) VALUES ('a'), ('b'), ('c')",
            "INSERT INTO f(name) VALUES ('a'), ('b')",
            "INSERT INTO n(k, v) VALUES (1, 'a'), (2, 'b')",
            "UPDATE i SET v = 'z' WHERE k = 1",
            "UPDATE i SET k = DEFAULT WHERE k = 2",
            "UPDATE f SET name = 'c' WHERE name = 'a'",
            "UPDATE n SET v = 'x' WHERE k = 1",
            "UPDATE n SET s = DEFAULT WHERE k = 2",
            "DELETE FROM i WHERE k = 3",
        ],
        "SELECT 'i', k, v, g FROM i UNION ALL SELECT 'f', \"serNo\", name, '' FROM f UNION ALL SELECT 'n', k, s::text, v FROM n",
    )
    .await;
}

#[tokio::test]
async fn one_truncate_of_several_tables_is_one_statement_and_restarts_what_it_should() {
    same_content(
        "CREATE TABLE tpar(k int PRIMARY KEY); CREATE TABLE tchi(x int PRIMARY KEY, k int REFERENCES tpar); \
         CREATE TABLE ts(n serial PRIMARY KEY)",
        &[
            "INSERT INTO tpar VALUES (1),(2)",
            "INSERT INTO tchi VALUES (11,1),(22,2)",
            "TRUNCATE tchi, tpar",
            "INSERT INTO tpar VALUES (3)",
            "INSERT INTO tchi VALUES (33,3)",
            "INSERT INTO ts VALUES (1),(2)",
            "BEGIN; INSERT INTO ts VALUES (5); TRUNCATE ts RESTART IDENTITY; INSERT INTO ts DEFAULT VALUES; COMMIT",
        ],
        "SELECT 'p', k FROM tpar UNION ALL SELECT 'c', x FROM tchi UNION ALL SELECT 's', n FROM ts",
    )
    .await;
}

#[tokio::test]
async fn tables_without_columns_and_without_a_key_take_inserts() {
    same_content(
        "CREATE TABLE z(); CREATE TABLE nokey(a int, b int)",
        &[
            "INSERT INTO z DEFAULT VALUES",
            "INSERT INTO z DEFAULT VALUES",
            "INSERT INTO nokey VALUES (1,1),(1,1),(NULL,2)",
        ],
        "SELECT count(*)::text FROM z UNION ALL SELECT concat(a, b) FROM nokey",
    )
    .await;
}

#[tokio::test]
async fn a_partitioned_target_takes_changes_through_its_root() {
    let mut stage = Stage::with_parts(
        "CREATE TABLE v(a int PRIMARY KEY, b text); CREATE TABLE w(a int, b text); ALTER TABLE w REPLICA IDENTITY FULL",
        "CREATE TABLE v(a int PRIMARY KEY, b text) PARTITION BY RANGE (a); \
         CREATE TABLE v1 PARTITION OF v FOR VALUES FROM (0) TO (10); CREATE TABLE v2 PARTITION OF v FOR VALUES FROM (10) TO (99); \
         CREATE TABLE w(a int, b text) PARTITION BY LIST (a); \
         CREATE TABLE w1 PARTITION OF w FOR VALUES IN (1); CREATE TABLE w2 PARTITION OF w DEFAULT",
        "",
        1 << 20,
        |_| (),
    )
    .await;
    stage.run("INSERT INTO v VALUES (1,'p'),(15,'q'); INSERT INTO w VALUES (1,'x'),(1,'x'),(2,'x')").await;
    stage.run("UPDATE v SET a = 12 WHERE a = 1; UPDATE w SET a = 2 WHERE ctid = '(0,1)'; DELETE FROM w WHERE a = 1").await;
    stage.apply_all().await;
    stage.assert_equal("SELECT * FROM v UNION ALL SELECT * FROM w").await;
}

#[tokio::test]
async fn a_large_transaction_arrives_part_by_part_without_its_rolled_back_changes() {
    let both = "CREATE TABLE t(k int PRIMARY KEY, v text)";
    let mut stage = Stage::with_parts(both, both, "", 4096, |_| ()).await;
    stage
        .run(
            "BEGIN; INSERT INTO t SELECT g, repeat('x', 20) FROM generate_series(1, 3000) g; SAVEPOINT s; \
             DELETE FROM t; ROLLBACK TO s; UPDATE t SET v = 'y' WHERE k % 2 = 0; DELETE FROM t WHERE k % 5 = 0; COMMIT",
        )
        .await;
    stage.apply_all().await;
    stage.assert_equal("SELECT * FROM t").await;
}

#[tokio::test]
async fn logical_messages_pass_without_effect() {
    let mut stage = Stage::new("CREATE TABLE t(k int PRIMARY KEY)").await;
    stage
        .run("BEGIN; SELECT pg_logical_emit_message(true, 'x', 'y'); INSERT INTO t VALUES (1); COMMIT")
        .await;
    stage.run("SELECT pg_logical_emit_message(true, 'x', 'only')").await;
    stage.apply_all().await;
    stage.assert_equal("SELECT * FROM t").await;
}

#[tokio::test]
async fn the_checkpoint_moves_with_the_changes_and_a_check_leaves_nothing() {
    let mut stage = Stage::new("CREATE TABLE t(k int PRIMARY KEY)").await;
    stage.run("INSERT INTO t VALUES (1)").await;
    let transactions = stage.received().await;
    let group = stage.group(&transactions);
    assert!(matches!(stage.apply(&group, Applying::Check).await, ApplyOutcome::Applied));
    assert!(stage.at_target("SELECT * FROM t").await.is_empty());
    assert!(matches!(stage.apply(&group, Applying::SetBased).await, ApplyOutcome::Applied));
    let position = stage.applied.position.to_string();
    let row = stage.at_target("SELECT applied_position, digest FROM trellara.checkpoint").await;
    assert_eq!(row, [format!("({position},{})", transactions[0].digest())]);
}

#[tokio::test]
async fn a_row_that_is_missing_is_found_change_by_change_and_named() {
    let mut stage = Stage::new("CREATE TABLE t(k int PRIMARY KEY, v int)").await;
    stage.run("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)").await;
    stage.apply_all().await;
    stage.target.batch_execute("DELETE FROM t WHERE k = 2").await.unwrap();
    stage.run("UPDATE t SET v = v + 1").await;
    let (at, failure) = stage.first_failure().await.unwrap();
    assert_eq!(at, 0);
    assert_failure(&failure, Class::RowData, Code::RowMissing);
    assert_eq!(failure.place, trellara_actors::failure::Place::Change(1));
    let image = failure.evidence.unwrap().image.unwrap();
    assert_eq!(image.key, [("k".to_owned(), trellara_storage::records::ColumnValue::Text("2".into()))]);
}

#[tokio::test]
async fn policies_pass_over_a_missing_row_and_overwrite_a_duplicate_and_record_both() {
    let mut stage = Stage::with("CREATE TABLE t(k int PRIMARY KEY, v int)", "", |settings| {
        settings.target.on_missing_row = RowPolicy::Record;
        settings.target.on_duplicate = RowPolicy::Record;
    })
    .await;
    stage.target.batch_execute("INSERT INTO t VALUES (2, 99)").await.unwrap();
    stage.run("INSERT INTO t VALUES (1, 1), (2, 2); UPDATE t SET v = v + 1").await;
    stage.target.batch_execute("CREATE TABLE gone(k int)").await.unwrap();
    assert!(stage.first_failure().await.is_none());
    stage.target.batch_execute("DELETE FROM t WHERE k = 1").await.unwrap();
    stage.run("UPDATE t SET v = 50").await;
    assert!(stage.first_failure().await.is_none());
    assert_eq!(stage.at_target("SELECT * FROM t").await, ["(2,50)"]);
    assert_eq!(
        stage.at_target("SELECT outcome, change, row_key FROM trellara.transaction_outcomes").await,
        [r#"(row_missing_skipped,1,"{""k"":""1""}")"#, r#"(row_overwritten,2,"{""k"":""2""}")"#]
    );
}

/// T036: in a replica session PostgreSQL does not enforce a deferrable key; its values are counted.
#[tokio::test]
async fn a_deferrable_key_may_be_broken_inside_a_transaction_but_not_at_its_end() {
    let both = "CREATE TABLE sw(k int, v text, CONSTRAINT sw_pk PRIMARY KEY (k) DEFERRABLE INITIALLY DEFERRED); \
                ALTER TABLE sw REPLICA IDENTITY FULL";
    same_content(
        both,
        &[
            "INSERT INTO sw VALUES (1,'a'),(2,'b'),(3,'c')",
            "UPDATE sw SET k = 4 - k",
            "UPDATE sw SET k = k + 1",
        ],
        "SELECT * FROM sw",
    )
    .await;
    let mut stage = Stage::new(both).await;
    stage.target.batch_execute("INSERT INTO sw VALUES (7, 'own')").await.unwrap();
    stage.run("INSERT INTO sw VALUES (1, 'a')").await;
    stage.run("INSERT INTO sw VALUES (7, 'b')").await;
    stage.run("INSERT INTO sw VALUES (8, 'c')").await;
    let (at, failure) = stage.first_failure().await.unwrap();
    assert_eq!(at, 1);
    assert_failure(&failure, Class::RowData, Code::ConstraintViolation);
    assert_eq!(failure.detail.constraint.as_deref(), Some("sw_pk"));
}

#[tokio::test]
async fn enforced_foreign_keys_hold_and_skipped_ones_do_not() {
    let both = "CREATE TABLE p(k int PRIMARY KEY); CREATE TABLE c(x int PRIMARY KEY, k int)";
    let foreign_key =
        "ALTER TABLE c ADD CONSTRAINT c_k FOREIGN KEY (k) REFERENCES p DEFERRABLE INITIALLY DEFERRED";
    let mut stage = Stage::with(both, foreign_key, |settings| {
        settings.target.triggers_and_foreign_keys = TriggerPolicy::Enforce;
    })
    .await;
    stage.run("BEGIN; INSERT INTO c VALUES (1, 1); INSERT INTO p VALUES (1); COMMIT").await;
    stage.run("INSERT INTO c VALUES (2, 77)").await;
    let (at, failure) = stage.first_failure().await.unwrap();
    assert_eq!(at, 1);
    assert_failure(&failure, Class::RowData, Code::ConstraintViolation);
    assert_eq!(failure.detail.constraint.as_deref(), Some("c_k"));

    let mut stage = Stage::with(both, foreign_key, |_| ()).await;
    stage.run("INSERT INTO c VALUES (2, 77)").await;
    stage.apply_all().await;
    stage.assert_equal("SELECT * FROM c").await;
}
