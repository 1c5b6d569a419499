//! Whatever fails, is cut or killed: one effect each, in order, and only the poison is parked.

use std::task::Poll;

use proptest::prelude::*;

use super::world::{World, at, block_on, id, task};
use crate::apply::{ApplyExit, GroupLimits};
use crate::failure::Place;
use crate::quarantine::{Actor, discard, request_replay};
use crate::testing::scripted_target::{Fault, answered};

#[derive(Clone, Copy, Debug)]
enum Way {
    Repaired,
    Discarded,
}

fn fault(n: u8) -> Option<Fault> {
    match n {
        0 => Some(Fault::AnswerLost),
        1 => Some(Fault::CommitLost),
        2 => Some(Fault::CommitLate),
        3 => Some(Fault::Fails(answered(Place::Change(0), "40P01"))),
        4 => Some(Fault::Fails(answered(Place::Checkpoint, "57P01"))),
        _ => None,
    }
}

/// Kills the engine as often as asked, then lets one run to its end.
fn run_through(world: &mut World, kills: &mut impl Iterator<Item = usize>) -> ApplyExit {
    while let Some(steps) = kills.next().filter(|steps| *steps > 0) {
        world.run_and_kill(steps);
    }
    world.run()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn i2_i4_i5_one_effect_each_in_order_whatever_fails_is_cut_or_killed(
        length in 1_u64..30,
        group in 1_usize..12,
        poison in proptest::option::of((1_u64..30, prop_oneof![Just(Way::Repaired), Just(Way::Discarded)])),
        faults in proptest::collection::vec(0_u8..12, 0..40),
        kills in proptest::collection::vec(0_usize..40, 0..12),
    ) {
        let mut world = World::new(length);
        world.limits = GroupLimits { transactions: group, ..world.limits };
        world.target.content().faults = faults.into_iter().map(fault).collect();
        let poison = poison.filter(|(n, _)| *n <= length);
        if let Some((n, _)) = poison {
            world.poison(n, "23514");
        }
        let mut kills = kills.into_iter();
        let exit = run_through(&mut world, &mut kills);
        let Some((n, way)) = poison else {
            prop_assert!(matches!(exit, ApplyExit::Stopped), "{exit:?}");
            prop_assert_eq!(world.effects(), (1..=length).collect::<Vec<_>>());
            prop_assert!(world.quarantined().is_empty());
            return Ok(());
        };
        prop_assert!(matches!(exit, ApplyExit::Quarantined(_)), "{exit:?}");
        prop_assert_eq!(world.effects(), (1..n).collect::<Vec<_>>());
        let parked = world.quarantined();
        prop_assert_eq!(parked.iter().map(|record| record.transaction).collect::<Vec<_>>(), vec![id(n)]);

        let by = Actor { name: "ops".to_owned(), reason: Some("seen".to_owned()), at: Default::default() };
        let store = &*world.log.0;
        let decision = match way {
            Way::Repaired => {
                world.target.content().poison.clear();
                request_replay(store, id(n), by, &world.events)
            }
            Way::Discarded => discard(store, id(n), by, &parked[0].digest.to_string(), &world.events),
        };
        trellara_storage::Store::write(store, decision.unwrap().batch, trellara_storage::Durability::Synced).unwrap();
        let exit = run_through(&mut world, &mut kills);
        prop_assert!(matches!(exit, ApplyExit::Stopped), "{exit:?}");
        let discarded = matches!(way, Way::Discarded);
        prop_assert_eq!(world.effects(), (1..=length).filter(|m| *m != n || !discarded).collect::<Vec<_>>());
        let outcomes: Vec<_> = world.target.content().outcomes.iter().map(|(lsn, _)| *lsn).collect();
        prop_assert_eq!(outcomes, if discarded { vec![at(n)] } else { Vec::new() });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    /// Two engines, each started again whenever it ends, take turns as the schedule says, while leases run
    /// out and answers get lost.
    #[test]
    fn i4_i11_two_engines_on_one_flow_never_double_or_reorder(
        length in 1_u64..20,
        group in 1_usize..6,
        faults in proptest::collection::vec(0_u8..8, 0..30),
        schedule in proptest::collection::vec((any::<bool>(), 1_usize..12, any::<bool>()), 1..60),
    ) {
        let mut one = World::new(length);
        one.limits = GroupLimits { transactions: group, ..one.limits };
        one.target.content().faults = faults.into_iter().map(fault).collect();
        let mut two = one.rival(length);
        let mut tasks = [task(&mut one), task(&mut two)];
        for (second, steps, lease_live) in schedule {
            if let Some(row) = &mut one.target.content().row {
                row.lease_live = lease_live;
            }
            let running = &mut tasks[usize::from(second)];
            let ended = block_on(steps_of(running, steps));
            if ended {
                *running = task(if second { &mut two } else { &mut one });
            }
        }
        drop(tasks);
        // A frozen COMMIT of the other engine may renew its lease even now.
        one.take_over = true;
        let exit = one.run();
        prop_assert!(matches!(exit, ApplyExit::Stopped), "{exit:?}");
        prop_assert_eq!(one.effects(), (1..=length).collect::<Vec<_>>());
        prop_assert!(one.quarantined().is_empty() && two.quarantined().is_empty());
    }
}

/// Lets a task run for so many steps; true when it ended.
async fn steps_of(task: &mut super::world::Task, steps: usize) -> bool {
    let mut left = steps;
    std::future::poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(false);
        }
        left -= 1;
        cx.waker().wake_by_ref();
        task.as_mut().poll(cx).map(|_| true)
    })
    .await
}
