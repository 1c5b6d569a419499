//! The SQL of repair plans, run as printed: by a shell, with `psql`, against real tables with awkward names
//! and values.

use std::path::Path;
use std::process::Command;

use trellara_actors::failure::Code;
use trellara_api::Time;
use trellara_api::flow::{Condition, Phase};
use trellara_api::repair::{Blockage, Step, StepKind};
use trellara_engine::repair::{Desk, View, plan};
use trellara_engine::settings::FlowSettings;
use trellara_storage::records::{ChangeImage, ColumnValue, FailureDetail, QuarantineRecord, QuarantineState};
use trellara_storage::{FlowId, Incarnation, Lsn, Timestamp, TransactionDigest, TransactionId, Xid};

use crate::cluster::Cluster;
use crate::settings::flow;

const BINARIES: &str = "/usr/lib/postgresql/15/bin";
const AWKWARD: &str = "it's $5 \"quoted\" \\ `x` é\nnext";
const TABLE: &str = r#"
    CREATE SCHEMA "My Shop";
    CREATE TABLE "My Shop"."Sales" (
        id int PRIMARY KEY, "Note" text UNIQUE, paid boolean NOT NULL, CONSTRAINT "The rule" CHECK (id < 100));
    INSERT INTO "My Shop"."Sales" VALUES (1, 'first', true);
"#;

fn text(column: &str, value: &str) -> (String, ColumnValue) {
    (column.to_owned(), ColumnValue::Text(value.to_owned()))
}

fn record(code: Code, sqlstate: &str) -> QuarantineRecord {
    QuarantineRecord {
        id: "Q-7F3K".to_owned(),
        transaction: TransactionId {
            flow: FlowId::new(1),
            incarnation: Incarnation::FIRST,
            commit_lsn: Lsn::new(0x16B_3748),
            xid: Xid::new(7_001),
        },
        digest: TransactionDigest::new([0xAB; 16]),
        end_lsn: Lsn::new(0x16B_3790),
        commit_time: Timestamp::default(),
        at: Timestamp::default(),
        state: QuarantineState::Open,
        failure: FailureDetail {
            class: "row_data".to_owned(),
            code: code.to_string(),
            sqlstate: Some(sqlstate.to_owned()),
            ..FailureDetail::default()
        },
        change: Some(1),
        changes: 1,
        image: Some(ChangeImage {
            operation: "insert".to_owned(),
            schema: "public".to_owned(),
            table: "Sales".to_owned(),
            key: vec![text("id", "2")],
            old: Vec::new(),
            new: vec![text("id", "2"), text("Note", AWKWARD), text("paid", "t")],
        }),
        conflicting_row: None,
        source_relation: None,
        target_relation: None,
        checkpoint: Lsn::ZERO,
        engine_version: "0.1.0".to_owned(),
        source_version: None,
        target_version: None,
        attempts: Vec::new(),
        resolution: None,
    }
}

/// A database with the table, and the plan's settings for it.
async fn target() -> (FlowSettings, tokio_postgres::Client) {
    let cluster = Cluster::shared();
    let database = cluster.database("repair").await;
    let client = cluster.client(&database).await;
    client.batch_execute(TABLE).await.unwrap();
    let mut settings = flow(&cluster.server(&database), &["Sales"]);
    settings.target.schema = Some("My Shop".to_owned());
    (settings, client)
}

fn blockages(settings: &FlowSettings, conditions: &[Condition], open: &[QuarantineRecord]) -> Vec<Blockage> {
    let view =
        View { flow: &settings.name, conditions, open, settings: Some(settings), durable_lsn: Some("0/1") };
    let desk = Desk { config: Path::new("/etc/trellara/trellara.yml"), host: "engine1" };
    plan(&[view], desk, Time::from_unix_micros(0)).blockages
}

fn run(line: &str) {
    let path = format!("{BINARIES}:{}", std::env::var("PATH").unwrap());
    let output = Command::new("/bin/sh").args(["-c", line]).env("PATH", path).output().unwrap();
    assert!(output.status.success(), "{line}\n{}", String::from_utf8_lossy(&output.stderr));
}

