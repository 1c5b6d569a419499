//! Every transition that there is, and none that there is not.

#![expect(clippy::unwrap_used, reason = "tests")]

use trellara_storage::records::{Attempt, FailureDetail};
use trellara_storage::{FlowId, Incarnation, TransactionDigest, Xid};

use super::*;

const STATES: [QuarantineState; 6] = [
    QuarantineState::Open,
    QuarantineState::Replaying,
    QuarantineState::Replayed,
    QuarantineState::ReplayedInPart,
    QuarantineState::Discarded,
    QuarantineState::Superseded,
];

fn record(state: QuarantineState) -> QuarantineRecord {
    let commit_lsn = Lsn::new(100);
    QuarantineRecord {
        id: "Q-7F3K".to_owned(),
        transaction: TransactionId {
            flow: FlowId::new(1),
            incarnation: Incarnation::FIRST,
            commit_lsn,
            xid: Xid::new(7),
        },
        digest: TransactionDigest::new([0xAB; 16]),
        end_lsn: Lsn::new(110),
        commit_time: Timestamp::default(),
        at: Timestamp::default(),
        state,
        failure: FailureDetail::default(),
        change: Some(1),
        changes: 1,
        image: None,
        conflicting_row: None,
        source_relation: None,
        target_relation: None,
        checkpoint: Lsn::ZERO,
        engine_version: String::new(),
        source_version: None,
        target_version: None,
        attempts: Vec::new(),
        resolution: None,
    }
}

fn actor(reason: Option<&str>) -> Actor {
    Actor { name: "ops".to_owned(), reason: reason.map(str::to_owned), at: Timestamp::from_unix_micros(5) }
}

fn fresh() -> QuarantineRecord {
    let failure = FailureDetail { code: "TRL-0102".to_owned(), ..FailureDetail::default() };
    let at = Timestamp::from_unix_micros(9);
    let attempts = vec![Attempt { at, failure: failure.clone() }];
    QuarantineRecord { id: String::new(), at, failure, attempts, ..record(QuarantineState::Open) }
}

fn reachable(step: impl Fn(QuarantineRecord) -> Result<QuarantineRecord, Refused>) -> Vec<QuarantineState> {
    STATES.into_iter().filter(|state| step(record(*state)).is_ok()).collect()
}

#[test]
fn every_step_starts_from_the_states_of_the_diagram_and_no_other() {
    use QuarantineState::{Open, Replayed, Replaying};
    assert_eq!(reachable(|record| replay(record, actor(None))), [Open]);
    assert_eq!(reachable(|record| discard(record, actor(Some("duplicate")), "abababab")), [Open]);
    assert_eq!(reachable(|record| passed(record, Timestamp::default())), [Open, Replaying]);
    assert_eq!(reachable(|record| failed_again(record, fresh())), [Replaying, Replayed]);
}

#[test]
fn a_replay_names_who_asked_for_it_and_a_success_keeps_that() {
    let replaying = replay(record(QuarantineState::Open), actor(None)).unwrap();
    assert_eq!(replaying.resolution.as_ref().unwrap().actor, "ops");
    let replayed = passed(replaying, Timestamp::default()).unwrap();
    assert_eq!(replayed.state, QuarantineState::Replayed);
    assert_eq!(replayed.resolution.unwrap().actor, "ops");
}

#[test]
fn a_replay_that_fails_keeps_every_attempt_and_shows_the_newest_failure() {
    let mut replaying = replay(record(QuarantineState::Open), actor(None)).unwrap();
    replaying.attempts.push(Attempt { at: Timestamp::default(), failure: FailureDetail::default() });
    let open = failed_again(replaying, fresh()).unwrap();
    assert_eq!((open.state, open.attempts.len()), (QuarantineState::Open, 2));
    assert_eq!((open.id.as_str(), open.at), ("Q-7F3K", Timestamp::default()));
    assert_eq!((open.failure.code.as_str(), open.resolution), ("TRL-0102", None));
}

#[test]
fn i5_a_discard_needs_a_reason_and_the_beginning_of_the_digest() {
    let open = || record(QuarantineState::Open);
    for reason in [None, Some(""), Some("  ")] {
        assert!(matches!(discard(open(), actor(reason), "abababab"), Err(Refused::ReasonMissing)));
    }
    let because = || actor(Some("known duplicate"));
    assert!(matches!(discard(open(), because(), "abababa"), Err(Refused::DigestTooShort)));
    assert!(matches!(discard(open(), because(), "abababac"), Err(Refused::DigestMismatch(_))));
    let discarded = discard(open(), because(), "ABABABABAB").unwrap();
    assert_eq!(discarded.state, QuarantineState::Discarded);
    let resolution = discarded.resolution.unwrap();
    assert_eq!(resolution.reason.as_deref(), Some("known duplicate"));
    assert_eq!(resolution.action, QuarantineAction::Discard);
}
