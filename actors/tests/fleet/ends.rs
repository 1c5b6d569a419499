//! Every disorderly end is reported exactly once, contained, and followed by one new generation.

use std::time::Duration;

use trellara_actors::fleet::{FleetSettings, StallPolicy};
use trellara_actors::flow::Phase;

use super::synthetic::Script;
use super::world::{World, flow, settings};

fn one_death(script: Script) {
    let world = World::all(settings(), &[script, Script::Healthy, Script::Healthy]);
    world.wait(|| (world.status(0).deaths == 1).then_some(()));
    world.wait_phase(0, Phase::Streaming);
    let applied = world.status(0).counters.applied_transactions;
    world.wait(|| (world.status(0).counters.applied_transactions > applied + 10).then_some(()));
    assert_eq!((world.status(0).deaths, world.synthetic.opened(&flow(0))), (1, 2));
    for sibling in [1, 2] {
        assert_eq!((world.status(sibling).deaths, world.synthetic.opened(&flow(sibling))), (0, 1));
    }
    world.end_orderly();
}

#[test]
fn a_panic_in_a_task_is_reported_once_and_followed_by_one_new_generation() {
    one_death(Script::TaskPanicsOnce);
}

#[test]
fn a_panic_in_a_handler_is_reported_once_and_followed_by_one_new_generation() {
    one_death(Script::HandlerPanicsOnce);
}

#[test]
fn a_thread_that_stops_is_reported_once_per_flow_and_they_go_on_elsewhere() {
    const FLOWS: usize = 20;
    let world = World::all(settings(), &[Script::Healthy; FLOWS]);
    (0..FLOWS).for_each(|n| drop(world.wait_phase(n, Phase::Streaming)));
    assert!(world.placement.flow(0).unwrap().stop());
    world.wait(|| (0..FLOWS).any(|n| world.status(n).deaths > 0).then_some(()));
    let struck = || (0..FLOWS).filter(|n| world.status(*n).deaths == 1).count();
    world.wait(|| (struck() == FLOWS / 2).then_some(()));
    for n in 0..FLOWS {
        let status = world.wait_phase(n, Phase::Streaming);
        assert_eq!(world.synthetic.opened(&flow(n)), 1 + status.deaths, "flow {n}");
    }
    world.end_orderly();
}

#[test]
fn a_flow_that_lives_and_does_nothing_is_dropped_and_started_again() {
    let stall = StallPolicy { progress: Duration::from_secs(2), ..StallPolicy::default() };
    let world = World::all(FleetSettings { stall, ..settings() }, &[Script::Stuck, Script::Healthy]);
    world.wait(|| (world.status(0).deaths >= 2).then_some(()));
    assert!(world.synthetic.opened(&flow(0)) >= 2);
    let sibling = world.wait_phase(1, Phase::Streaming);
    assert_eq!(sibling.deaths, 0);
    world.end_orderly();
}

#[test]
fn a_flow_that_does_not_answer_is_cut_off_and_its_late_awakening_changes_nothing() {
    let stall = StallPolicy {
        ask: Duration::from_millis(500),
        answer: Duration::from_secs(3),
        ..StallPolicy::default()
    };
    let world = World::all(FleetSettings { stall, ..settings() }, &[Script::MuteOnce, Script::Healthy]);
    world.wait(|| (world.status(0).deaths == 1).then_some(()));
    let second = world.wait_phase(0, Phase::Streaming);
    assert_eq!(world.status(1).deaths, 0, "its neighbour lives on another thread");
    world.synthetic.gate().open();
    let applied = second.counters.applied_transactions;
    world.wait(|| (world.status(0).counters.applied_transactions > applied + 20).then_some(()));
    assert_eq!(world.status(0).generation, second.generation);
    assert_eq!((world.status(0).deaths, world.synthetic.opened(&flow(0))), (1, 2));
    world.end_orderly();
}