/// The statements of the first way out, in order.
fn statements(blockage: &Blockage) -> Vec<&Step> {
    let first_way = blockage.steps.iter().take_while(|step| !step.title.starts_with("or"));
    first_way.filter(|step| step.kind == StepKind::Sql).collect()
}

/// Runs them all; the statement that changed something comes back.
fn mend(settings: &FlowSettings, record: QuarantineRecord) -> Step {
    let blockages = blockages(settings, &[], &[record]);
    let [blockage] = &blockages[..] else { panic!("one blockage is expected") };
    let steps = statements(blockage);
    steps.iter().for_each(|step| run(&step.text));
    let mending = steps.into_iter().find(|step| step.changes.is_some());
    mending.cloned().unwrap_or_else(|| panic!("nothing was mended: {blockage:?}"))
}

async fn notes(client: &tokio_postgres::Client) -> Vec<String> {
    let rows = client.query(r#"SELECT "Note" FROM "My Shop"."Sales" ORDER BY id"#, &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conflicting_row_is_taken_away_and_the_undo_puts_it_back_exactly() {
    let (settings, client) = target().await;
    client.execute(r#"INSERT INTO "My Shop"."Sales" VALUES (9, $1, false)"#, &[&AWKWARD]).await.unwrap();
    let mut unique = record(Code::ConstraintViolation, "23505");
    unique.failure.constraint = Some("Sales_Note_key".to_owned());
    unique.conflicting_row = Some(vec![text("id", "9"), text("Note", AWKWARD), text("paid", "f")]);
    let mending = mend(&settings, unique);
    assert_eq!(notes(&client).await, ["first"]);
    run(&mending.undo.unwrap());
    assert_eq!(notes(&client).await, ["first", AWKWARD]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_duplicate_row_is_taken_away_by_its_key() {
    let (settings, client) = target().await;
    client.execute(r#"INSERT INTO "My Shop"."Sales" VALUES (2, 'theirs', true)"#, &[]).await.unwrap();
    mend(&settings, record(Code::RowDuplicate, "23505"));
    assert_eq!(notes(&client).await, ["first"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_row_is_put_there_from_the_evidence_and_the_undo_takes_it_away() {
    let (settings, client) = target().await;
    let mending = mend(&settings, record(Code::RowMissing, "02000"));
    assert_eq!(notes(&client).await, ["first", AWKWARD]);
    run(&mending.undo.unwrap());
    assert_eq!(notes(&client).await, ["first"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_of_the_target_alone_are_dropped() {
    let (settings, client) = target().await;
    let mut rule = record(Code::ConstraintViolation, "23514");
    rule.failure.constraint = Some("The rule".to_owned());
    mend(&settings, rule);
    let mut null = record(Code::ConstraintViolation, "23502");
    null.failure.column = Some("paid".to_owned());
    mend(&settings, null);
    client.batch_execute(r#"INSERT INTO "My Shop"."Sales" VALUES (100, 'third', NULL)"#).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_about_slots_and_servers_are_valid() {
    let (settings, _client) = target().await;
    let condition = |phase, code: Code| Condition {
        phase,
        since: Time::from_unix_micros(0),
        cause: "a reason".to_owned(),
        side: Some("target".to_owned()),
        class: None,
        code: Some(code.to_string()),
        sqlstate: None,
        constraint: None,
        message: None,
        evidence: None,
        next: None,
    };
    let conditions = [
        condition(Phase::LineageLost, Code::SlotMissing),
        condition(Phase::LogFull, Code::LogFull),
        condition(Phase::Retrying, Code::SlotInUse),
        condition(Phase::Unavailable, Code::ReadOnly),
    ];
    let blockages = blockages(&settings, &conditions, &[]);
    assert_eq!(blockages.len(), conditions.len());
    for blockage in &blockages {
        let statements = statements(blockage);
        assert!(!statements.is_empty(), "{} has no statement", blockage.kind);
        statements.iter().for_each(|step| run(&step.text));
    }
}
