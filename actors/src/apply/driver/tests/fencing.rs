//! Two engines, lost targets, foreign checkpoints (I8, I11).

use trellara_storage::families::flows;
use trellara_storage::records::{Floor, FlowPart, Lineage, LoggedBytes, PruneRule, StartMode};
use trellara_storage::{Batch, Durability, Incarnation, InstanceId, Progress, Store, TransactionDigest};

use super::world::{FLOW, START, World, at, lineage};
use crate::apply::{ApplyExit, ApplyReport};
use crate::failure::{Code, Place};
use crate::ports::Clock;
use crate::testing::scripted_target::answered;

/// Another engine holds the row.
fn taken(world: &World, lease_live: bool) {
    let mut content = world.target.content();
    let row = content.row.as_mut().unwrap();
    row.token.instance = InstanceId::new([2; 16]);
    row.token.generation += 1;
    row.holder = "engine 2".to_owned();
    row.lease_live = lease_live;
}

fn lost(exit: &ApplyExit) -> Option<Code> {
    match exit {
        ApplyExit::LineageLost { code, .. } => Some(*code),
        ApplyExit::Stopped
        | ApplyExit::Quarantined(_)
        | ApplyExit::Failed(_)
        | ApplyExit::Fenced(_)
        | ApplyExit::Store(_) => None,
    }
}

#[test]
fn i11_a_live_lease_of_another_engine_is_waited_out_and_then_fences() {
    let mut world = World::new(1);
    world.run();
    taken(&world, true);
    world.append(2);
    let exit = world.run();
    let ApplyExit::Fenced(row) = exit else { panic!("{exit:?}") };
    assert_eq!(row.holder, "engine 2");
    assert!(world.clock.elapsed() >= crate::apply::LEASE);
    assert_eq!(world.effects(), [1]);
    let waits = world.reports.lock().unwrap();
    assert_eq!(waits.iter().filter(|report| matches!(report, ApplyReport::Retrying(_))).count(), 1);
}

#[test]
fn i11_a_lease_that_ran_out_is_claimed_and_take_over_does_not_wait() {
    for take_over in [false, true] {
        let mut world = World::new(1);
        world.run();
        taken(&world, take_over);
        world.append(2);
        world.take_over = take_over;
        assert!(matches!(world.run(), ApplyExit::Stopped));
        assert_eq!(world.effects(), [1, 2]);
    }
}

#[test]
fn i11_a_row_that_was_taken_while_applying_fences_at_once() {
    let mut world = World::new(1);
    let target = world.target.clone();
    let link = world.link.clone();
    let stolen = std::sync::atomic::AtomicBool::new(false);
    let exit = world.run_until(move || {
        let mut content = target.content();
        if content.effects.len() == 1 && !stolen.swap(true, std::sync::atomic::Ordering::Relaxed) {
            content.row.as_mut().unwrap().token.generation += 1;
            // Something to do, so that the loss is noticed.
            let durable = *link.durable.borrow();
            link.durable.send_replace(trellara_storage::Progress { position: at(9), ..durable });
        }
        false
    });
    assert!(matches!(exit, ApplyExit::Fenced(_)), "{exit:?}");
    assert_eq!(world.effects(), [1]);
}

#[test]
fn i8_a_row_that_is_gone_though_it_was_claimed_before_is_a_lost_target() {
    let mut world = World::new(2);
    world.run();
    world.target.content().row = None;
    assert_eq!(lost(&world.run()), Some(Code::TargetLost));
    assert_eq!(world.effects(), [1, 2]);
}

#[test]
fn i8_a_target_that_went_back_is_followed_from_where_it_stands() {
    let mut world = World::new(4);
    world.run();
    {
        let mut content = world.target.content();
        content.effects.truncate(1);
        let row = content.row.as_mut().unwrap();
        row.applied = trellara_storage::Progress { commit_lsn: at(1), position: at(1 + 1) };
        row.digest = None;
    }
    assert!(matches!(world.run(), ApplyExit::Stopped));
    assert_eq!(world.effects(), [1, 2, 3, 4]);
}

#[test]
fn i8_a_target_behind_the_pruned_log_is_lost() {
    let mut world = World::new(4);
    world.run();
    let floor = Floor {
        incarnation: Incarnation::FIRST,
        pruned_below: at(3),
        rule: PruneRule::RetainApplied,
        at: Default::default(),
        pruned: LoggedBytes::default(),
    };
    let mut batch = Batch::new();
    flows::put(&mut batch, FLOW, FlowPart::Floor, &floor);
    world.log.0.write(batch, Durability::Synced).unwrap();
    {
        let mut content = world.target.content();
        content.row.as_mut().unwrap().applied.position = at(2);
    }
    assert_eq!(lost(&world.run()), Some(Code::TargetBehindLog));
}

