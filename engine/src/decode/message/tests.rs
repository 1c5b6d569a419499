#![expect(clippy::unwrap_used, reason = "a failed expectation in a test is a failed test")]

use bytes::{BufMut, BytesMut};
use proptest::prelude::*;
use trellara_actors::capture::RelationMessage;
use trellara_storage::records::{ColumnRecord, ReplicaIdentity};

use super::*;

/// Writes a message as pgoutput does; the decoder's counterpart.
fn encode(message: &Message) -> Bytes {
    let mut out = BytesMut::new();
    match message {
        Message::Begin { final_lsn, commit_time, xid } => {
            out.put_u8(b'B');
            out.put_u64(final_lsn.get());
            put_time(&mut out, *commit_time);
            out.put_u32(xid.get());
        }
        Message::Commit { commit_lsn, end_lsn, commit_time } => {
            out.put_u8(b'C');
            put_commit(&mut out, *commit_lsn, *end_lsn, *commit_time);
        }
        Message::StreamCommit { xid, commit_lsn, end_lsn, commit_time } => {
            out.put_u8(b'c');
            out.put_u32(xid.get());
            put_commit(&mut out, *commit_lsn, *end_lsn, *commit_time);
        }
        Message::StreamAbort { xid, sub_xid } => {
            out.put_u8(b'A');
            out.put_u32(xid.get());
            out.put_u32(sub_xid.get());
        }
        Message::StreamStart { xid, first_segment } => {
            out.put_u8(b'S');
            out.put_u32(xid.get());
            out.put_u8((*first_segment).into());
        }
        Message::StreamStop => out.put_u8(b'E'),
        Message::Origin { name } => {
            out.put_u8(b'O');
            out.put_u64(0);
            put_string(&mut out, name);
        }
        Message::Relation { xid, relation } => {
            put_start(&mut out, b'R', *xid);
            put_relation(&mut out, relation);
        }
        Message::Change { xid, operation, relation, body } => {
            let kind = match operation {
                Operation::Insert => b'I',
                Operation::Update => b'U',
                Operation::Delete | Operation::Truncate | Operation::Message => b'D',
            };
            put_start(&mut out, kind, *xid);
            out.put_u32(relation.get());
            out.put_slice(body);
        }
        Message::Truncate { xid, relations, body } => {
            put_start(&mut out, b'T', *xid);
            out.put_u32(u32::try_from(relations.len()).unwrap());
            out.put_slice(body);
        }
        Message::Logical { xid, body, .. } => {
            put_start(&mut out, b'M', *xid);
            out.put_slice(body);
        }
    }
    out.freeze()
}

fn put_start(out: &mut BytesMut, kind: u8, xid: Option<Xid>) {
    out.put_u8(kind);
    if let Some(xid) = xid {
        out.put_u32(xid.get());
    }
}

fn put_commit(out: &mut BytesMut, commit: Lsn, end: Lsn, time: Timestamp) {
    out.put_u8(0);
    out.put_u64(commit.get());
    out.put_u64(end.get());
    put_time(out, time);
}

fn put_time(out: &mut BytesMut, time: Timestamp) {
    out.put_i64(time.unix_micros() - POSTGRES_EPOCH_MICROS);
}

fn put_string(out: &mut BytesMut, text: &str) {
    out.put_slice(text.as_bytes());
    out.put_u8(0);
}

fn put_relation(out: &mut BytesMut, relation: &RelationMessage) {
    out.put_u32(relation.relation.get());
    put_string(out, &relation.namespace);
    put_string(out, &relation.name);
    out.put_u8(match relation.replica_identity {
        ReplicaIdentity::Default => b'd',
        ReplicaIdentity::Nothing => b'n',
        ReplicaIdentity::Full => b'f',
        ReplicaIdentity::Index => b'i',
    });
    out.put_u16(u16::try_from(relation.columns.len()).unwrap());
    for column in &relation.columns {
        out.put_u8(column.key.into());
        put_string(out, &column.name);
        out.put_u32(column.type_oid);
        out.put_i32(column.type_modifier);
    }
}

fn type_message(xid: Option<Xid>, oid: u32, namespace: &str, name: &str) -> Bytes {
    let mut out = BytesMut::new();
    put_start(&mut out, b'Y', xid);
    out.put_u32(oid);
    put_string(&mut out, namespace);
    put_string(&mut out, name);
    out.freeze()
}

fn logical_body(transactional: bool, lsn: Lsn, prefix: &str, content: &[u8]) -> Bytes {
    let mut out = BytesMut::new();
    out.put_u8(transactional.into());
    out.put_u64(lsn.get());
    put_string(&mut out, prefix);
    out.put_u32(u32::try_from(content.len()).unwrap());
    out.put_slice(content);
    out.freeze()
}

