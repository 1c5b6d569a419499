//! Whole answers as an operator reads them.

use std::collections::BTreeMap;

use trellara_api::config::{FieldChange, FlowChange, Reload};
use trellara_api::flow::{
    Beginning, Condition, Event, FlowDetail, FlowLine, FlowOutcome, FlowOutcomes, LogUse, Phase, Positions,
    Removal, RemovalState, RemovalStep, Side,
};
use trellara_api::quarantine::{
    Attempt, Cell, CellValue, Change, FailureText, QuarantineDetail, QuarantineLine, QuarantineList,
    QuarantineState,
};
use trellara_api::repair::Plan;
use trellara_api::status::{Check, Diagnosis, Diagnostics, FlowReport, Report, StoreUse, Summary, Verdict};
use trellara_api::stream::{Location, LogPlace};
use trellara_api::{Known, Problem, RequestCode, Time, path};

use super::engine::Engine;

const FLOW: &str = "store-0001:retail";
const NEXT: &str = "trellara repair plan --flow store-0001:retail --config /etc/trellara/trellara.yml";

fn now() -> Time {
    Time::from_unix_micros(1_764_590_400_000_000)
}

fn ago(seconds: i64) -> Time {
    Time::from_unix_micros(now().unix_micros() - seconds * 1_000_000)
}

fn line(phase: Phase) -> FlowLine {
    let wrong = phase != Phase::Streaming;
    FlowLine {
        flow: FLOW.to_owned(),
        labels: BTreeMap::from([("region".to_owned(), "west".to_owned())]),
        phase,
        since: ago(725),
        code: wrong.then(|| "TRL-0102".to_owned()),
        cause: wrong.then(|| "transaction at 0/16B3748 cannot be applied".to_owned()),
        lag_bytes: Known::Value(if wrong { 1_300_000 } else { 0 }),
        lag_seconds: Known::Value(if wrong { 731.0 } else { 0.0 }),
        open_quarantine: u64::from(wrong),
        next: wrong.then(|| NEXT.to_owned()),
    }
}

fn healthy(flow: &str) -> FlowLine {
    FlowLine { flow: flow.to_owned(), ..line(Phase::Streaming) }
}

fn condition() -> Condition {
    Condition {
        phase: Phase::Quarantined,
        since: ago(725),
        cause: "transaction at 0/16B3748 cannot be applied".to_owned(),
        side: None,
        class: Some("row_data".to_owned()),
        code: Some("TRL-0102".to_owned()),
        sqlstate: Some("23505".to_owned()),
        constraint: Some("sales_pkey".to_owned()),
        message: Some("duplicate key value violates unique constraint \"sales_pkey\"".to_owned()),
        evidence: Some("Q-7F3K".to_owned()),
        next: Some(NEXT.to_owned()),
    }
}

fn cell(column: &str, value: &str) -> Cell {
    Cell { column: column.to_owned(), value: CellValue::Text(value.to_owned()) }
}

fn record() -> QuarantineLine {
    QuarantineLine {
        id: "Q-7F3K".to_owned(),
        flow: FLOW.to_owned(),
        state: QuarantineState::Open,
        at: ago(725),
        class: "row_data".to_owned(),
        code: "TRL-0102".to_owned(),
        title: "constraint violation at the target".to_owned(),
        sqlstate: Some("23505".to_owned()),
        constraint: Some("sales_pkey".to_owned()),
        table: Some("store-0001.sales".to_owned()),
        column: None,
        operation: Some("insert".to_owned()),
        key: vec![cell("id", "42")],
        commit_lsn: "0/16B3748".to_owned(),
        attempts: 2,
        next: Some(NEXT.to_owned()),
    }
}

