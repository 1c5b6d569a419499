//! Whatever fails, and however the target fails in between: exactly the poison is parked, everything before
//! it is applied once, nothing behind it.

use proptest::prelude::*;

use super::*;
use crate::failure::{ErrorFacts, ErrorKind, classify};

fn failure(place: Place, kind: ErrorKind) -> Failure {
    classify(place, ErrorFacts { kind: Some(kind), ..ErrorFacts::default() })
}

fn database(place: Place, sqlstate: &str) -> Failure {
    failure(place, ErrorKind::Database { sqlstate: sqlstate.to_owned() })
}

fn poison() -> Failure {
    database(Place::Change(0), "23514")
}

/// A target that applies whole groups or nothing of them.
#[derive(Debug)]
struct Model {
    applied: Vec<usize>,
    attempts: usize,
    commits: usize,
    poison: Option<usize>,
    /// Fails in set-based form only: row order inside one statement.
    false_alarm: bool,
    /// The adapter cannot tell the member.
    anonymous: bool,
}

/// Runs until the log is applied or one is parked, which is returned.
fn run(
    model: &mut Model,
    log: usize,
    limit: usize,
    trouble: &mut dyn FnMut() -> Option<Failure>,
) -> Option<usize> {
    let mut isolation = Isolation::new();
    while model.applied.len() < log {
        model.attempts += 1;
        assert!(model.attempts < 100 * (log + 1), "no end in sight");
        let plan = isolation.plan();
        let from = model.applied.len();
        let size = plan.transactions.unwrap_or(limit).min(limit).min(log - from);
        let member = model.poison.and_then(|poison| poison.checked_sub(from)).filter(|member| *member < size);
        let failed = trouble().map(|failure| (None, failure)).or_else(|| match member {
            Some(member) => Some((Some(member), poison())),
            None if model.false_alarm && plan.how == Applying::SetBased => {
                Some((Some(0), database(Place::Change(0), "23505")))
            }
            None => None,
        });
        let Some((member, failure)) = failed else {
            model.applied.extend(from..from + size);
            model.commits += 1;
            isolation.applied(size);
            continue;
        };
        let member = member.filter(|_| !model.anonymous && plan.how == Applying::ChangeByChange);
        match isolation.failed(Failed { size, how: plan.how, member, failure }, Duration::ZERO) {
            Verdict::Again | Verdict::Reconnect | Verdict::Pause(_) => {}
            Verdict::Park(failure) => {
                assert_eq!((size, plan.how), (1, Applying::ChangeByChange), "parked from a group: {failure}");
                return Some(from);
            }
            Verdict::End(failure) => panic!("ended by {failure}"),
        }
    }
    None
}

fn model(poison: Option<usize>) -> Model {
    Model { applied: Vec::new(), attempts: 0, commits: 0, poison, false_alarm: false, anonymous: false }
}

#[test]
fn one_poison_in_a_group_of_500_is_found_in_four_attempts() {
    let mut target = model(Some(321));
    assert_eq!(run(&mut target, 500, 500, &mut || None), Some(321));
    assert_eq!(target.applied, (0..321).collect::<Vec<_>>());
    assert_eq!((target.attempts, target.commits), (4, 1));
}

#[test]
fn a_group_that_fails_only_as_a_set_is_applied_change_by_change_and_parks_nothing() {
    let mut target = Model { false_alarm: true, ..model(None) };
    assert_eq!(run(&mut target, 500, 500, &mut || None), None);
    assert_eq!((target.attempts, target.commits), (2, 1));
}

#[test]
fn a_poison_that_no_attempt_names_is_found_by_halving() {
    let mut target = Model { anonymous: true, ..model(Some(321)) };
    assert_eq!(run(&mut target, 500, 500, &mut || None), Some(321));
    assert!(target.attempts < 60, "{} attempts", target.attempts);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn i2_i5_whatever_fails_exactly_the_poison_is_parked_and_all_before_it_are_applied_once(
        log in 1_usize..80,
        limit in 1_usize..40,
        poison in proptest::option::of(0_usize..100),
        false_alarm in any::<bool>(),
        anonymous in any::<bool>(),
        troubles in proptest::collection::vec(0_u8..6, 0..60),
    ) {
        let mut troubles = troubles.into_iter();
        let mut trouble = || match troubles.next()? {
            0 => Some(database(Place::Change(3), "40P01")),
            1 => Some(failure(Place::Commit, ErrorKind::ConnectionLost)),
            2 => Some(database(Place::Change(0), "57014")),
            _ => None,
        };
        let mut target = Model { false_alarm, anonymous, ..model(poison) };
        let parked = run(&mut target, log, limit, &mut trouble);
        let expected = poison.filter(|poison| *poison < log);
        prop_assert_eq!(parked, expected);
        prop_assert_eq!(target.applied, (0..expected.unwrap_or(log)).collect::<Vec<_>>());
    }
}

