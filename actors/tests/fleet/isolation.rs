//! One flow that keeps dying, two hundred that do not notice (I6).

use trellara_actors::failure::Code;
use trellara_actors::flow::Phase;

use super::synthetic::Script;
use super::world::{World, flow, settings};

const FLOWS: usize = 200;
const PANICKING: usize = 77;

#[test]
fn i6_one_flow_that_panics_is_parked_as_failed_and_199_go_on_undisturbed() {
    let mut scripts = vec![Script::Healthy; FLOWS];
    scripts[PANICKING] = Script::TaskPanics;
    let world = World::all(settings(), &scripts);
    let siblings = || (0..FLOWS).filter(|n| *n != PANICKING);

    let parked = world.wait_phase(PANICKING, Phase::Failed);
    assert_eq!(parked.condition().reason.code, Some(Code::KeepsDying.to_string()));
    assert_eq!(parked.deaths, 4);
    let recorded = || world.events(PANICKING).contains(&"fleet.gave_up".to_owned()).then_some(());
    world.wait(recorded);
    assert_eq!(world.synthetic.opened(&flow(PANICKING)), 4);

    siblings().for_each(|n| drop(world.wait_phase(n, Phase::Streaming)));
    let before: Vec<u64> = siblings().map(|n| world.status(n).counters.applied_transactions).collect();
    for (n, before) in siblings().zip(before) {
        world.wait(|| (world.status(n).counters.applied_transactions > before + 5).then_some(()));
        let status = world.status(n);
        assert_eq!((status.phase(), status.deaths), (Phase::Streaming, 0), "flow {n}");
        assert_eq!(world.synthetic.opened(&flow(n)), 1, "flow {n}");
    }
    world.end_orderly();
}

#[test]
fn a_parked_flow_leaves_by_restart_and_may_be_parked_again() {
    let world = World::all(settings(), &[Script::TaskPanics, Script::Healthy]);
    world.wait_phase(0, Phase::Failed);
    world.wait(|| world.events(0).contains(&"fleet.gave_up".to_owned()).then_some(()));
    let restarted = || world.block_on(world.handle.restart(flow(0), false)).ok();
    world.wait(restarted);
    world.wait(|| (world.synthetic.opened(&flow(0)) == 8).then_some(()));
    world.wait_phase(0, Phase::Failed);
    assert!(world.events(0).contains(&"operator.restarted".to_owned()));
    world.end_orderly();
}
