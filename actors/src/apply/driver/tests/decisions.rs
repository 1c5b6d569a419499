//! Parking, replay and discard through the ordinary path.

use trellara_storage::records::QuarantineState;
use trellara_storage::{Durability, InstanceId, Store};

use super::world::{World, at, block_on, id};
use crate::apply::{ApplyExit, ApplyReport, Checked, check};
use crate::failure::{ErrorFacts, ErrorKind, Place, classify};
use crate::quarantine::{Actor, Decision, find, request_replay};

fn actor() -> Actor {
    Actor { name: "ops".to_owned(), reason: None, at: Default::default() }
}

fn submit(world: &World, decision: Decision) {
    world.log.0.write(decision.batch, Durability::Synced).unwrap();
}

fn poisoned() -> World {
    let mut world = World::new(6);
    world.poison(4, "23514");
    let exit = world.run();
    assert!(matches!(exit, ApplyExit::Quarantined(_)), "{exit:?}");
    world
}

#[test]
fn i7_evidence_and_event_are_durable_when_the_task_ends() {
    let world = poisoned();
    world.log.0.crash(trellara_storage::memory::Keep::Synced);
    let records = world.quarantined();
    let record = &records[0];
    assert_eq!((record.transaction, record.state), (id(4), QuarantineState::Open));
    assert_eq!((record.change, record.changes, record.checkpoint), (Some(2), 2, at(3)));
    assert_eq!(record.failure.sqlstate.as_deref(), Some("23514"));
    assert_eq!(record.attempts.len(), 1);
    assert_eq!(world.events(), ["quarantine.opened"]);
    assert_eq!(find(&*world.log.0, &record.id.to_lowercase()).unwrap().unwrap().transaction, id(4));
}

#[test]
fn an_open_transaction_is_not_passed_by_another_start() {
    let mut world = poisoned();
    let attempts = world.target.content().attempts;
    assert!(matches!(world.run(), ApplyExit::Quarantined(_)));
    assert_eq!(world.target.content().attempts, attempts, "the target was only claimed");
    assert_eq!(world.effects(), [1, 2, 3]);
}

#[test]
fn a_replay_that_succeeds_is_recorded_and_the_rest_follows() {
    let mut world = poisoned();
    world.target.content().poison.clear();
    submit(&world, request_replay(&*world.log.0, id(4), actor(), &world.events).unwrap());
    assert!(matches!(world.run(), ApplyExit::Stopped));
    assert_eq!(world.effects(), [1, 2, 3, 4, 5, 6]);
    assert_eq!(world.quarantined()[0].state, QuarantineState::Replayed);
    assert_eq!(world.events(), ["quarantine.opened", "quarantine.replaying", "quarantine.replayed"]);
    let reports = world.reports.lock().unwrap();
    assert!(reports.iter().any(|report| matches!(report, ApplyReport::Resolved(_))));
}

#[test]
fn a_replay_that_fails_is_open_again_with_the_attempt_recorded() {
    let mut world = poisoned();
    world.poison(4, "23505");
    submit(&world, request_replay(&*world.log.0, id(4), actor(), &world.events).unwrap());
    assert!(matches!(world.run(), ApplyExit::Quarantined(_)));
    let record = &world.quarantined()[0];
    assert_eq!((record.state, record.attempts.len()), (QuarantineState::Open, 2));
    assert_eq!(record.failure.sqlstate.as_deref(), Some("23505"));
    assert_eq!(world.events(), ["quarantine.opened", "quarantine.replaying", "quarantine.reopened"]);
    assert_eq!(world.effects(), [1, 2, 3]);
}

#[test]
fn a_replay_that_took_effect_before_a_crash_is_reconciled_from_the_checkpoint() {
    let mut world = poisoned();
    world.target.content().poison.clear();
    submit(&world, request_replay(&*world.log.0, id(4), actor(), &world.events).unwrap());
    let mut steps = 0;
    while !world.effects().contains(&4) {
        steps += 1;
        world.run_and_kill(steps);
    }
    assert!(matches!(world.run(), ApplyExit::Stopped));
    assert_eq!(world.effects(), [1, 2, 3, 4, 5, 6]);
    assert_eq!(world.quarantined()[0].state, QuarantineState::Replayed);
}

#[test]
fn a_target_that_went_back_meets_a_replayed_transaction_like_any_other() {
    let mut world = poisoned();
    world.target.content().poison.clear();
    submit(&world, request_replay(&*world.log.0, id(4), actor(), &world.events).unwrap());
    world.run();
    {
        let mut content = world.target.content();
        content.effects.clear();
        content.row.as_mut().unwrap().applied = Default::default();
        content.row.as_mut().unwrap().applied.position = super::world::START;
        content.row.as_mut().unwrap().digest = None;
    }
    assert!(matches!(world.run(), ApplyExit::Stopped));
    assert_eq!(world.effects(), [1, 2, 3, 4, 5, 6]);
    assert_eq!(world.quarantined()[0].state, QuarantineState::Replayed);
}

#[test]
fn a_failure_without_a_rule_is_tried_three_times_before_it_is_parked() {
    let mut world = World::new(1);
    let kind = Some(ErrorKind::Database { sqlstate: "99999".to_owned() });
    world.poison_with(1, classify(Place::Change(0), ErrorFacts { kind, ..ErrorFacts::default() }));
    let exit = world.run();
    let ApplyExit::Quarantined(record) = exit else { panic!("{exit:?}") };
    assert_eq!(record.failure.code, "TRL-0199");
    assert_eq!(world.target.content().attempts, 1 + 3, "once set-based, then three that count");
}

#[test]
fn a_check_says_whether_it_would_apply_now_and_changes_nothing() {
    let world = poisoned();
    let checked = |instance: u8, n: u64| {
        let instance = InstanceId::new([instance; 16]);
        block_on(check(&world.target, &world.log, instance, id(n))).unwrap()
    };
    assert!(
        matches!(checked(1, 4), Checked::WouldFail(failure) if failure.detail.sqlstate.as_deref() == Some("23514"))
    );
    world.target.content().poison.clear();
    assert!(matches!(checked(1, 4), Checked::WouldApply));
    assert!(matches!(checked(1, 3), Checked::NotNext(applied) if applied.commit_lsn == at(3)));
    assert!(matches!(checked(1, 9), Checked::NotInLog));
    assert!(matches!(checked(2, 4), Checked::Fenced(_)));
    assert_eq!((world.effects(), world.applied().commit_lsn), (vec![1, 2, 3], at(3)));
    assert_eq!(world.quarantined()[0].state, QuarantineState::Open);
}