fn times() -> impl Strategy<Value = Timestamp> {
    (-1_000_000_000_000_000i64..4_000_000_000_000_000).prop_map(Timestamp::from_unix_micros)
}

fn column() -> impl Strategy<Value = ColumnRecord> {
    ("[a-zäß_]{0,12}", 1u32..9_000, any::<i32>(), any::<bool>()).prop_map(
        |(name, type_oid, type_modifier, key)| ColumnRecord {
            name,
            type_oid,
            type_modifier,
            type_name: None,
            key,
        },
    )
}

fn change() -> impl Strategy<Value = (Operation, Bytes)> {
    let old_and_new: &[u8] = &[b'K', 0, 2, b't', 0, 0, 0, 1, b'7', b'n', b'N', 0, 1, b'u'];
    prop_oneof![
        Just((Operation::Insert, Bytes::from_static(&[b'N', 0, 1, b't', 0, 0, 0, 2, b'a', b'b']))),
        Just((Operation::Update, Bytes::from(old_and_new.to_vec()))),
        Just((Operation::Delete, Bytes::from_static(&[b'O', 0, 1, b'b', 0, 0, 0, 0]))),
    ]
}

/// Messages that may stand inside a segment and outside; `xid` tells which.
fn data(xid: Option<Xid>) -> impl Strategy<Value = Message> {
    let identity = prop_oneof![
        Just(ReplicaIdentity::Default),
        Just(ReplicaIdentity::Nothing),
        Just(ReplicaIdentity::Full),
        Just(ReplicaIdentity::Index)
    ];
    let relation =
        (any::<u32>(), "[a-z]{1,8}", "[A-Z ]{1,8}", identity, proptest::collection::vec(column(), 0..5))
            .prop_map(move |(relation, namespace, name, replica_identity, columns)| Message::Relation {
                xid,
                relation: RelationMessage {
                    relation: RelationId::new(relation),
                    namespace,
                    name,
                    replica_identity,
                    columns,
                },
            });
    let change = (any::<u32>(), change()).prop_map(move |(relation, (operation, body))| Message::Change {
        xid,
        operation,
        relation: RelationId::new(relation),
        body,
    });
    let truncate =
        (0u8..4, proptest::collection::vec(any::<u32>(), 1..4)).prop_map(move |(flags, relations)| {
            let oids = relations.iter().flat_map(|oid| oid.to_be_bytes());
            let body = std::iter::once(flags).chain(oids).collect();
            Message::Truncate { xid, relations: relations.into_iter().map(RelationId::new).collect(), body }
        });
    let content = proptest::collection::vec(any::<u8>(), 0..20);
    let logical = (any::<bool>(), any::<u64>(), "[a-z]{0,9}", content).prop_map(
        move |(transactional, lsn, prefix, content)| {
            let lsn = Lsn::new(lsn);
            let body = logical_body(transactional, lsn, &prefix, &content);
            Message::Logical { xid, transactional, lsn, prefix, body }
        },
    );
    let origin = "[a-z]{0,9}".prop_map(|name| Message::Origin { name });
    prop_oneof![relation, change, truncate, logical, origin]
}

fn marks() -> impl Strategy<Value = Message> {
    let lsns = || (any::<u64>().prop_map(Lsn::new), any::<u64>().prop_map(Lsn::new));
    let xid = || any::<u32>().prop_map(Xid::new);
    prop_oneof![
        (lsns(), times(), xid()).prop_map(|((final_lsn, _), commit_time, xid)| Message::Begin {
            final_lsn,
            commit_time,
            xid
        }),
        (lsns(), times()).prop_map(|((commit_lsn, end_lsn), commit_time)| Message::Commit {
            commit_lsn,
            end_lsn,
            commit_time
        }),
        (xid(), lsns(), times()).prop_map(|(xid, (commit_lsn, end_lsn), commit_time)| {
            Message::StreamCommit { xid, commit_lsn, end_lsn, commit_time }
        }),
        (xid(), xid()).prop_map(|(xid, sub_xid)| Message::StreamAbort { xid, sub_xid }),
    ]
}

fn stream() -> impl Strategy<Value = Vec<Message>> {
    let outside = prop_oneof![marks(), data(None)].prop_map(|message| vec![message]);
    let segment = (any::<u32>(), any::<bool>(), proptest::collection::vec(data(Some(Xid::new(9))), 0..4))
        .prop_map(|(xid, first_segment, inside)| {
            let start = Message::StreamStart { xid: Xid::new(xid), first_segment };
            std::iter::once(start).chain(inside).chain([Message::StreamStop]).collect()
        });
    proptest::collection::vec(prop_oneof![outside, segment], 0..12)
        .prop_map(|parts: Vec<Vec<_>>| parts.concat())
}