fn detail(phase: Phase) -> FlowDetail {
    let wrong = phase != Phase::Streaming;
    let side = |host: &str| {
        Known::Value(Side { address: format!("{host}:5432/retail"), seen: Known::Value(ago(2)) })
    };
    FlowDetail {
        at: now(),
        line: line(phase),
        conditions: if wrong { vec![condition()] } else { Vec::new() },
        generation: 1,
        paused: None,
        holder: None,
        source: side("store1"),
        target: side("hub"),
        slot: Known::Value("trellara_store_0001_retail".to_owned()),
        publications: vec!["trellara_retail".to_owned()],
        beginning: Known::Value(Beginning {
            incarnation: 1,
            start_lsn: "0/1500000".to_owned(),
            start_mode: "empty".to_owned(),
            started: ago(86_400),
            system_identifier: "7412345678901234567".to_owned(),
            timeline: 1,
        }),
        positions: Positions {
            captured_lsn: Known::Value("0/17F0000".to_owned()),
            durable_lsn: Known::Value("0/17F0000".to_owned()),
            applied_lsn: Known::Value("0/16B3700".to_owned()),
            applied_commit_time: Known::Value(ago(731)),
        },
        heartbeat: Known::unknown("none came back since the flow started"),
        log: Known::Value(LogUse { bytes: 1_500_000, max_bytes: 4 << 30 }),
        applied_transactions: 12_345,
        quarantine: if wrong { vec![record()] } else { Vec::new() },
        events: vec![Event {
            sequence: 9,
            at: ago(725),
            kind: "apply.quarantined".to_owned(),
            from: "streaming".to_owned(),
            to: "quarantined".to_owned(),
            cause: "constraint violation at the target".to_owned(),
            code: Some("TRL-0102".to_owned()),
            evidence: Some("Q-7F3K".to_owned()),
        }],
    }
}

/// An engine with one flow in this phase.
pub(crate) fn with_flow(phase: Phase) -> Engine {
    Engine::start().answers("/v1/flows/store-0001", &detail(phase))
}

fn shown(engine: &Engine, arguments: &[&str]) -> String {
    let ended = engine.trellara(arguments);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{arguments:?}");
    ended.stdout
}

#[test]
fn status_summary() {
    let engine = Engine::start().answers(
        path::STATUS_SUMMARY,
        &Summary {
            at: now(),
            instance: "retail-west".to_owned(),
            version: "0.1.0".to_owned(),
            started: ago(273_600),
            flows: 12,
            phases: BTreeMap::from([(Phase::Streaming, 11), (Phase::Quarantined, 1)]),
            worst: vec![line(Phase::Quarantined)],
            lag_bytes: Known::Value(1_300_000),
            lag_seconds: Known::Value(731.0),
            oldest_quarantine: Some(record()),
            open_quarantine: 1,
            store: Known::Value(StoreUse { log_bytes: 3 << 30, free_bytes: Known::Value(80 << 30) }),
            partial: vec!["evidence of hub:retail cannot be read".to_owned()],
        },
    );
    insta::assert_snapshot!(shown(&engine, &["status"]));
}

#[test]
fn status_diagnostics() {
    let engine = Engine::start().answers(
        path::STATUS_DIAGNOSTICS,
        &Diagnostics {
            at: now(),
            flows: vec![Diagnosis {
                line: line(Phase::Quarantined),
                conditions: vec![condition()],
                quarantine: vec![record()],
                log: Known::Value(LogUse { bytes: 1_500_000, max_bytes: 4 << 30 }),
            }],
            streaming: 11,
            partial: Vec::new(),
        },
    );
    insta::assert_snapshot!(shown(&engine, &["status", "--view", "diagnostics", "-l", "region=west"]));
    assert_eq!(engine.requests(), ["/v1/status/diagnostics?labels=region%3Dwest "]);
}

#[test]
fn status_report() {
    let check = |check: &str, verdict, text: &str, evidence: Option<&str>| Check {
        check: check.to_owned(),
        verdict,
        text: text.to_owned(),
        evidence: evidence.map(str::to_owned),
        at: Some(ago(40)),
    };
    let engine = Engine::start().answers(
        path::STATUS_REPORT,
        &Report {
            at: now(),
            flows: vec![FlowReport {
                flow: FLOW.to_owned(),
                phase: Phase::Quarantined,
                checks: vec![
                    check("lineage", Verdict::Verified, "source and slot are those of incarnation 1", None),
                    check("content", Verdict::MissingEvidence, "content before 0/1500000 not proven", None),
                    check("quarantine", Verdict::AtRisk, "0/16B3748 waits for a decision", Some("Q-7F3K")),
                ],
            }],
            partial: Vec::new(),
        },
    );
    insta::assert_snapshot!(shown(&engine, &["status", "--view", "report"]));
}

#[test]
fn flow_list() {
    let list = trellara_api::flow::FlowList {
        at: now(),
        flows: vec![line(Phase::Quarantined), healthy("store-0002:retail")],
        partial: Vec::new(),
    };
    let engine = Engine::start().answers(path::FLOWS, &list);
    insta::assert_snapshot!(shown(&engine, &["flow", "list"]));
}

