#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::path::Path;

use trellara_actors::failure::Code;
use trellara_api::repair::{BlockageKind, StepKind};
use trellara_storage::records::{ChangeImage, ColumnValue, FailureDetail, QuarantineState};
use trellara_storage::{FlowId, Incarnation, Lsn, Timestamp, TransactionDigest, TransactionId, Xid};

use super::*;
use crate::config::{Overrides, load};

const AT: Time = Time::from_unix_micros(1_764_590_400_000_000);

fn settings() -> FlowSettings {
    let text = r#"
config_version: 1
instance: retail-west
data_dir: ./data
flows:
  - source: { id: store-0001, url: "postgresql://trellara@store1/pos" }
    dataset: { id: retail-sales, tables: [public.sales, public.payments] }
    target: { url: "postgresql://trellara@hub:6432/retail", schema: "{source}" }
"#;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trellara.yml");
    std::fs::write(&path, text).unwrap();
    load(&path, &Overrides::default()).unwrap().flows.remove(0)
}

fn desk() -> Desk<'static> {
    Desk { config: Path::new("/etc/trellara/trellara.yml"), host: "engine1" }
}

fn condition(phase: Phase, code: Option<Code>, minutes: i64) -> Condition {
    Condition {
        phase,
        since: Time::from_unix_micros(AT.unix_micros() - minutes * 60_000_000),
        cause: format!("{phase} for a reason"),
        side: None,
        class: None,
        code: code.map(|code| code.to_string()),
        sqlstate: None,
        constraint: None,
        message: None,
        evidence: None,
        next: None,
    }
}

fn text(column: &str, value: &str) -> (String, ColumnValue) {
    (column.to_owned(), ColumnValue::Text(value.to_owned()))
}

fn record(id: &str, class: &str, code: Code) -> QuarantineRecord {
    QuarantineRecord {
        id: id.to_owned(),
        transaction: TransactionId {
            flow: FlowId::new(1),
            incarnation: Incarnation::FIRST,
            commit_lsn: Lsn::new(0x16B_3748),
            xid: Xid::new(7_001),
        },
        digest: TransactionDigest::new([0xAB; 16]),
        end_lsn: Lsn::new(0x16B_3790),
        commit_time: Timestamp::from_unix_micros(AT.unix_micros() - 61_000_000),
        at: Timestamp::from_unix_micros(AT.unix_micros() - 60_000_000),
        state: QuarantineState::Open,
        failure: FailureDetail {
            class: class.to_owned(),
            code: code.to_string(),
            message: "text of the server with 'secret value'".to_owned(),
            ..FailureDetail::default()
        },
        change: Some(2),
        changes: 3,
        image: Some(ChangeImage {
            operation: "insert".to_owned(),
            schema: "public".to_owned(),
            table: "sales".to_owned(),
            key: vec![text("id", "42")],
            old: Vec::new(),
            new: vec![
                text("id", "42"),
                text("note", "it's $5"),
                ("paid".to_owned(), ColumnValue::Null),
                ("scan".to_owned(), ColumnValue::UnchangedToast),
            ],
        }),
        conflicting_row: None,
        source_relation: None,
        target_relation: None,
        checkpoint: Lsn::new(0x16B_3000),
        engine_version: "0.1.0".to_owned(),
        source_version: None,
        target_version: None,
        attempts: Vec::new(),
        resolution: None,
    }
}

/// One record for each kind, and for each way to mend a constraint violation.
fn records() -> Vec<QuarantineRecord> {
    let violation = |id: &str, sqlstate: &str| {
        let mut record = record(id, "row_data", Code::ConstraintViolation);
        record.failure.sqlstate = Some(sqlstate.to_owned());
        record.failure.constraint = Some("sales_rule".to_owned());
        record
    };
    let mut unique = violation("Q-0001", "23505");
    unique.conflicting_row = Some(vec![text("id", "41"), text("note", "it's $5")]);
    let mut null = violation("Q-0003", "23502");
    null.failure.column = Some("paid".to_owned());
    let mut duplicate = record("Q-0005", "row_data", Code::RowDuplicate);
    duplicate.conflicting_row = Some(vec![text("id", "42"), text("note", "theirs")]);
    let mut schema = record("Q-0006", "schema_contract", Code::ColumnMissing);
    schema.failure.remedy = vec!["ALTER TABLE \"store-0001\".\"sales\" ADD COLUMN \"tier\" text".to_owned()];
    vec![
        unique,
        violation("Q-0002", "23514"),
        null,
        record("Q-0004", "row_data", Code::RowMissing),
        duplicate,
        schema,
        record("Q-0007", "row_data", Code::RowDataInvalid),
        record("Q-0008", "integrity", Code::DigestMismatch),
        record("Q-0009", "unknown", Code::Unclassified),
    ]
}

