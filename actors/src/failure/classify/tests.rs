//! The table of the failure classes, state by state and place by place.

use super::*;

const PLACES: [Place; 8] = [
    Place::SourceConnect,
    Place::Stream,
    Place::TargetConnect,
    Place::SessionSetup,
    Place::Checkpoint,
    Place::Change(0),
    Place::Change(7),
    Place::Commit,
];

fn database(sqlstate: &str) -> ErrorFacts {
    ErrorFacts { kind: Some(ErrorKind::Database { sqlstate: sqlstate.to_owned() }), ..ErrorFacts::default() }
}

fn judged(place: Place, facts: ErrorFacts) -> (Class, Code) {
    let failure = classify(place, facts);
    (failure.class, failure.code)
}

/// (states, class without its side, code): the same at every place.
const ANYWHERE: &[(&[&str], &str, Code)] = &[
    (&["08000", "08001", "08003", "08004", "08006", "08P01"], "transient", Code::ConnectionLost),
    (&["25P03", "25P04", "57P05"], "transient", Code::ConnectionLost),
    (&["40001", "40P01", "55P03", "57014"], "transient", Code::Contention),
    (&["57P01", "57P02", "57P03"], "transient", Code::ServerStarting),
    (&["53300"], "transient", Code::ResourcesExhausted),
    (&["26000"], "transient", Code::StalePlan),
    (&["28000", "28P01"], "endpoint", Code::AuthenticationFailed),
    (&["3D000", "57P04"], "endpoint", Code::DatabaseMissing),
    (&["25006"], "endpoint", Code::ReadOnly),
    (&["53100", "53200", "53400"], "endpoint", Code::ResourcesExhausted),
    (&["58000", "58030", "58P02"], "endpoint", Code::ServerSystemError),
    (&["XX001", "XX002"], "endpoint", Code::ServerDamaged),
];

const E: &str = "endpoint";
const U: &str = "unknown";
const LOST: &str = "lineage";

/// (states, [source session, stream, target session or commit, checkpoint, change], code at the change).
const BY_PLACE: &[(&[&str], [&str; 5], Code)] = &[
    (&["22000", "22001", "22003", "22P02", "22P03"], [U, U, U, U, "row_data"], Code::RowDataInvalid),
    (&["22023"], [U, "defect", U, U, "row_data"], Code::RowDataInvalid),
    (&["54000"], [U, U, U, U, "row_data"], Code::RowDataInvalid),
    (
        &["23000", "23502", "23503", "23505", "23514", "23P01", "44000"],
        [U, U, U, U, "row_data"],
        Code::ConstraintViolation,
    ),
    (&["P0001"], [U, U, U, U, "row_data"], Code::TargetTriggerRaised),
    (&["42P01"], [U, U, U, LOST, "schema_contract"], Code::TableMissing),
    (&["42703"], [U, U, U, U, "schema_contract"], Code::ColumnMissing),
    (&["42804"], [U, U, U, U, "schema_contract"], Code::ColumnTypeMismatch),
    (&["42883", "42809", "428C9", "54001", "54011"], [U, U, U, U, "schema_contract"], Code::ContractBroken),
    (&["0A000"], [U, "defect", U, U, "schema_contract"], Code::ContractBroken),
    (&["55000"], [U, LOST, U, U, "schema_contract"], Code::ContractBroken),
    (&["58P01"], [E, LOST, E, E, E], Code::ServerSystemError),
    (&["42501"], [E, E, E, E, E], Code::PermissionDenied),
    (&["21000"], [U, U, U, U, "defect"], Code::StatementDefect),
    (&["42601"], [U, "defect", U, U, U], Code::Unclassified),
    (&["XX000", "42704", "P0002", "HV000", "38000", "99999", "", "é"], [U, U, U, U, U], Code::Unclassified),
];

fn column(place: Place) -> usize {
    match place {
        Place::SourceConnect => 0,
        Place::Stream => 1,
        Place::TargetConnect | Place::SessionSetup | Place::Commit => 2,
        Place::Checkpoint => 3,
        Place::Change(_) => 4,
    }
}

#[test]
fn trouble_of_server_and_connection_means_the_same_at_every_place_and_inside_triggers() {
    for (states, class, code) in ANYWHERE {
        for (state, place) in states.iter().flat_map(|state| PLACES.map(|place| (*state, place))) {
            for context in [None, Some("PL/pgSQL function f() line 3 at RAISE".to_owned())] {
                let failure = classify(place, ErrorFacts { context, ..database(state) });
                assert_eq!((failure.class.name(), failure.code), (*class, *code), "{state} at {place:?}");
                if *class == "endpoint" {
                    assert_eq!(failure.class, Class::Endpoint(place.endpoint()), "{state} at {place:?}");
                }
            }
        }
    }
}

