#![expect(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;

use proptest::prelude::*;
use trellara_storage::{Lsn, Progress};

use super::Ledger;

const INTERVAL: Duration = Duration::from_secs(10);

fn at(commit_lsn: u64, position: u64) -> Progress {
    Progress { commit_lsn: Lsn::new(commit_lsn), position: Lsn::new(position) }
}

fn lsn(position: u64) -> Lsn {
    Lsn::new(position)
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A ledger that has proven its connection, durable at 100/110.
fn proven() -> Ledger {
    let mut ledger = Ledger::new(at(90, 95), lsn(95), INTERVAL);
    ledger.submitted(at(100, 110));
    ledger.synced();
    assert_eq!(ledger.confirm(None), Some(lsn(110)));
    ledger
}

#[test]
fn i1_a_transaction_is_confirmed_only_after_its_fsync() {
    let mut ledger = proven();
    ledger.submitted(at(120, 130));
    assert_eq!(ledger.confirm(None), None);
    ledger.synced();
    assert_eq!(ledger.confirm(None), Some(lsn(130)));
    assert_eq!(ledger.confirm(None), None);
}

#[test]
fn i1_a_reply_that_is_asked_for_names_the_durable_position_not_the_captured_one() {
    let mut ledger = proven();
    ledger.submitted(at(120, 130));
    ledger.keepalive(lsn(125), true);
    assert_eq!(ledger.confirm(None), Some(lsn(110)));
    assert_eq!(ledger.confirm(None), None);
}

#[test]
fn nothing_new_is_confirmed_before_the_first_durable_record_of_the_connection() {
    let mut ledger = Ledger::new(at(100, 110), lsn(60), INTERVAL);
    ledger.keepalive(lsn(60), true);
    assert_eq!(ledger.confirm(None), Some(lsn(60)));
    ledger.keepalive(lsn(90), true);
    assert_eq!(ledger.confirm(None), Some(lsn(60)));
    assert_eq!(ledger.keepalive_due(seconds(60)), None);
}

#[test]
fn a_keepalive_at_the_durable_position_is_recorded_once_and_then_confirmed() {
    let mut ledger = Ledger::new(at(100, 110), lsn(60), INTERVAL);
    ledger.keepalive(lsn(110), false);
    let due = ledger.keepalive_due(seconds(0)).unwrap();
    assert_eq!(due, at(100, 110));
    ledger.submitted_keepalive(due, seconds(0));
    ledger.keepalive(lsn(110), false);
    assert_eq!(ledger.keepalive_due(seconds(60)), None);
    ledger.synced();
    assert_eq!(ledger.confirm(None), Some(lsn(110)));
    ledger.keepalive(lsn(110), false);
    assert_eq!(ledger.keepalive_due(seconds(60)), None);
}

#[test]
fn keepalive_positions_are_recorded_once_per_interval_unless_asked_for() {
    let mut ledger = proven();
    ledger.keepalive(lsn(150), false);
    let due = ledger.keepalive_due(seconds(1)).unwrap();
    ledger.submitted_keepalive(due, seconds(1));
    ledger.keepalive(lsn(160), false);
    assert_eq!(ledger.keepalive_due(seconds(5)), None);
    assert_eq!(ledger.deadline(), Some(seconds(11)));
    assert_eq!(ledger.keepalive_due(seconds(11)), Some(at(100, 160)));
    ledger.keepalive(lsn(161), true);
    assert_eq!(ledger.keepalive_due(seconds(5)), Some(at(100, 161)));
}

#[test]
fn a_keepalive_that_a_later_transaction_passed_is_not_recorded() {
    let mut ledger = proven();
    ledger.keepalive(lsn(115), true);
    ledger.submitted(at(120, 130));
    assert_eq!(ledger.keepalive_due(seconds(60)), None);
    assert_eq!(ledger.deadline(), None);
}

#[test]
fn a_keepalive_position_waits_for_the_checkpoint_of_a_target_that_answers_and_has_caught_up() {
    let mut ledger = proven();
    ledger.keepalive(lsn(150), true);
    let due = ledger.keepalive_due(seconds(0)).unwrap();
    ledger.submitted_keepalive(due, seconds(0));
    ledger.synced();
    assert_eq!(ledger.confirm(Some(at(100, 110))), Some(lsn(110)));
    assert_eq!(ledger.confirm(Some(at(100, 110))), None);
    assert_eq!(ledger.confirm(Some(at(100, 150))), Some(lsn(150)));
}

#[test]
fn a_keepalive_position_is_confirmed_by_its_fsync_alone_while_the_target_is_away_or_behind() {
    for applied in [None, Some(at(90, 95))] {
        let mut ledger = proven();
        ledger.keepalive(lsn(150), true);
        let due = ledger.keepalive_due(seconds(0)).unwrap();
        ledger.submitted_keepalive(due, seconds(0));
        assert_eq!(ledger.confirm(applied), Some(lsn(110)));
        ledger.synced();
        assert_eq!(ledger.confirm(applied), Some(lsn(150)));
    }
}

#[test]
fn a_checkpoint_ahead_of_the_log_confirms_nothing_that_is_not_here() {
    let mut ledger = proven();
    ledger.keepalive(lsn(100), true);
    assert_eq!(ledger.confirm(Some(at(900, 950))), Some(lsn(110)));
}

#[derive(Clone, Debug)]
enum Happening {
    Transaction(u64),
    Keepalive(u64, bool),
    Record,
    Synced,
    Confirm(Option<u64>),
    Wait(u64),
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        (1..50u64).prop_map(Happening::Transaction),
        (0..80u64, any::<bool>()).prop_map(|(ahead, asked)| Happening::Keepalive(ahead, asked)),
        Just(Happening::Record),
        Just(Happening::Synced),
        prop::option::of(0..400u64).prop_map(Happening::Confirm),
        (0..20u64).prop_map(Happening::Wait),
    ]
}

proptest! {
    #[test]
    fn i1_under_any_schedule_confirmed_moves_only_forward_and_never_beyond_durable(
        happenings in prop::collection::vec(happening(), 1..200),
        slot in 1..=110u64,
    ) {
        let mut ledger = Ledger::new(at(100, 110), lsn(slot), INTERVAL);
        let mut durable = at(100, 110);
        let mut queue = std::collections::VecDeque::new();
        let mut sent = lsn(slot);
        let mut synced_any = false;
        let mut now = 0;
        for happening in happenings {
            let reached = ledger.captured().position.get();
            match happening {
                Happening::Transaction(gap) => {
                    let to = at(reached + gap, reached + gap + 8);
                    ledger.submitted(to);
                    queue.push_back(to);
                }
                Happening::Keepalive(ahead, asked) => ledger.keepalive(lsn((reached + ahead).saturating_sub(20)), asked),
                Happening::Record => {
                    if let Some(due) = ledger.keepalive_due(seconds(now)) {
                        prop_assert!(due.position >= ledger.captured().position);
                        ledger.submitted_keepalive(due, seconds(now));
                        queue.push_back(due);
                    }
                }
                Happening::Synced => {
                    ledger.synced();
                    if let Some(to) = queue.pop_front() {
                        durable = to;
                        synced_any = true;
                    }
                }
                Happening::Confirm(applied) => {
                    let applied = applied.map(|position| at(position, position + 8));
                    if let Some(position) = ledger.confirm(applied) {
                        prop_assert!(position <= durable.position);
                        prop_assert!(position >= sent);
                        prop_assert!(synced_any || position == sent);
                        sent = position;
                    }
                }
                Happening::Wait(time) => now += time,
            }
            prop_assert_eq!(ledger.durable(), durable);
        }
    }
}