#[test]
fn i8_a_checkpoint_of_another_source_incarnation_or_transaction_is_not_gone_on_from() {
    for change in 0..3 {
        let mut world = World::new(2);
        world.run();
        world.append(3);
        {
            let mut content = world.target.content();
            let row = content.row.as_mut().unwrap();
            match change {
                0 => row.lineage = "78/trellara_f".to_owned(),
                1 => row.incarnation = Incarnation::new(2),
                _ => row.digest = Some(trellara_storage::TransactionDigest::new([1; 16])),
            }
        }
        assert_eq!(lost(&world.run()), Some(Code::AnotherHistory), "{change}");
        assert_eq!(world.effects(), [1, 2]);
    }
}

/// Another engine's log, while the target stands at the third transaction: it holds the first, and
/// `received`, which `run_and_catch_up` makes durable.
fn behind(received: &[u64]) -> (World, Progress) {
    let mut holder = World::new(3);
    holder.run();
    let mut world = holder.rival(1);
    world.take_over = true;
    let durable = *world.link.durable.borrow();
    received.iter().for_each(|&n| world.append(n));
    let caught_up = world.link.durable.send_replace(durable);
    (world, caught_up)
}

/// Lets capture get this far once the row is ours, and apply until the fourth transaction took effect.
fn run_and_catch_up(world: &mut World, caught_up: Progress, meanwhile: Batch) -> ApplyExit {
    let (target, link, log) = (world.target.clone(), world.link.clone(), world.log.clone());
    let claimant = InstanceId::new([world.instance; 16]);
    let meanwhile = std::sync::Mutex::new(Some(meanwhile));
    world.run_until(move || {
        let content = target.content();
        let claimed = content.row.as_ref().unwrap().token.instance == claimant;
        if let Some(batch) = meanwhile.lock().unwrap().take_if(|_| claimed) {
            log.0.write(batch, Durability::Synced).unwrap();
            link.durable.send_replace(caught_up);
        }
        content.effects.len() == 4
    })
}

#[test]
fn i8_a_log_behind_the_target_goes_on_once_it_holds_the_same_transaction() {
    let (mut world, caught_up) = behind(&[2, 3, 4]);
    let exit = run_and_catch_up(&mut world, caught_up, Batch::new());
    assert!(matches!(exit, ApplyExit::Stopped), "{exit:?}");
    assert_eq!(world.effects(), [1, 2, 3, 4]);
}

#[test]
fn i8_a_log_behind_the_target_that_is_filled_from_another_history_is_not_gone_on_from() {
    for received in [&[2, 3, 4][..], &[2, 4]] {
        let (mut world, caught_up) = behind(received);
        world.target.content().row.as_mut().unwrap().digest = Some(TransactionDigest::new([1; 16]));
        let exit = run_and_catch_up(&mut world, caught_up, Batch::new());
        assert_eq!(lost(&exit), Some(Code::AnotherHistory), "{received:?}");
        assert_eq!(world.effects(), [1, 2, 3]);
    }
}

#[test]
fn i8_a_checkpoint_that_capture_adopts_after_the_claim_is_gone_on_from() {
    let (mut world, caught_up) = behind(&[4]);
    let start = world.applied().position;
    let adopted = Lineage { start, start_mode: StartMode::Adopted, ..lineage() };
    let mut batch = Batch::new();
    flows::put(&mut batch, FLOW, FlowPart::Lineage, &adopted);
    let exit = run_and_catch_up(&mut world, caught_up, batch);
    assert!(matches!(exit, ApplyExit::Stopped), "{exit:?}");
    assert_eq!(world.effects(), [1, 2, 3, 4]);
}

#[test]
fn a_target_that_does_not_let_in_ends_the_task_and_one_that_restarts_does_not() {
    let mut world = World::new(1);
    world.target.content().refusals.push_back(answered(Place::TargetConnect, "28P01"));
    let exit = world.run();
    let ApplyExit::Failed(failure) = exit else { panic!("{exit:?}") };
    assert_eq!(failure.code, Code::AuthenticationFailed);
    world.target.content().refusals.push_back(answered(Place::TargetConnect, "57P03"));
    assert!(matches!(world.run(), ApplyExit::Stopped));
    assert_eq!(world.effects(), [1]);
    assert!(world.quarantined().is_empty());
}

#[test]
fn nothing_is_claimed_before_an_incarnation_is_durable() {
    let mut world = World::new(1);
    world.link.lineage.send_replace(None);
    let (target, link) = (world.target.clone(), world.link.clone());
    let exit = world.run_until(move || {
        let seen = link.target.borrow().read;
        if seen && link.lineage.borrow().is_none() {
            assert!(target.content().row.is_none());
            link.lineage.send_replace(Some(lineage()));
        }
        !target.content().effects.is_empty()
    });
    assert!(matches!(exit, ApplyExit::Stopped), "{exit:?}");
    assert_eq!(world.effects(), [1]);
    assert!(world.applied().position > START);
}