fn conditions() -> Vec<Condition> {
    let mut conditions = vec![
        condition(Phase::Failed, Some(Code::KeepsDying), 9),
        condition(Phase::Fenced, Some(Code::Fenced), 8),
        condition(Phase::Detached, None, 7),
        condition(Phase::LineageLost, Some(Code::SlotMissing), 6),
        condition(Phase::Quarantined, Some(Code::RowMissing), 5),
        condition(Phase::Unavailable, Some(Code::AuthenticationFailed), 4),
        condition(Phase::LogFull, Some(Code::LogFull), 3),
        condition(Phase::Paused, None, 120),
        condition(Phase::Retrying, Some(Code::SlotInUse), 2),
    ];
    conditions[5].side = Some("target".to_owned());
    conditions
}

fn every_kind() -> Plan {
    let settings = settings();
    let view = View {
        flow: &settings.name,
        conditions: &conditions(),
        open: &records(),
        settings: Some(&settings),
        durable_lsn: Some("0/16B3748"),
    };
    plan(&[view], desk(), AT)
}

/// The command line's tests parse every command of this snapshot with the real argument parser.
#[test]
fn every_kind_of_blockage_has_its_steps() {
    insta::assert_json_snapshot!("every_kind", every_kind());
}

#[test]
fn every_kind_but_the_unknown_one_is_in_the_samples() {
    let plan = every_kind();
    let missing: Vec<BlockageKind> = [
        BlockageKind::LineageLost,
        BlockageKind::LogFull,
        BlockageKind::Failed,
        BlockageKind::Fenced,
        BlockageKind::Integrity,
        BlockageKind::ConstraintViolation,
        BlockageKind::RowMissing,
        BlockageKind::RowDuplicate,
        BlockageKind::RowData,
        BlockageKind::SchemaContract,
        BlockageKind::Unclassified,
        BlockageKind::SlotInUse,
        BlockageKind::Unavailable,
        BlockageKind::Detached,
        BlockageKind::PausedLong,
    ]
    .into_iter()
    .filter(|kind| !plan.blockages.iter().any(|blockage| blockage.kind == *kind))
    .collect();
    assert_eq!(missing, []);
}

#[test]
fn blockages_come_worst_first_and_steps_before_the_first_or_discard_nothing() {
    let plan = every_kind();
    let kinds: Vec<BlockageKind> = plan.blockages.iter().map(|blockage| blockage.kind).collect();
    assert!(kinds.is_sorted(), "{kinds:?}");
    for blockage in &plan.blockages {
        let first_way = blockage.steps.iter().take_while(|step| !step.title.starts_with("or"));
        for step in first_way {
            assert!(!step.text.contains("discard"), "{}", step.text);
        }
    }
}

#[test]
fn reasons_carry_no_row_values_and_no_texts_of_the_server() {
    for blockage in every_kind().blockages {
        for text in [&blockage.what, &blockage.why] {
            assert!(!text.contains("secret") && !text.contains("42"), "{text}");
        }
    }
}

#[test]
fn the_same_state_has_the_same_plan_whenever_it_is_asked_for() {
    let settings = settings();
    let records = records();
    let view = View {
        flow: &settings.name,
        conditions: &[],
        open: &records[..1],
        settings: Some(&settings),
        durable_lsn: None,
    };
    let later = Time::from_unix_micros(AT.unix_micros() + 1);
    let (now, then) = (plan(&[view], desk(), AT), plan(&[view], desk(), later));
    assert_eq!((&now.id, &now.digest), (&then.id, &then.digest));
    let other = plan(&[View { open: &records[1..2], ..view }], desk(), AT);
    assert_ne!(other.digest, now.digest);
}

#[test]
fn commands_name_the_configuration_and_statements_name_the_server() {
    for step in every_kind().blockages.iter().flat_map(|blockage| &blockage.steps) {
        match step.kind {
            StepKind::Command => {
                assert!(step.text.ends_with(" --config /etc/trellara/trellara.yml"), "{}", step.text);
                assert_eq!(step.host, "engine1");
            }
            StepKind::Sql => {
                assert!(step.text.starts_with("psql -X -v ON_ERROR_STOP=1 postgresql://"), "{}", step.text);
                assert!(["store1", "hub"].contains(&step.host.as_str()), "{}", step.host);
            }
        }
    }
}

#[test]
fn a_healthy_flow_has_no_blockage_and_no_next_command() {
    let settings = settings();
    let healthy = [condition(Phase::Streaming, None, 5)];
    let view = View {
        flow: &settings.name,
        conditions: &healthy,
        open: &[],
        settings: Some(&settings),
        durable_lsn: None,
    };
    assert_eq!(plan(&[view], desk(), AT).blockages, []);
    assert_eq!(next(&settings.name, Phase::Streaming, desk()), None);
}
