//! One transaction that cannot be applied is named exactly, and nothing else is blamed.

use trellara_actors::failure::{Class, Code, Endpoint, Place};
use trellara_actors::ports::{ApplyOutcome, Applying};
use trellara_engine::settings::Password;
use trellara_storage::records::ColumnValue;

use super::stage::{Stage, assert_failure};

fn text(value: &str) -> ColumnValue {
    ColumnValue::Text(value.into())
}

#[tokio::test]
async fn one_poisoned_transaction_among_500_is_found_with_its_change_and_the_row_in_its_way() {
    let mut stage = Stage::with(
        "CREATE TABLE t(k int PRIMARY KEY, email text)",
        "ALTER TABLE t ADD CONSTRAINT t_email UNIQUE (email); INSERT INTO t VALUES (-1, 'taken@x')",
        |_| (),
    )
    .await;
    for k in 0..500 {
        let email = if k == 321 { "taken@x".to_owned() } else { format!("{k}@x") };
        stage.run(&format!("INSERT INTO t VALUES ({k}, '{email}')")).await;
    }
    let (at, failure) = stage.first_failure().await.unwrap();
    assert_eq!(at, 321);
    assert_failure(&failure, Class::RowData, Code::ConstraintViolation);
    assert_eq!(failure.place, Place::Change(0));
    assert_eq!(failure.detail.constraint.as_deref(), Some("t_email"));
    assert!(!failure.summary.contains("taken"), "{}", failure.summary);
    let evidence = failure.evidence.unwrap();
    let image = evidence.image.unwrap();
    assert_eq!(image.operation, "insert");
    assert_eq!(image.key, [("k".to_owned(), text("321"))]);
    assert_eq!(image.new[1], ("email".to_owned(), text("taken@x")));
    assert_eq!(
        evidence.conflicting_row.unwrap(),
        [("k".to_owned(), text("-1")), ("email".to_owned(), text("taken@x"))]
    );
    assert!(evidence.source_relation.is_some() && evidence.target_relation.is_some());
    assert!(evidence.target_version.unwrap().starts_with(char::is_numeric));
    // Those before it are applied, itself and those after it are not.
    assert_eq!(stage.at_target("SELECT count(*) FROM t WHERE k >= 0").await, ["(321)"]);
}

#[tokio::test]
async fn a_duplicate_of_the_row_itself_is_told_from_another_constraint() {
    let mut stage =
        Stage::with("CREATE TABLE t(k int PRIMARY KEY)", "INSERT INTO t VALUES (2)", |_| ()).await;
    stage.run("INSERT INTO t VALUES (1), (2)").await;
    let (_, failure) = stage.first_failure().await.unwrap();
    assert_failure(&failure, Class::RowData, Code::RowDuplicate);
    assert_eq!(failure.place, Place::Change(1));
}

#[tokio::test]
async fn a_deferred_constraint_fails_the_transaction_that_broke_it() {
    let trigger = "CREATE FUNCTION dff() RETURNS trigger LANGUAGE plpgsql AS \
        'BEGIN IF NEW.v = ''bad'' THEN RAISE EXCEPTION ''late no''; END IF; RETURN NULL; END'; \
        CREATE CONSTRAINT TRIGGER late AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED \
        FOR EACH ROW EXECUTE FUNCTION dff(); ALTER TABLE t ENABLE ALWAYS TRIGGER late";
    let mut stage = Stage::with("CREATE TABLE t(k int PRIMARY KEY, v text)", trigger, |_| ()).await;
    stage.run("INSERT INTO t VALUES (1, 'good')").await;
    stage.run("INSERT INTO t VALUES (2, 'bad'), (3, 'good')").await;
    stage.run("INSERT INTO t VALUES (4, 'good')").await;
    let (at, failure) = stage.first_failure().await.unwrap();
    assert_eq!(at, 1);
    assert_failure(&failure, Class::RowData, Code::TargetTriggerRaised);
    // The one after the last change: no single row is to blame.
    assert_eq!(failure.place, Place::Change(2));
    assert_eq!(stage.at_target("SELECT k FROM t").await, ["(1)"]);
}

#[tokio::test]
async fn a_target_trigger_that_raises_names_the_change_that_it_raised_for() {
    let trigger = "CREATE FUNCTION rf() RETURNS trigger LANGUAGE plpgsql AS \
        'BEGIN IF NEW.k = 3 THEN RAISE EXCEPTION ''no three''; END IF; RETURN NEW; END'; \
        CREATE TRIGGER r BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION rf(); ALTER TABLE t ENABLE ALWAYS TRIGGER r";
    let mut stage = Stage::with("CREATE TABLE t(k int PRIMARY KEY)", trigger, |_| ()).await;
    stage.run("INSERT INTO t VALUES (1), (2), (3), (4)").await;
    let (_, failure) = stage.first_failure().await.unwrap();
    assert_failure(&failure, Class::RowData, Code::TargetTriggerRaised);
    assert_eq!(failure.place, Place::Change(2));
}

/// P029.
#[tokio::test]
async fn a_target_trigger_that_swallows_a_row_is_a_finding_for_every_operation() {
    let trigger = "CREATE FUNCTION sf() RETURNS trigger LANGUAGE plpgsql AS \
        'BEGIN IF TG_OP = ''DELETE'' THEN RETURN NULL; END IF; IF NEW.b < 0 THEN RETURN NULL; END IF; RETURN NEW; END'; \
        CREATE TRIGGER s BEFORE INSERT OR UPDATE OR DELETE ON t FOR EACH ROW EXECUTE FUNCTION sf(); \
        ALTER TABLE t ENABLE REPLICA TRIGGER s";
    for change in
        ["INSERT INTO t VALUES (9, -1)", "UPDATE t SET b = -1 WHERE a = 1", "DELETE FROM t WHERE a = 1"]
    {
        let mut stage = Stage::with("CREATE TABLE t(a int PRIMARY KEY, b int)", trigger, |_| ()).await;
        stage.run("INSERT INTO t VALUES (1, 1)").await;
        stage.apply_all().await;
        stage.run(change).await;
        let (_, failure) = stage.first_failure().await.unwrap();
        assert_failure(&failure, Class::RowData, Code::RowSuppressed);
    }
}

