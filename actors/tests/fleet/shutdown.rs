//! The staged end: everything is joined in time, and what resists is cut off and counted.

use std::time::Duration;

use trellara_actors::flow::Phase;
use trellara_actors::runtime::ShutdownDeadlines;

use super::synthetic::Script;
use super::world::{World, settings};

#[test]
fn an_orderly_end_joins_every_thread_and_leaves_no_task() {
    const FLOWS: usize = 50;
    let world = World::all(settings(), &[Script::Healthy; FLOWS]);
    (0..FLOWS).for_each(|n| drop(world.wait_phase(n, Phase::Streaming)));
    world.end_orderly();
}

#[test]
fn a_flow_that_does_not_stop_is_cut_off_at_the_deadline() {
    let world = World::all(settings(), &[Script::Deaf, Script::Healthy]);
    world.wait_phase(0, Phase::Streaming);
    world.wait_phase(1, Phase::Streaming);
    let flows = Duration::from_millis(500);
    let report = world.end(ShutdownDeadlines { flows, ..ShutdownDeadlines::default() });
    assert!(!report.orderly);
    assert_eq!((report.tasks_left, report.threads_joined), (0, true));
}

#[test]
fn a_fleet_can_end_while_flows_are_starting_and_waiting_for_a_restart() {
    let mut scripts = vec![Script::Healthy; 100];
    scripts[0] = Script::TaskPanics;
    World::all(settings(), &scripts).end_orderly();
}
