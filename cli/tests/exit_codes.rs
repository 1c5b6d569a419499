//! One test per row of the table of exit codes.

use std::collections::BTreeMap;

use trellara_api::flow::{FlowLine, FlowList, Phase};
use trellara_api::quarantine::Replay;
use trellara_api::{Known, Problem, RequestCode, Time, path};

use super::engine::Engine;

fn list(phase: Phase, partial: &[&str]) -> FlowList {
    let line = FlowLine {
        flow: "store-0001:retail".to_owned(),
        labels: BTreeMap::new(),
        phase,
        since: Time::from_unix_micros(0),
        code: None,
        cause: None,
        lag_bytes: Known::Value(0),
        lag_seconds: Known::unknown("nothing was applied yet"),
        open_quarantine: 0,
        next: None,
    };
    FlowList {
        at: Time::from_unix_micros(5_000_000),
        flows: vec![line],
        partial: partial.iter().map(|text| (*text).to_owned()).collect(),
    }
}

#[test]
fn code_0_a_report_that_was_answered_whatever_it_says() {
    let engine = Engine::start().answers(path::FLOWS, &list(Phase::Failed, &["target is away"]));
    let ended = engine.trellara(&["flow", "list"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    assert!(ended.stdout.contains("partial answer: target is away"), "{}", ended.stdout);
}

#[test]
fn code_1_a_request_that_was_refused_shows_its_code_and_hint() {
    let problem = Problem::new(RequestCode::FlowNotFound, "\"x\" matches no flow").hint("see them all");
    let engine = Engine::start().refuses("/v1/flows/x", &problem);
    let ended = engine.trellara(&["flow", "show", "x"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (1, ""));
    assert_eq!(ended.stderr, "error: TRL-0801 no flow matches: \"x\" matches no flow\n       see them all\n");
}

#[test]
fn code_2_a_command_line_that_means_nothing() {
    let engine = Engine::absent();
    assert_eq!(engine.trellara(&["flow", "show"]).code, 2);
    let everything_by_omission = engine.trellara(&["flow", "restart"]);
    assert_eq!(everything_by_omission.code, 2);
    assert!(everything_by_omission.stderr.contains("--all"), "{}", everything_by_omission.stderr);
}

#[test]
fn code_3_a_finding_of_a_gate_and_of_a_report_that_is_asked_for_it() {
    let engine =
        Engine::start().answers(path::FLOWS, &list(Phase::Quarantined, &["target is away"])).answers(
            "/v1/quarantine/Q-1/replay",
            &Replay {
                id: "Q-1".to_owned(),
                flow: "store-0001:retail".to_owned(),
                check: true,
                applied: false,
                failure: None,
                next: None,
            },
        );
    assert_eq!(engine.trellara(&["flow", "list", "--exit-code"]).code, 3, "outranks a partial answer");
    assert_eq!(engine.trellara(&["quarantine", "replay", "Q-1", "--check"]).code, 3);
}

#[test]
fn code_4_an_engine_that_is_not_there_is_named_with_the_way_to_start_it() {
    let ended = Engine::absent().trellara(&["status"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (4, ""));
    assert_eq!(
        ended.stderr,
        "error: TRL-0815 engine is not reachable: nobody answers at FOLDER/admin.sock \
         (No such file or directory (os error 2))\n       \
         start it: trellara run --config FOLDER/trellara.yml\n"
    );
}

#[test]
fn code_5_a_partial_answer_where_it_is_asked_for() {
    let engine = Engine::start().answers(path::FLOWS, &list(Phase::Streaming, &["target is away"]));
    assert_eq!(engine.trellara(&["flow", "list", "--exit-code"]).code, 5);
    assert_eq!(engine.trellara(&["flow", "list"]).code, 0);
}

#[test]
fn waiting_for_a_phase_ends_with_0_when_it_comes_and_with_3_when_it_does_not() {
    let engine = super::text::with_flow(Phase::Streaming);
    assert_eq!(engine.trellara(&["flow", "show", "store-0001", "--wait", "streaming"]).code, 0);
    let engine = super::text::with_flow(Phase::Quarantined);
    let arguments = ["flow", "show", "store-0001", "--wait", "streaming", "--timeout", "300ms"];
    let ended = engine.trellara(&arguments);
    assert_eq!(ended.code, 3);
    assert_eq!(ended.stderr, "store-0001:retail is quarantined, not streaming, after 0.3 s\n");
}

#[test]
fn a_failure_in_json_is_a_problem_on_stderr() {
    let ended = Engine::absent().trellara(&["status", "-o", "json"]);
    let problem: Problem = serde_json::from_str(&ended.stderr).unwrap();
    assert!(problem.is(RequestCode::EngineUnreachable));
}