/// P027: ordinary triggers stay silent.
#[tokio::test]
async fn ordinary_triggers_of_the_target_stay_silent() {
    let trigger = "CREATE TABLE tlog(n int); CREATE FUNCTION tf() RETURNS trigger LANGUAGE plpgsql AS \
        'BEGIN INSERT INTO public.tlog VALUES (NEW.a); RETURN NEW; END'; \
        CREATE TRIGGER t AFTER INSERT ON tt FOR EACH ROW EXECUTE FUNCTION tf()";
    let mut stage = Stage::with("CREATE TABLE tt(a int PRIMARY KEY)", trigger, |_| ()).await;
    stage.run("INSERT INTO tt VALUES (1), (2)").await;
    stage.apply_all().await;
    assert!(stage.at_target("SELECT * FROM tlog").await.is_empty());
}

#[tokio::test]
async fn a_revoked_grant_waits_for_the_endpoint_and_names_the_grant() {
    let mut stage = Stage::with(
        "CREATE TABLE t(k int PRIMARY KEY)",
        "CREATE ROLE applier_a LOGIN; GRANT SET ON PARAMETER session_replication_role TO applier_a; \
         GRANT INSERT, SELECT, UPDATE, DELETE ON t TO applier_a; \
         GRANT CREATE ON DATABASE postgres TO applier_a; \
         DO $$BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO applier_a', current_database()); END$$",
        |settings| {
            settings.target.server.user = "applier_a".into();
            settings.target.server.password = Password::None;
        },
    )
    .await;
    stage.run("INSERT INTO t VALUES (1)").await;
    stage.apply_all().await;
    stage.target.batch_execute("REVOKE INSERT ON t FROM applier_a").await.unwrap();
    stage.run("INSERT INTO t VALUES (2)").await;
    let (_, failure) = stage.first_failure().await.unwrap();
    assert_failure(&failure, Class::Endpoint(Endpoint::Target), Code::PermissionDenied);
    for statement in &failure.detail.remedy {
        stage.target.batch_execute(statement).await.unwrap();
    }
    stage.run("INSERT INTO t VALUES (3)").await;
    stage
        .target
        .batch_execute("REVOKE SET ON PARAMETER session_replication_role FROM applier_a")
        .await
        .unwrap();
    let transactions = stage.received().await;
    let group = stage.group(&transactions);
    let ApplyOutcome::Failed { member, failure } = stage.apply(&group, Applying::SetBased).await else {
        panic!("the session's role cannot be set")
    };
    assert_eq!((member, failure.place), (None, Place::SessionSetup));
    assert_failure(&failure, Class::Endpoint(Endpoint::Target), Code::PermissionDenied);
    assert_eq!(failure.detail.remedy, ["GRANT SET ON PARAMETER session_replication_role TO \"applier_a\";"]);
    stage.target.batch_execute(&failure.detail.remedy[0]).await.unwrap();
}

#[tokio::test]
async fn a_read_only_target_waits_for_the_endpoint() {
    let mut stage = Stage::new("CREATE TABLE t(k int PRIMARY KEY)").await;
    stage.run("INSERT INTO t VALUES (1)").await;
    let trigger = "CREATE FUNCTION trellara.ro() RETURNS trigger LANGUAGE plpgsql AS \
        'BEGIN RAISE read_only_sql_transaction; END'; CREATE TRIGGER ro BEFORE UPDATE ON trellara.checkpoint \
        FOR EACH ROW EXECUTE FUNCTION trellara.ro(); ALTER TABLE trellara.checkpoint ENABLE ALWAYS TRIGGER ro";
    stage.target.batch_execute(trigger).await.unwrap();
    let transactions = stage.received().await;
    let group = stage.group(&transactions);
    let ApplyOutcome::Failed { member, failure } = stage.apply(&group, Applying::SetBased).await else {
        panic!("the target cannot be written")
    };
    assert_eq!(member, None);
    assert_failure(&failure, Class::Endpoint(Endpoint::Target), Code::ReadOnly);
    stage.target.batch_execute("DROP TRIGGER ro ON trellara.checkpoint").await.unwrap();
    assert!(matches!(stage.apply(&group, Applying::SetBased).await, ApplyOutcome::Applied));
}

#[tokio::test]
async fn a_lock_that_is_held_too_long_is_tried_again_and_truncate_waits_less() {
    let mut stage = Stage::new("CREATE TABLE t(k int PRIMARY KEY)").await;
    stage.run("TRUNCATE t").await;
    stage.target.batch_execute("BEGIN; LOCK TABLE t IN ACCESS SHARE MODE").await.unwrap();
    let transactions = stage.received().await;
    let group = stage.group(&transactions);
    let ApplyOutcome::Failed { failure, .. } = stage.apply(&group, Applying::SetBased).await else {
        panic!("the table is locked")
    };
    assert_failure(&failure, Class::Transient, Code::Contention);
    stage.target.batch_execute("COMMIT").await.unwrap();
    assert!(matches!(stage.apply(&group, Applying::SetBased).await, ApplyOutcome::Applied));
}