proptest! {
    #[test]
    fn a_stream_reads_back_as_it_was_written(messages in stream()) {
        let mut decoder = Decoder::default();
        for message in messages {
            prop_assert_eq!(decoder.decode(&encode(&message)), Ok(Some(message)));
        }
    }

    #[test]
    fn a_message_with_a_byte_less_or_a_byte_more_is_refused(message in prop_oneof![marks(), data(None)]) {
        let whole = encode(&message);
        prop_assert!(Decoder::default().decode(&whole.slice(..whole.len() - 1)).is_err());
        let longer: Bytes = whole.iter().copied().chain([0]).collect();
        prop_assert!(Decoder::default().decode(&longer).is_err());
    }

    #[test]
    fn arbitrary_bytes_never_panic(messages in proptest::collection::vec(
        (prop_oneof![Just(b'R'), Just(b'Y'), Just(b'I'), Just(b'U'), Just(b'D'), Just(b'T'), Just(b'M'),
                     Just(b'S'), Just(b'E'), Just(b'B'), Just(b'c'), any::<u8>()],
         proptest::collection::vec(any::<u8>(), 0..60)), 0..6)) {
        let mut decoder = Decoder::default();
        for (kind, rest) in messages {
            let _ = decoder.decode(&std::iter::once(kind).chain(rest).collect());
        }
    }
}

#[test]
fn a_type_message_names_the_columns_type_of_the_relation_behind_it() {
    let mut decoder = Decoder::default();
    let column = ColumnRecord {
        name: "mood".into(),
        type_oid: 16_400,
        type_modifier: -1,
        type_name: None,
        key: false,
    };
    let mut relation = RelationMessage {
        relation: RelationId::new(5),
        namespace: "public".into(),
        name: "people".into(),
        replica_identity: ReplicaIdentity::Default,
        columns: vec![column],
    };
    assert_eq!(decoder.decode(&type_message(None, 16_400, "public", "mood")), Ok(None));
    let encoded = encode(&Message::Relation { xid: None, relation: relation.clone() });
    relation.columns[0].type_name = Some(("public".into(), "mood".into()));
    assert_eq!(decoder.decode(&encoded), Ok(Some(Message::Relation { xid: None, relation })));
}

#[test]
fn marks_in_the_wrong_place_are_refused() {
    let start = encode(&Message::StreamStart { xid: Xid::new(1), first_segment: true });
    let abort = encode(&Message::StreamAbort { xid: Xid::new(1), sub_xid: Xid::new(1) });
    let mut decoder = Decoder::default();
    assert!(decoder.decode(&encode(&Message::StreamStop)).is_err());
    assert!(decoder.decode(&start).is_ok());
    assert!(decoder.decode(&start).is_err());
    assert!(decoder.decode(&abort).is_err());
    assert!(decoder.decode(&encode(&Message::StreamStop)).is_ok());
    assert!(decoder.decode(&abort).is_ok());
}

#[test]
fn prepared_transactions_were_not_asked_for_and_are_refused() {
    for kind in *b"bPKrp" {
        assert!(Decoder::default().decode(&Bytes::from(vec![kind; 40])).is_err());
    }
}

#[test]
fn a_body_shares_the_memory_of_its_message() {
    let message = encode(&Message::Change {
        xid: None,
        operation: Operation::Insert,
        relation: RelationId::new(1),
        body: Bytes::from_static(&[b'N', 0, 0]),
    });
    let decoded = Decoder::default().decode(&message).unwrap();
    let Some(Message::Change { body, .. }) = decoded else { panic!("a change") };
    assert_eq!(body.as_ptr(), message.slice(5..).as_ptr());
}

#[test]
fn a_truncate_whose_count_options_or_oids_do_not_add_up_is_refused() {
    let whole = [b'T', 0, 0, 0, 1, 3, 0, 0, 0, 7];
    let decode = |bytes: &[u8]| Decoder::default().decode(&Bytes::copy_from_slice(bytes));
    let Ok(Some(Message::Truncate { relations, body, .. })) = decode(&whole) else { panic!("a truncate") };
    assert_eq!(relations, [RelationId::new(7)]);
    assert_eq!(body, whole[5..]);
    for (at, wrong) in [(4, 2), (4, 0), (5, 4)] {
        let mut broken = whole;
        broken[at] = wrong;
        assert!(decode(&broken).is_err());
    }
    assert!(decode(&[b'T', 0, 0, 0, 0, 0]).is_err());
}