#[test]
fn every_other_state_is_judged_by_its_place() {
    for (states, classes, code) in BY_PLACE {
        for (state, place) in states.iter().flat_map(|state| PLACES.map(|place| (*state, place))) {
            let failure = classify(place, database(state));
            assert_eq!(failure.class.name(), classes[column(place)], "{state} at {place:?}");
            if matches!(place, Place::Change(_)) {
                assert_eq!(failure.code, *code, "{state} at {place:?}");
            }
        }
    }
}

#[test]
fn an_object_in_use_is_the_slot_at_the_source_and_a_lock_at_the_target() {
    for place in PLACES {
        let code = match place.endpoint() {
            Endpoint::Source => Code::SlotInUse,
            Endpoint::Target => Code::Contention,
        };
        assert_eq!(judged(place, database("55006")), (Class::Transient, code), "{place:?}");
    }
}

#[test]
fn nothing_outside_a_change_can_end_in_quarantine() {
    let states = ANYWHERE.iter().map(|row| row.0).chain(BY_PLACE.iter().map(|row| row.0)).flatten();
    let mut all: Vec<ErrorFacts> = states.map(|state| database(state)).collect();
    all.extend(
        Code::ALL
            .iter()
            .map(|code| ErrorFacts { kind: Some(ErrorKind::Finding(*code)), ..ErrorFacts::default() }),
    );
    for facts in all {
        for place in PLACES.into_iter().filter(|place| !matches!(place, Place::Change(_))) {
            let class = classify(place, facts.clone()).class;
            let parks = matches!(class, Class::RowData | Class::SchemaContract | Class::Integrity);
            assert!(!parks, "{facts:?} at {place:?}");
        }
    }
}

#[test]
fn what_a_target_trigger_raises_is_row_data_whatever_its_state() {
    let contexts = [
        "PL/pgSQL function audit() line 3 at RAISE",
        "SQL statement \"INSERT INTO log VALUES (1)\"\nPL/pgSQL function audit() line 4 at SQL statement",
        "PL/pgSQL-Funktion audit() Zeile 3 bei RAISE",
    ];
    for context in contexts {
        for state in ["P0001", "42P01", "23505", "21000", "0A000", "XX000", "42704", "99999"] {
            let facts = ErrorFacts { context: Some(context.to_owned()), ..database(state) };
            assert_eq!(
                judged(Place::Change(1), facts),
                (Class::RowData, Code::TargetTriggerRaised),
                "{state} {context}"
            );
        }
    }
}

#[test]
fn the_context_of_copy_locks_and_parameters_is_not_that_of_a_trigger() {
    for context in [
        "COPY t, line 3, column a: \"x\"",
        "while inserting index tuple (0,1) in relation \"t\"",
        "unnamed portal parameter $1 = '...'",
        "",
    ] {
        let facts = ErrorFacts { context: Some(context.to_owned()), ..database("42P01") };
        assert_eq!(judged(Place::Change(0), facts), (Class::SchemaContract, Code::TableMissing), "{context}");
    }
}

#[test]
fn a_missing_privilege_waits_and_a_refusal_in_spite_of_it_is_looked_at() {
    let at = Place::Change(0);
    let waits = (Class::Endpoint(Endpoint::Target), Code::PermissionDenied);
    let denied = |has_privilege, source_file: Option<&str>, context: Option<&str>| ErrorFacts {
        has_privilege,
        source_file: source_file.map(str::to_owned),
        context: context.map(str::to_owned),
        ..database("42501")
    };
    let function = Some("PL/pgSQL function f() line 1 at PERFORM");
    assert_eq!(judged(at, denied(Some(false), Some("aclchk.c"), None)), waits);
    assert_eq!(judged(at, denied(Some(false), Some("aclchk.c"), function)), waits);
    assert_eq!(judged(at, denied(None, None, None)), waits);
    assert_eq!(judged(at, denied(Some(true), Some("md.c"), None)), waits, "the server's own files");
    assert_eq!(judged(at, denied(Some(true), Some("aclchk.c"), function)).0, Class::RowData);
    assert_eq!(judged(at, denied(Some(true), Some("execMain.c"), None)), UNKNOWN);
}

#[test]
fn an_unknown_enum_label_is_a_matter_of_schema() {
    let facts = ErrorFacts { enum_type: true, ..database("22P02") };
    assert_eq!(judged(Place::Change(0), facts), (Class::SchemaContract, Code::ColumnTypeMismatch));
}

