//! What is written when there is nothing to apply.

use std::time::Duration;

use trellara_storage::{Lsn, Progress};

use super::world::{World, at};
use crate::apply::ApplyExit;
use crate::ports::Clock;

#[test]
fn a_keepalive_position_behind_the_last_transaction_reaches_the_checkpoint() {
    let mut world = World::new(2);
    world.run();
    let position = Lsn::new(5_000);
    world.link.durable.send_replace(Progress { commit_lsn: at(2), position });
    assert!(matches!(world.run(), ApplyExit::Stopped));
    assert_eq!(world.applied(), Progress { commit_lsn: at(2), position });
    assert_eq!(world.effects(), [1, 2]);
}

#[test]
fn a_group_that_reaches_the_newest_transaction_carries_the_keepalive_position_with_it() {
    let mut world = World::new(2);
    let position = Lsn::new(5_000);
    world.link.durable.send_replace(Progress { commit_lsn: at(2), position });
    world.run();
    assert_eq!((world.applied().position, world.target.content().attempts), (position, 1));
}

#[test]
fn i11_an_idle_flow_renews_its_lease_every_ten_seconds() {
    let mut world = World::new(1);
    let (target, clock) = (world.target.clone(), world.clock.clone());
    let exit = world.run_until(move || {
        // The lease runs out unless it is renewed.
        target.content().attempts >= 1 && clock.elapsed() > Duration::from_secs(61)
    });
    assert!(matches!(exit, ApplyExit::Stopped));
    assert_eq!(world.target.content().attempts, 1 + 6);
    assert_eq!(world.effects(), [1]);
}
