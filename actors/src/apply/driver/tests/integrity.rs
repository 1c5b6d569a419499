//! Damaged records are parked or refused, never skipped or guessed (I10).

use trellara_storage::families::log;
use trellara_storage::records::{Content, TransactionRecord};
use trellara_storage::{Batch, Durability, Family, Incarnation, Store};

use super::world::{FLOW, World, at, id, record};
use crate::apply::ApplyExit;
use crate::failure::Code;
use crate::quarantine::{Actor, discard};

fn rewrite(world: &World, record: &TransactionRecord) {
    let mut batch = Batch::new();
    log::put(&mut batch, FLOW, Incarnation::FIRST, record);
    world.log.0.write(batch, Durability::Synced).unwrap();
}

fn flip(world: &World, n: u64) {
    let key = log::key(FLOW, Incarnation::FIRST, at(n));
    let mut value = world.log.0.get(Family::Log, &key).unwrap().unwrap();
    *value.last_mut().unwrap() ^= 1;
    let mut batch = Batch::new();
    batch.put(Family::Log, key, value);
    world.log.0.write(batch, Durability::Synced).unwrap();
}

fn parked(world: &mut World, code: Code) {
    let exit = world.run();
    let ApplyExit::Quarantined(record) = exit else { panic!("{exit:?}") };
    assert_eq!((record.failure.class.as_str(), record.failure.code), ("integrity", code.to_string()));
    assert_eq!(record.transaction, id(2));
    assert_eq!(world.effects(), [1]);
}

#[test]
fn i10_a_flipped_byte_parks_that_transaction_and_a_decision_passes_it() {
    let mut world = World::new(3);
    flip(&world, 2);
    parked(&mut world, Code::RecordDamaged);
    let by = Actor { name: "ops".to_owned(), reason: Some("lost".to_owned()), at: Default::default() };
    let digest = world.quarantined()[0].digest.to_string();
    assert_eq!(digest, trellara_storage::TransactionDigest::new(record(2).header.digest).to_string());
    let decision = discard(&*world.log.0, id(2), by, &digest, &world.events).unwrap();
    world.log.0.write(decision.batch, Durability::Synced).unwrap();
    assert!(matches!(world.run(), ApplyExit::Stopped));
    assert_eq!(world.effects(), [1, 3]);
    assert_eq!(world.target.content().outcomes.len(), 1);
}

#[test]
fn i10_a_record_whose_content_is_another_fails_its_digest() {
    let mut world = World::new(3);
    let mut other = record(2);
    if let Content::Inline(block) = &mut other.content {
        block.body[0] ^= 1;
    }
    rewrite(&world, &other);
    parked(&mut world, Code::DigestMismatch);
}

#[test]
fn i10_a_relation_version_that_is_missing_is_not_guessed() {
    let mut world = World::new(3);
    let mut other = record(2);
    if let Content::Inline(block) = &mut other.content {
        block.heads[0].version = 2;
    }
    rewrite(&world, &other);
    parked(&mut world, Code::RelationVersionMissing);
}

#[test]
fn i10_a_hole_where_a_durable_transaction_should_be_stops_the_flow() {
    let mut world = World::new(3);
    world.run();
    world.append(4);
    let mut batch = Batch::new();
    batch.delete(Family::Log, log::key(FLOW, Incarnation::FIRST, at(4)));
    world.log.0.write(batch, Durability::Synced).unwrap();
    let exit = world.run();
    let ApplyExit::Failed(failure) = exit else { panic!("{exit:?}") };
    assert_eq!(failure.code, Code::RecordDamaged);
    assert_eq!(world.effects(), [1, 2, 3]);
}
