//! Orders to running flows: pause, resume, replay, discard, check.

use trellara_actors::apply::Checked;
use trellara_actors::flow::Phase;
use trellara_actors::flow::machine::Refused;
use trellara_actors::flow::order::OrderError;
use trellara_actors::flow::state::{Pause, PauseScope};
use trellara_actors::quarantine;
use trellara_storage::Timestamp;
use trellara_storage::families::quarantine::of_flow;
use trellara_storage::records::QuarantineState;

use super::synthetic::Script;
use super::world::{World, flow, settings};

fn pause(scope: PauseScope) -> Pause {
    let since = Timestamp::default();
    Pause { scope, who: "ada".to_owned(), why: "index build".to_owned(), since, until: None }
}

fn ada(reason: Option<&str>) -> quarantine::Actor {
    let (name, reason) = ("ada".to_owned(), reason.map(str::to_owned));
    quarantine::Actor { name, reason, at: Timestamp::default() }
}

fn state(world: &World, n: usize) -> QuarantineState {
    let (log, id) = (world.synthetic.log_of(&flow(n)), world.synthetic.id_of(&flow(n)));
    world.block_on(log.read(move |store| of_flow(store, id))).unwrap()[0].state
}

#[test]
fn a_pause_holds_apply_keeps_capture_and_outlives_a_restart_of_the_flow() {
    let world = World::all(settings(), &[Script::Healthy]);
    world.wait_phase(0, Phase::Streaming);
    world.block_on(world.handle.pause(flow(0), pause(PauseScope::Apply))).unwrap();
    let paused = world.wait_phase(0, Phase::Paused);
    world.wait(|| (world.status(0).durable > paused.durable).then_some(()));
    world.block_on(world.handle.restart(flow(0), false)).unwrap();
    world.wait(|| (world.status(0).generation > paused.generation).then_some(()));
    assert_eq!(world.status(0).phase(), Phase::Paused);
    assert_eq!(world.status(0).pause.as_ref().unwrap().who, "ada");
    world.block_on(world.handle.resume(flow(0))).unwrap();
    world.wait_phase(0, Phase::Streaming);
    let again = world.block_on(world.handle.resume(flow(0)));
    assert!(matches!(again, Err(OrderError::Refused(Refused::NotPaused))), "{again:?}");
    let unknown = world.block_on(world.handle.resume(flow(9)));
    assert!(matches!(unknown, Err(OrderError::UnknownFlow)), "{unknown:?}");
    world.end_orderly();
}

#[test]
fn a_quarantined_flow_keeps_capturing_and_goes_on_by_a_replay() {
    let world = World::all(settings(), &[Script::Poisoned, Script::Healthy]);
    let parked = world.wait_phase(0, Phase::Quarantined);
    assert_eq!(parked.condition().reason.evidence.as_deref(), Some("Q-7F3K"));
    assert_eq!(parked.condition().reason.sqlstate.as_deref(), Some("23505"));
    world.wait(|| (world.status(0).durable > parked.durable).then_some(()));
    assert_eq!(world.status(0).phase(), Phase::Quarantined);

    let check = world.block_on(world.handle.check(flow(0), "Q-7F3K".to_owned())).unwrap();
    assert!(matches!(check, Checked::WouldApply), "{check:?}");
    let other = world.block_on(world.handle.replay(flow(0), "Q-0000".to_owned(), ada(None)));
    assert!(matches!(other, Err(OrderError::Refused(Refused::OtherQuarantine { .. }))), "{other:?}");
    world.block_on(world.handle.replay(flow(0), "Q-7F3K".to_owned(), ada(None))).unwrap();
    assert_eq!(state(&world, 0), QuarantineState::Replaying, "durable when it is answered");
    world.wait_phase(0, Phase::Streaming);
    let events = world.events(0);
    let recorded = |kind: &str| events.iter().any(|event| event == kind);
    assert!(recorded("apply.quarantined") && recorded("quarantine.decided"), "{events:?}");
    world.end_orderly();
}

#[test]
fn a_discard_needs_its_reason_and_the_digest_of_the_transaction() {
    let world = World::all(settings(), &[Script::Poisoned]);
    world.wait_phase(0, Phase::Quarantined);
    let discard = |prefix: &str, reason: Option<&str>| {
        let (evidence, prefix) = ("Q-7F3K".to_owned(), prefix.to_owned());
        world.block_on(world.handle.discard(flow(0), evidence, prefix, ada(reason)))
    };
    for (prefix, reason) in [("abababab", None), ("ab", Some("agreed")), ("cdcdcdcd", Some("agreed"))] {
        let refused = discard(prefix, reason);
        assert!(matches!(refused, Err(OrderError::Quarantine(_))), "{refused:?}");
    }
    assert_eq!((state(&world, 0), world.status(0).phase()), (QuarantineState::Open, Phase::Quarantined));
    discard("abababab", Some("agreed")).unwrap();
    assert_eq!(state(&world, 0), QuarantineState::Discarded);
    world.wait_phase(0, Phase::Streaming);
    world.end_orderly();
}

#[test]
fn a_quarantine_shows_again_after_a_restart_before_the_target_was_reached() {
    let world = World::all(settings(), &[Script::Poisoned]);
    let parked = world.wait_phase(0, Phase::Quarantined);
    world.block_on(world.handle.restart(flow(0), false)).unwrap();
    world.wait(|| (world.status(0).generation > parked.generation).then_some(()));
    assert_eq!(world.status(0).phase(), Phase::Quarantined);
    world.end_orderly();
}

#[test]
fn a_pause_reaches_a_flow_that_was_parked_and_hides_nothing() {
    let world = World::all(settings(), &[Script::TaskPanics]);
    world.wait_phase(0, Phase::Failed);
    // Busy while the parking itself is being recorded.
    let paused = || world.block_on(world.handle.pause(flow(0), pause(PauseScope::All))).ok();
    world.wait(paused);
    let status = world.status(0);
    assert_eq!(status.phase(), Phase::Failed);
    assert!(status.holds(Phase::Paused));
    world.block_on(world.handle.restart(flow(0), false)).unwrap();
    world.wait_phase(0, Phase::Paused);
    assert!(!world.status(0).holds(Phase::Failed));
    let opened = world.synthetic.opened(&flow(0));
    world.block_on(world.handle.resume(flow(0))).unwrap();
    world.wait(|| (world.synthetic.opened(&flow(0)) > opened).then_some(()));
    world.end_orderly();
}
