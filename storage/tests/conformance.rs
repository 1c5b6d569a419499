use trellara_storage::MemoryStore;
use trellara_storage::testing::conformance::CASES;

#[test]
fn the_in_memory_twin_keeps_every_promise_of_a_store() {
    for check in CASES {
        check(&MemoryStore::new());
    }
}

#[cfg(feature = "rocks")]
#[test]
fn rocksdb_keeps_every_promise_of_a_store() {
    for check in CASES {
        let directory = tempfile::tempdir().unwrap();
        check(&crate::rocks::open(directory.path()));
    }
}