#[test]
fn a_duplicate_of_the_row_itself_is_told_from_another_unique_constraint() {
    let facts = ErrorFacts { duplicate_key: true, ..database("23505") };
    assert_eq!(judged(Place::Change(0), facts), (Class::RowData, Code::RowDuplicate));
}

#[test]
fn an_internal_error_is_a_quota_when_the_probe_fails_and_a_stale_plan_when_a_lookup_does() {
    let text = |message: &str| ErrorFacts { message: message.to_owned(), ..database("XX000") };
    let full = (Class::Endpoint(Endpoint::Target), Code::ResourcesExhausted);
    let stale = (Class::Transient, Code::StalePlan);
    for place in [Place::SessionSetup, Place::Checkpoint, Place::Change(0), Place::Commit] {
        assert_eq!(judged(place, ErrorFacts { probe_failed: true, ..text("quota") }), full, "{place:?}");
        assert_eq!(judged(place, text("cache lookup failed for type 12345")), stale, "{place:?}");
        assert_eq!(judged(place, text("unexpected chunk number")), UNKNOWN, "{place:?}");
    }
    let option = text("unrecognized pgoutput option: streaming");
    assert_eq!(judged(Place::Stream, option), (Class::Defect, Code::ProtocolDefect));
}

#[test]
fn a_changed_plan_is_told_from_an_unsupported_feature() {
    let plan = ErrorFacts { source_file: Some("plancache.c".to_owned()), ..database("0A000") };
    let text =
        ErrorFacts { message: "cached plan must not change result type".to_owned(), ..database("0A000") };
    for facts in [plan, text] {
        for place in [Place::Checkpoint, Place::Change(0)] {
            assert_eq!(judged(place, facts.clone()), (Class::Transient, Code::StalePlan));
        }
    }
}

#[test]
fn a_missing_object_at_the_source_is_the_one_that_the_catalog_read_names() {
    for place in [Place::SourceConnect, Place::Stream] {
        let missing = |missing| ErrorFacts { missing, ..database("42704") };
        assert_eq!(judged(place, missing(Some(Missing::Slot))), (Class::Lineage, Code::SlotMissing));
        assert_eq!(
            judged(place, missing(Some(Missing::Publication))),
            (Class::Lineage, Code::PublicationMissing)
        );
        assert_eq!(judged(place, missing(None)), UNKNOWN);
    }
}

#[test]
fn errors_without_a_state_are_judged_by_their_kind() {
    let kinds = [
        (ErrorKind::NameResolution, "endpoint", Code::NameResolution),
        (ErrorKind::ConnectRefused, "endpoint", Code::ConnectFailed),
        (ErrorKind::Tls, "endpoint", Code::TlsFailed),
        (ErrorKind::ConnectionLost, "transient", Code::ConnectionLost),
        (ErrorKind::Protocol, "defect", Code::ProtocolDefect),
    ];
    for (kind, class, code) in kinds {
        for place in PLACES {
            let failure = classify(place, ErrorFacts { kind: Some(kind.clone()), ..ErrorFacts::default() });
            assert_eq!((failure.class.name(), failure.code), (class, code), "{kind:?} at {place:?}");
        }
    }
    assert_eq!(judged(Place::Change(0), ErrorFacts::default()), UNKNOWN);
}

#[test]
fn a_finding_has_the_class_of_its_code_at_a_change() {
    for code in Code::ALL {
        let facts = ErrorFacts { kind: Some(ErrorKind::Finding(*code)), ..ErrorFacts::default() };
        assert_eq!(judged(Place::Change(0), facts), (code.class(Endpoint::Target), *code));
    }
}

#[test]
fn the_summary_names_objects_and_no_values() {
    let facts = ErrorFacts {
        message: "duplicate key value violates unique constraint \"users_email_key\"".to_owned(),
        detail: Some("Key (email)=(secret@example.org) already exists.".to_owned()),
        constraint: Some("users_email_key".to_owned()),
        schema: Some("public".to_owned()),
        table: Some("users".to_owned()),
        ..database("23505")
    };
    let failure = classify(Place::Change(3), facts);
    assert_eq!(
        failure.summary,
        "constraint violation at the target: SQLSTATE 23505, constraint users_email_key, relation public.users"
    );
    assert_eq!(failure.detail.detail.as_deref(), Some("Key (email)=(secret@example.org) already exists."));
    assert_eq!((failure.detail.class.as_str(), failure.detail.code.as_str()), ("row_data", "TRL-0102"));
}

#[test]
fn code_numbers_are_never_shared() {
    let numbers: std::collections::BTreeSet<u16> = Code::ALL.iter().map(|code| code.number()).collect();
    assert_eq!(numbers.len(), Code::ALL.len());
}
