//! A reload starts, renews and detaches; it drops nothing.

use trellara_actors::fleet::WantedFlow;
use trellara_actors::flow::Phase;
use trellara_actors::flow::machine::Refused;
use trellara_actors::flow::order::OrderError;
use trellara_actors::ports::{RemoveOptions, RemovedState};

use super::synthetic::Script;
use super::world::{World, flow, settings, wanted};

#[test]
fn a_reload_starts_new_flows_renews_changed_ones_and_detaches_those_that_left() {
    let world = World::start(settings(), &[Script::Healthy; 4]);
    let diff = world.block_on(world.handle.set_wanted(wanted(0..3), Vec::new())).unwrap();
    assert_eq!(diff.start, [flow(0), flow(1), flow(2)]);
    (0..3).for_each(|n| drop(world.wait_phase(n, Phase::Streaming)));

    let mut next = wanted([0, 3]);
    next.push(WantedFlow { flow: flow(1), revision: "2".to_owned() });
    let diff = world.block_on(world.handle.set_wanted(next, Vec::new())).unwrap();
    assert_eq!((diff.start, diff.restart, diff.detach), (vec![flow(3)], vec![flow(1)], vec![flow(2)]));
    assert_eq!(diff.unchanged, 1);
    world.wait_phase(2, Phase::Detached);
    world.wait_phase(3, Phase::Streaming);
    world.wait(|| (world.synthetic.opened(&flow(1)) == 2).then_some(()));
    world.wait_phase(1, Phase::Streaming);
    assert_eq!(world.status(1).deaths, 0, "renewed, not died");
    assert_eq!(world.synthetic.opened(&flow(0)), 1, "an unchanged flow is left alone");
    world.wait(|| world.events(2).contains(&"fleet.detached".to_owned()).then_some(()));

    let refused = world.block_on(world.handle.restart(flow(2), false));
    assert!(matches!(refused, Err(OrderError::Refused(Refused::Detached))), "{refused:?}");
    world.block_on(world.handle.set_wanted(wanted(0..4), Vec::new())).unwrap();
    world.wait_phase(2, Phase::Streaming);
    assert!(world.events(2).contains(&"fleet.attached".to_owned()));
    world.end_orderly();
}

#[test]
fn a_flow_that_the_store_knows_and_nobody_configured_shows_as_detached() {
    let world = World::start(settings(), &[Script::Healthy; 2]);
    world.block_on(world.handle.set_wanted(wanted([0]), vec![flow(0), flow(1)])).unwrap();
    world.wait_phase(0, Phase::Streaming);
    assert_eq!(world.status(1).phase(), Phase::Detached);
    world.end_orderly();
}

#[test]
fn a_removed_flow_stops_first_and_then_is_gone() {
    let world = World::all(settings(), &[Script::Healthy; 2]);
    world.wait_phase(0, Phase::Streaming);
    let dry = RemoveOptions { dry_run: true, ..RemoveOptions::default() };
    let planned = world.block_on(world.handle.remove(flow(0), dry)).unwrap();
    assert_eq!(planned[0].state, RemovedState::WouldDrop);
    assert_eq!(world.status(0).phase(), Phase::Streaming);
    let removed = world.block_on(world.handle.remove(flow(0), RemoveOptions::default())).unwrap();
    assert_eq!(removed[0].state, RemovedState::Dropped);
    assert!(world.handle.view().flow(&flow(0)).is_none());
    assert_eq!(world.events(0).last().unwrap(), "operator.removed");
    world.wait_phase(1, Phase::Streaming);
    world.end_orderly();
}
