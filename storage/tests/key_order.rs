//! Byte order of keys is semantic order, and every key lies in the range of what it belongs to.

use proptest::prelude::*;
use trellara_storage::codec::key::Key;
use trellara_storage::families::chunks::PartKey;
use trellara_storage::families::{dedup, events, log, quarantine, relations};
use trellara_storage::{
    CaptureSession, FlowId, Incarnation, Lsn, RelationId, RelationVersion, TransactionId, Xid,
};

type History = (u32, u32, u64);

fn log_key((flow, incarnation, lsn): History) -> Vec<u8> {
    log::key(FlowId::new(flow), Incarnation::new(incarnation), Lsn::new(lsn))
}

fn part((flow, incarnation, session, xid, n): (u32, u32, u32, u32, u32)) -> PartKey {
    PartKey {
        flow: FlowId::new(flow),
        incarnation: Incarnation::new(incarnation),
        session: CaptureSession::new(session),
        xid: Xid::new(xid),
        n,
    }
}

proptest! {
    #[test]
    fn log_dedup_and_quarantine_order_by_flow_incarnation_and_commit_lsn(a: History, b: History) {
        prop_assert_eq!(log_key(a).cmp(&log_key(b)), a.cmp(&b));
        let dedup = |(flow, incarnation, lsn): History| {
            dedup::key(FlowId::new(flow), Incarnation::new(incarnation), Lsn::new(lsn))
        };
        prop_assert_eq!(dedup(a).cmp(&dedup(b)), a.cmp(&b));
        let quarantine = |(flow, incarnation, lsn): History| {
            quarantine::key(TransactionId {
                flow: FlowId::new(flow),
                incarnation: Incarnation::new(incarnation),
                commit_lsn: Lsn::new(lsn),
                xid: Xid::new(3),
            })
        };
        prop_assert_eq!(quarantine(a).cmp(&quarantine(b)), a.cmp(&b));
    }

    #[test]
    fn chunks_order_by_flow_incarnation_session_xid_and_number(
        a: (u32, u32, u32, u32, u32), b: (u32, u32, u32, u32, u32),
    ) {
        prop_assert_eq!(part(a).bytes().cmp(&part(b).bytes()), a.cmp(&b));
    }

    #[test]
    fn events_and_relations_order_by_their_parts(a: (u32, u64), b: (u32, u64), c: [u32; 4], d: [u32; 4]) {
        let event = |(flow, sequence)| events::key(FlowId::new(flow), sequence);
        prop_assert_eq!(event(a).cmp(&event(b)), a.cmp(&b));
        let relation = |[flow, incarnation, relation, version]: [u32; 4]| {
            relations::key(
                FlowId::new(flow),
                Incarnation::new(incarnation),
                RelationId::new(relation),
                RelationVersion::new(version),
            )
        };
        prop_assert_eq!(relation(c).cmp(&relation(d)), c.cmp(&d));
    }

    #[test]
    fn a_range_holds_exactly_what_begins_with_its_prefix(
        flow in 0..u32::MAX, incarnation: u32, key: History, near in 0u32..3,
    ) {
        let key = (flow.saturating_add(near), key.1, key.2);
        let (from, to) = Key::flow(FlowId::new(flow)).range();
        let bytes = log_key(key);
        prop_assert_eq!(from <= bytes && bytes < to, key.0 == flow);
        let (from, to) = Key::history(FlowId::new(flow), Incarnation::new(incarnation)).range();
        prop_assert_eq!(from <= bytes && bytes < to, key.0 == flow && key.1 == incarnation);
    }
}
