//! Seeded schedules of the deterministic simulation, and planted defects that each oracle must find.
//!
//! `TRELLARA_SIM_SEED=n` replays one schedule.

use trellara_actors::testing::simulation::{Exercised, Flaws, Plant, run};

const SCHEDULES: u64 = 1_000;
const SEED: &str = "TRELLARA_SIM_SEED";

fn seeds() -> Vec<u64> {
    match std::env::var(SEED) {
        Ok(seed) => vec![seed.parse().expect("the seed is a number")],
        Err(_) => (1..=SCHEDULES).collect(),
    }
}

#[test]
fn i1_to_i8_and_i11_hold_in_every_schedule() {
    let mut sum = Exercised::default();
    let seeds = seeds();
    for &seed in &seeds {
        match run(seed, Plant::default()) {
            Ok(exercised) => add(&mut sum, exercised),
            Err(violation) => panic!("{violation}; replay with {SEED}={seed}"),
        }
    }
    if seeds.len() > 1 {
        assert!(sum.crashes > 0 && sum.quarantined > 0 && sum.fenced > 0, "{sum:?}");
        assert!(sum.other_histories > 0 && sum.lineages_lost > 0, "{sum:?}");
        assert!(sum.stores_lost > 0 && sum.adopted > 0 && sum.redelivered > 0 && sum.chunked > 0, "{sum:?}");
        assert!(sum.arrived > seeds.len() / 2, "{sum:?}");
    }
}

#[test]
fn a_seed_is_a_schedule() {
    for seed in 1..20 {
        assert_eq!(run(seed, Plant::default()), run(seed, Plant::default()));
    }
}

#[test]
fn i1_a_disk_that_lies_is_found() {
    found("I1", Plant { lying_disk: true, ..Plant::default() });
}

#[test]
fn i2_a_lost_change_is_found() {
    found("I2", flawed(Flaws { drops_a_change: true, ..Flaws::default() }));
}

#[test]
fn i3_rows_without_their_checkpoint_are_found() {
    found("I3", flawed(Flaws { leaves_the_checkpoint: true, ..Flaws::default() }));
}

#[test]
fn i4_a_second_effect_is_found() {
    found("I4", flawed(Flaws { repeats_a_commit: true, ..Flaws::default() }));
}

#[test]
fn i5_a_transaction_that_was_skipped_is_found() {
    found("I5", flawed(Flaws { skips_a_transaction: true, ..Flaws::default() }));
}

#[test]
fn i7_missing_evidence_is_found() {
    found("I7", Plant { lost_evidence: true, ..Plant::default() });
}

#[test]
fn i8_a_mix_of_two_histories_is_found() {
    found("I8", Plant { lying_slot: true, ..Plant::default() });
}

#[test]
fn i11_a_write_by_a_former_holder_is_found() {
    found("I11", flawed(Flaws { forgets_the_token: true, ..Flaws::default() }));
}

fn flawed(target: Flaws) -> Plant {
    Plant { target, ..Plant::default() }
}

/// Some schedule runs into the planted defect, and the oracle of this invariant is the one that fires.
fn found(invariant: &str, plant: Plant) {
    let mut others = Vec::new();
    for seed in 1..=SCHEDULES {
        match run(seed, plant) {
            Err(violation) if violation.invariant == invariant => return,
            Err(violation) => others.push(violation.to_string()),
            Ok(_) => {}
        }
    }
    panic!("no schedule found it as {invariant}, but: {others:?}");
}

fn add(sum: &mut Exercised, one: Exercised) {
    sum.transactions += one.transactions;
    sum.effects += one.effects;
    sum.crashes += one.crashes;
    sum.quarantined += one.quarantined;
    sum.other_histories += one.other_histories;
    sum.lineages_lost += one.lineages_lost;
    sum.fenced += one.fenced;
    sum.stores_lost += one.stores_lost;
    sum.adopted += one.adopted;
    sum.redelivered = sum.redelivered.max(one.redelivered);
    sum.chunked += one.chunked;
    sum.arrived += one.arrived;
}
