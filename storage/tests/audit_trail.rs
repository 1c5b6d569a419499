use std::sync::Arc;
use std::time::Duration;

use trellara_storage::families::audit;
use trellara_storage::log::{AuditTrail, start};
use trellara_storage::records::AuditRecord;
use trellara_storage::{MemoryStore, Timestamp};

fn record(n: u32) -> AuditRecord {
    AuditRecord {
        at: Timestamp::from_unix_micros(1),
        actor: "operator".to_owned(),
        origin: "socket".to_owned(),
        action: "flow.pause".to_owned(),
        subject: format!("store-{n}:sales"),
        reason: None,
        outcome: "done".to_owned(),
        previous: String::new(),
    }
}

#[tokio::test]
async fn many_who_append_at_once_and_some_who_give_up_leave_one_chain() {
    let store = Arc::new(MemoryStore::new());
    let (log, threads) = start(store.clone()).unwrap();
    let trail = AuditTrail::new(log.clone());
    let mut appending = Vec::new();
    for n in 0..50 {
        let trail = trail.clone();
        appending.push(tokio::spawn(async move { trail.append(record(n)).await }));
    }
    for given_up in appending.iter().step_by(7) {
        given_up.abort();
    }
    let mut numbers = Vec::new();
    for appended in appending {
        if let Ok(number) = appended.await {
            numbers.push(number.unwrap());
        }
    }
    let last = trail.append(record(50)).await.unwrap();
    numbers.sort();
    numbers.dedup();
    assert!(numbers.len() >= 42, "every number is given out once");
    assert_eq!(audit::verify(&*store).unwrap(), last);
    drop((trail, log));
    assert!(threads.stop(Duration::from_secs(20)));
}