#[test]
fn flow_show_answers_why_on_one_screen() {
    insta::assert_snapshot!(shown(&with_flow(Phase::Quarantined), &["flow", "show", "store-0001"]));
}

#[test]
fn flow_show_of_a_healthy_flow_is_short() {
    insta::assert_snapshot!(shown(&with_flow(Phase::Streaming), &["flow", "show", "store-0001"]));
}

#[test]
fn commands_show_an_outcome_for_each_flow() {
    let outcome = |flow: &str, problem| FlowOutcome {
        flow: flow.to_owned(),
        text: "paused, capture goes on".to_owned(),
        problem,
    };
    let refused = Problem::new(RequestCode::NotNow, "the flow does not run now");
    let outcomes =
        FlowOutcomes { flows: vec![outcome(FLOW, None), outcome("store-0002:retail", Some(refused))] };
    let engine = Engine::start().answers(path::PAUSE, &outcomes);
    let ended = engine.trellara(&["flow", "pause", "store-*", "--reason", "window", "--for", "2h"]);
    assert_eq!(ended.code, 1, "one was refused");
    insta::assert_snapshot!(ended.stdout);
    let expected = concat!(
        r#"/v1/pause {"select":{"flows":["store-*"],"labels":[],"all":false},"#,
        r#""capture":false,"reason":"window","for_seconds":7200}"#
    );
    assert_eq!(engine.requests(), [expected]);
}

#[test]
fn flow_remove_lists_what_is_left_with_its_sql() {
    let step = |what: &str, state, sql: Option<&str>| RemovalStep {
        what: what.to_owned(),
        state,
        sql: sql.map(str::to_owned),
        why: sql.map(|_| "connection refused".to_owned()),
    };
    let removal = Removal {
        flow: FLOW.to_owned(),
        dry_run: false,
        steps: vec![
            step(
                "replication slot trellara_store_0001_retail at store1",
                RemovalState::Left,
                Some("SELECT pg_drop_replication_slot('trellara_store_0001_retail')"),
            ),
            step("checkpoint at hub", RemovalState::Done, None),
            step("evidence and audit", RemovalState::Kept, None),
        ],
    };
    let engine = Engine::start().answers("/v1/flows/store-0001/remove", &removal);
    let ended = engine.trellara(&["flow", "remove", "store-0001"]);
    assert_eq!(ended.code, 3);
    insta::assert_snapshot!(ended.stdout);
}

#[test]
fn quarantine_list() {
    let list = QuarantineList { at: now(), records: vec![record()], partial: Vec::new() };
    let engine = Engine::start().answers(path::QUARANTINE, &list);
    insta::assert_snapshot!(shown(&engine, &["quarantine", "list"]));
}

#[test]
fn quarantine_show_holds_the_whole_evidence() {
    let failure = FailureText {
        code: "TRL-0102".to_owned(),
        sqlstate: Some("23505".to_owned()),
        message: "duplicate key value violates unique constraint \"sales_pkey\"".to_owned(),
        detail: Some("Key (id)=(42) already exists.".to_owned()),
        ..FailureText::default()
    };
    let attempt = |seconds| Attempt { at: ago(seconds), failure: failure.clone() };
    let detail = QuarantineDetail {
        line: record(),
        incarnation: 1,
        xid: 7_001,
        end_lsn: "0/16B3790".to_owned(),
        commit_time: ago(726),
        digest: "0123456789abcdef0123456789abcdef".to_owned(),
        failure: failure.clone(),
        change_number: Some(2),
        changes: 3,
        change: Some(Change {
            operation: "insert".to_owned(),
            schema: "public".to_owned(),
            table: "sales".to_owned(),
            key: vec![cell("id", "42")],
            old: Vec::new(),
            new: vec![
                cell("id", "42"),
                Cell { column: "note".to_owned(), value: CellValue::Null },
                Cell { column: "scan".to_owned(), value: CellValue::UnchangedToast },
            ],
        }),
        conflicting_row: Some(vec![cell("id", "42"), cell("note", "imported by hand")]),
        source_relation_digest: None,
        target_relation_digest: None,
        checkpoint_lsn: "0/16B3700".to_owned(),
        engine_version: "0.1.0".to_owned(),
        source_version: Some("15.18".to_owned()),
        target_version: None,
        attempt_list: vec![attempt(725), attempt(60)],
        resolution: None,
    };
    let engine = Engine::start().answers("/v1/quarantine/Q-7F3K", &detail);
    insta::assert_snapshot!(shown(&engine, &["quarantine", "show", "Q-7F3K"]));
}

