//! COMMITs whose answer was lost (I4).

use super::world::{World, at};
use crate::apply::{ApplyExit, ApplyReport};
use crate::testing::scripted_target::Fault;

fn run_with(fault: Fault) -> World {
    let mut world = World::new(4);
    world.limits.transactions = 2;
    world.target.content().faults.push_back(Some(fault));
    let exit = world.run();
    assert!(matches!(exit, ApplyExit::Stopped), "{exit:?}");
    assert_eq!(world.effects(), [1, 2, 3, 4]);
    world
}

#[test]
fn i4_a_commit_whose_answer_was_lost_is_not_repeated() {
    let world = run_with(Fault::AnswerLost);
    assert_eq!(world.target.content().attempts, 2, "two groups of two");
    let reports = world.reports.lock().unwrap();
    assert!(reports.iter().any(|report| matches!(report, ApplyReport::Retrying(_))));
}

#[test]
fn i4_a_commit_that_never_arrived_is_repeated() {
    let world = run_with(Fault::CommitLost);
    assert_eq!(world.target.content().attempts, 3);
}

#[test]
fn i4_a_frozen_backend_that_commits_after_the_reconnect_has_one_effect() {
    run_with(Fault::CommitLate);
}

#[test]
fn i4_the_list_of_effects_shows_a_second_one_when_the_target_keeps_no_row_locks() {
    let mut world = World::new(4);
    world.limits.transactions = 2;
    world.target.content().unlocked = true;
    world.target.content().faults.push_back(Some(Fault::CommitLate));
    world.run();
    assert_eq!(world.effects(), [1, 2, 1, 2, 3, 4], "planted");
}

#[test]
fn progress_counts_what_was_applied_and_the_store_notes_where() {
    let world = run_with(Fault::AnswerLost);
    let reports = world.reports.lock().unwrap();
    let newest = reports.iter().rev().find_map(|report| match report {
        ApplyReport::Progress(progress) => Some(*progress),
        ApplyReport::Claimed(_) | ApplyReport::Retrying(_) | ApplyReport::Resolved(_) => None,
    });
    let newest = newest.unwrap();
    assert_eq!((newest.applied.commit_lsn, newest.transactions, newest.changes), (at(4), 4, 8));
    assert!(!world.link.target.borrow().answering, "nobody answers for the target once the task has ended");
    assert_eq!(world.link.target.borrow().checkpoint.as_ref().unwrap().applied.commit_lsn, at(4));
}