fn suspected() -> Isolation {
    let mut isolation = Isolation::new();
    isolation.suspect();
    isolation
}

fn alone(isolation: &mut Isolation, failure: Failure) -> Verdict {
    let failed = Failed { size: 1, how: Applying::ChangeByChange, member: Some(0), failure };
    isolation.failed(failed, Duration::ZERO)
}

#[test]
fn a_missing_row_is_believed_only_after_a_second_look() {
    let missing = || failure(Place::Change(0), ErrorKind::Finding(Code::RowMissing));
    let mut isolation = suspected();
    assert_eq!(alone(&mut isolation, missing()), Verdict::Again);
    assert_eq!(alone(&mut isolation, missing()), Verdict::Park(missing()));
}

#[test]
fn an_unknown_failure_is_tried_three_times_and_then_parked_unclassified() {
    let unknown = || database(Place::Change(0), "99999");
    let mut isolation = suspected();
    assert_eq!(alone(&mut isolation, unknown()), Verdict::Pause(unknown()));
    // What the server does in between counts nowhere.
    for _ in 0..10 {
        assert!(matches!(alone(&mut isolation, database(Place::Change(0), "40001")), Verdict::Pause(_)));
    }
    assert_eq!(alone(&mut isolation, unknown()), Verdict::Pause(unknown()));
    let Verdict::Park(parked) = alone(&mut isolation, unknown()) else { panic!("not parked") };
    assert_eq!((parked.class, parked.code), (Class::Unknown, Code::Unclassified));
}

#[test]
fn a_stale_plan_is_free_once_and_an_unknown_failure_after_that() {
    let stale = || database(Place::Change(0), "26000");
    let mut isolation = suspected();
    assert_eq!(alone(&mut isolation, stale()), Verdict::Reconnect);
    assert_eq!(alone(&mut isolation, stale()), Verdict::Pause(stale()));
    assert_eq!(alone(&mut isolation, stale()), Verdict::Pause(stale()));
    let Verdict::Park(parked) = alone(&mut isolation, stale()) else { panic!("not parked") };
    assert_eq!(parked.detail.class, "unknown");
}

#[test]
fn trouble_of_the_target_ends_the_task_and_parks_nothing() {
    for sqlstate in ["28P01", "25006", "53100", "42501", "3D000", "21000"] {
        let failure = database(Place::Change(0), sqlstate);
        assert_eq!(alone(&mut suspected(), failure.clone()), Verdict::End(failure), "{sqlstate}");
    }
    for sqlstate in ["23505", "42P01", "99999"] {
        let failure = database(Place::Commit, sqlstate);
        assert_eq!(alone(&mut suspected(), failure.clone()), Verdict::End(failure), "{sqlstate}");
    }
}

#[test]
fn a_conflict_that_a_trigger_raises_for_ever_is_parked_unclassified_in_the_end() {
    let context = Some("PL/pgSQL function f() line 1 at RAISE".to_owned());
    let kind = Some(ErrorKind::Database { sqlstate: "40001".to_owned() });
    let raised = classify(Place::Change(0), ErrorFacts { kind, context, ..ErrorFacts::default() });
    let mut isolation = Isolation::new();
    let mut now = Duration::ZERO;
    for _ in 0..1_000 {
        let plan = isolation.plan();
        let size = plan.transactions.unwrap_or(5).min(5);
        let failed = Failed { size, how: plan.how, member: Some(0), failure: raised.clone() };
        match isolation.failed(failed, now) {
            Verdict::Pause(_) | Verdict::Again => now += Duration::from_secs(10),
            Verdict::Park(parked) => {
                assert_eq!((size, parked.code), (1, Code::Unclassified));
                return;
            }
            Verdict::Reconnect | Verdict::End(_) => panic!("neither stale nor ended"),
        }
    }
    panic!("never parked");
}
