use trellara_storage::families::{dedup, flows, log};
use trellara_storage::inspect::{flow_ranges, record};
use trellara_storage::records::FlowPart;
use trellara_storage::testing::StoredFlow;
use trellara_storage::{Batch, Durability, Error, Family, FlowId, Lsn, MemoryStore, Store};

const FLOW: FlowId = FlowId::new(1);

fn filled(store: &MemoryStore) {
    let mut flow = StoredFlow::new(store, FLOW);
    flow.capture(1000, 10, 5);
    flow.capture_chunked(2000, 3, 10, 6);
}

#[test]
fn every_flow_shows_its_range_and_damage_of_one_stays_with_it() {
    let store = MemoryStore::new();
    filled(&store);
    StoredFlow::new(&store, FlowId::new(2));
    let mut batch = Batch::new();
    batch.put(Family::Flows, flows::key(FlowId::new(2), FlowPart::Identity), b"damaged".to_vec());
    store.write(batch, Durability::Synced).unwrap();
    let ranges = flow_ranges(&store).unwrap();
    assert_eq!((ranges[0].first, ranges[0].last), (Some(Lsn::new(1000)), Some(Lsn::new(2000))));
    assert_eq!(ranges[0].parts.as_ref().unwrap().used().transactions, 2);
    assert!(matches!(ranges[1].parts, Err(Error::Corruption { .. })));
}

#[test]
fn records_of_every_kind_decode() {
    let store = MemoryStore::new();
    filled(&store);
    let incarnation = trellara_storage::Incarnation::FIRST;
    let show = |family, key: &[u8]| record(&store, family, key).unwrap().unwrap();
    let inline = show(Family::Log, &log::key(FLOW, incarnation, Lsn::new(1000)));
    assert_eq!(inline["commit_lsn"], "0/3E8");
    assert_eq!(inline["content"]["inline"][0]["operation"], "insert");
    let chunked = show(Family::Log, &log::key(FLOW, incarnation, Lsn::new(2000)));
    assert_eq!(chunked["content"]["chunked"]["parts"], 3);
    assert_eq!(show(Family::Dedup, &dedup::key(FLOW, incarnation, Lsn::new(1000)))["received"], 5);
    assert_eq!(show(Family::Flows, &flows::key(FLOW, FlowPart::Identity))["name"], "store-1:sales");
    assert_eq!(record(&store, Family::Log, b"nothing").unwrap(), None);
}

#[test]
fn a_damaged_record_is_named_instead_of_decoded() {
    let store = MemoryStore::new();
    filled(&store);
    let key = log::key(FLOW, trellara_storage::Incarnation::FIRST, Lsn::new(1000));
    let mut value = store.get(Family::Log, &key).unwrap().unwrap();
    *value.last_mut().unwrap() ^= 1;
    let mut batch = Batch::new();
    batch.put(Family::Log, key.clone(), value);
    store.write(batch, Durability::Synced).unwrap();
    assert!(matches!(record(&store, Family::Log, &key), Err(Error::Corruption { .. })));
}