#[test]
fn repair_plan_prints_every_step_as_it_is_to_be_run() {
    let samples =
        include_str!("../../engine/src/repair/snapshots/trellara_engine__repair__tests__every_kind.snap");
    let mut plan: Plan = serde_json::from_str(samples.splitn(3, "---\n").nth(2).unwrap()).unwrap();
    plan.blockages.retain(|blockage| blockage.evidence == ["Q-0001"] || blockage.code.is_none());
    let engine = Engine::start().answers(path::REPAIR_PLAN, &plan);
    let text = shown(&engine, &["repair", "plan"]);
    for step in plan.blockages.iter().flat_map(|blockage| &blockage.steps) {
        assert!(text.lines().any(|line| line.trim() == step.text), "not on a line of its own: {}", step.text);
    }
    assert_eq!(shown(&engine, &["repair-plan"]), text);
    insta::assert_snapshot!(text);
}

#[test]
fn locate_local() {
    let location = Location {
        flow: FLOW.to_owned(),
        incarnation: 1,
        lsn: "0/16B3748".to_owned(),
        place: LogPlace::InLog,
        text: "in the log, quarantined, open".to_owned(),
        outcome: Some("quarantined, open".to_owned()),
        xid: Some(7_001),
        end_lsn: Some("0/16B3790".to_owned()),
        commit_time: Some(ago(726)),
        start_lsn: Known::Value("0/1500000".to_owned()),
        durable_lsn: "0/17F0000".to_owned(),
        applied_lsn: Known::Value("0/16B3700".to_owned()),
        first_lsn: Some("0/16B0000".to_owned()),
        last_lsn: Some("0/17EFF00".to_owned()),
        after_lsn: None,
    };
    let engine = Engine::start().answers("/v1/flows/store-0001/locate/0%2F16B3748", &location);
    let arguments = ["stream", "locate-local", "store-0001", "--lsn", "0/16B3748"];
    insta::assert_snapshot!(shown(&engine, &arguments));
}

#[test]
fn config_reload_shows_the_difference_and_fails_when_it_is_refused() {
    let field = |field: &str, from: &str, to: &str, refused: Option<&str>| FieldChange {
        field: field.to_owned(),
        from: from.to_owned(),
        to: to.to_owned(),
        refused: refused.map(str::to_owned),
    };
    let report = Reload {
        dry_run: false,
        applied: false,
        added: vec!["store-0013:retail".to_owned()],
        changed: vec![FlowChange {
            flow: FLOW.to_owned(),
            fields: vec![
                field("labels", "", "region=east", None),
                field(
                    "source.slot",
                    "a",
                    "b",
                    Some("trellara flow remove store-0001:retail, then enrol it again"),
                ),
            ],
        }],
        detached: vec!["store-0007:retail".to_owned()],
        unchanged: 10,
        needs_restart: vec![field("data_dir", "/a", "/b", None)],
        needs_yes: false,
    };
    let engine = Engine::start().answers(path::CONFIG_RELOAD, &report);
    let ended = engine.trellara(&["config", "reload"]);
    assert_eq!(ended.code, 1);
    assert!(ended.stderr.starts_with("error: TRL-0811 "), "{}", ended.stderr);
    assert_eq!(engine.trellara(&["config", "reload", "--dry-run"]).code, 0);
    insta::assert_snapshot!(ended.stdout);
}

#[test]
fn json_is_the_answer_as_received() {
    let engine = with_flow(Phase::Quarantined);
    let text = shown(&engine, &["flow", "show", "store-0001", "-o", "json"]);
    assert_eq!(serde_json::from_str::<FlowDetail>(&text).unwrap(), detail(Phase::Quarantined));
}

#[test]
fn the_version_is_known_without_an_engine() {
    let engine = Engine::absent();
    let text = shown(&engine, &["version"]);
    assert!(text.starts_with("trellara  "), "{text}");
    assert!(text.contains("engine    unknown: "), "{text}");
    assert!(engine.folder().exists());
}
