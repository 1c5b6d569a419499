#![expect(clippy::unwrap_used, reason = "tests")]

mod model;

use bytes::Bytes;
use proptest::prelude::*;
use trellara_storage::records::{ColumnRecord, Content, Operation, ReplicaIdentity};
use trellara_storage::{CaptureSession, FlowId, Incarnation, Lsn, RelationId, Timestamp, Xid};

use self::model::{Collected, collect, deliver, plan};
use super::{Assembler, Assembly, Message};
use crate::capture::RelationMessage;
use crate::failure::Code;

fn assembly() -> Assembly {
    Assembly {
        flow: FlowId::new(7),
        incarnation: Incarnation::FIRST,
        session: CaptureSession::new(3),
        encoding: "UTF8".to_owned(),
        part_bytes: 200,
        buffered_bytes: 500,
    }
}

fn assembler() -> Assembler {
    Assembler::new(assembly(), &[], Lsn::new(1))
}

fn relation(xid: Option<u32>, oid: u32, columns: &[&str]) -> Message {
    let columns = columns.iter().map(|name| ColumnRecord {
        name: (*name).to_owned(),
        type_oid: 23,
        type_modifier: -1,
        type_name: None,
        key: true,
    });
    let relation = RelationMessage {
        relation: RelationId::new(oid),
        namespace: "public".to_owned(),
        name: format!("table{oid}"),
        replica_identity: ReplicaIdentity::Default,
        columns: columns.collect(),
    };
    Message::Relation { xid: xid.map(Xid::new), relation }
}

fn begin(lsn: u64, xid: u32) -> Message {
    Message::Begin { final_lsn: Lsn::new(lsn), commit_time: Timestamp::default(), xid: Xid::new(xid) }
}

fn commit(lsn: u64) -> Message {
    Message::Commit {
        commit_lsn: Lsn::new(lsn),
        end_lsn: Lsn::new(lsn + 8),
        commit_time: Timestamp::default(),
    }
}

fn insert(xid: Option<u32>, oid: u32, body: &[u8]) -> Message {
    Message::Change {
        xid: xid.map(Xid::new),
        operation: Operation::Insert,
        relation: RelationId::new(oid),
        body: Bytes::copy_from_slice(body),
    }
}

fn start(xid: u32, first_segment: bool) -> Message {
    Message::StreamStart { xid: Xid::new(xid), first_segment }
}

fn stream_commit(xid: u32, lsn: u64) -> Message {
    Message::StreamCommit {
        xid: Xid::new(xid),
        commit_lsn: Lsn::new(lsn),
        end_lsn: Lsn::new(lsn + 8),
        commit_time: Timestamp::default(),
    }
}

fn abort(xid: u32, sub_xid: u32) -> Message {
    Message::StreamAbort { xid: Xid::new(xid), sub_xid: Xid::new(sub_xid) }
}

fn logical(transactional: bool, prefix: &str) -> Message {
    Message::Logical {
        xid: None,
        transactional,
        lsn: Lsn::new(5),
        prefix: prefix.to_owned(),
        body: Bytes::from_static(b"m"),
    }
}

fn collected(messages: Vec<Message>) -> Collected {
    collect(&mut assembler(), messages).unwrap()
}

#[test]
fn a_small_transaction_is_one_inline_record() {
    let collected =
        collected(vec![begin(10, 1), relation(None, 5, &["a"]), insert(None, 5, b"x"), commit(10)]);
    let [record] = &collected.records[..] else { panic!("one record") };
    let Content::Inline(block) = &record.content else { panic!("inline") };
    assert_eq!(block.body, b"x");
    assert_eq!((record.header.changes, record.header.bytes, record.header.xid), (1, 1, 1));
    assert_eq!((record.header.commit_lsn, record.header.end_lsn), (10, 18));
}

#[test]
fn a_transaction_that_outgrows_a_part_goes_to_parts_streamed_or_not() {
    let mut messages = vec![begin(10, 1), relation(None, 5, &["a"])];
    messages.extend((0..20).map(|_| insert(None, 5, &[7; 40])));
    messages.push(commit(10));
    let collected = collected(messages);
    let Content::Chunked(manifest) = &collected.records[0].content else { panic!("chunked") };
    assert!(manifest.parts.len() > 1);
    assert_eq!(collected.records[0].header.changes, 20);
    assert_eq!(collected.open, 0);
}

#[test]
fn a_repeated_description_keeps_its_version_and_a_new_one_counts_on() {
    let collected = collected(vec![
        begin(10, 1),
        relation(None, 5, &["a"]),
        insert(None, 5, b"x"),
        relation(None, 5, &["a"]),
        insert(None, 5, b"y"),
        relation(None, 5, &["a", "b"]),
        insert(None, 5, b"z"),
        relation(None, 5, &["a"]),
        insert(None, 5, b"w"),
        commit(10),
    ]);
    let Content::Inline(block) = &collected.records[0].content else { panic!("inline") };
    assert_eq!(block.heads.iter().map(|head| head.version).collect::<Vec<_>>(), [1, 1, 2, 1]);
    assert_eq!(collected.relations.len(), 2);
}

#[test]
fn a_description_inside_a_streamed_transaction_is_its_own_until_it_commits() {
    let mut assembler = assembler();
    let first = collect(
        &mut assembler,
        vec![
            begin(10, 1),
            relation(None, 5, &["a"]),
            insert(None, 5, b"x"),
            commit(10),
            start(2, true),
            relation(Some(2), 5, &["a", "b"]),
            insert(Some(2), 5, b"s"),
            Message::StreamStop,
            begin(30, 3),
            insert(None, 5, b"y"),
            commit(30),
            stream_commit(2, 50),
            begin(70, 4),
            insert(None, 5, b"z"),
            commit(70),
        ],
    )
    .unwrap();
    let version = |record: &trellara_storage::records::TransactionRecord| match &record.content {
        Content::Inline(block) => block.heads[0].version,
        Content::Chunked(_) => panic!("inline"),
    };
    assert_eq!(first.records.iter().map(version).collect::<Vec<_>>(), [1, 1, 2, 2]);
}

#[test]
fn a_rolled_back_sub_transaction_takes_exactly_its_own_changes_with_it() {
    let collected = collected(vec![
        start(2, true),
        relation(Some(2), 5, &["a"]),
        insert(Some(2), 5, b"keep"),
        insert(Some(3), 5, b"gone"),
        insert(Some(4), 5, b"kept"),
        Message::StreamStop,
        abort(2, 3),
        stream_commit(2, 50),
    ]);
    let Content::Inline(block) = &collected.records[0].content else { panic!("inline") };
    assert_eq!(block.body, b"keepkept");
    assert_eq!(collected.records[0].header.changes, 2);
}

#[test]
fn an_aborted_streamed_transaction_leaves_no_part_behind() {
    let mut messages = vec![start(2, true), relation(Some(2), 5, &["a"])];
    messages.extend((0..20).map(|_| insert(Some(2), 5, &[7; 40])));
    messages.extend([Message::StreamStop, abort(2, 2)]);
    let collected = collected(messages);
    assert!(collected.records.is_empty());
    assert_eq!((collected.parts, collected.open), (0, 0));
}

#[test]
fn a_truncate_of_several_relations_is_one_change_that_names_them_all() {
    let relations = [RelationId::new(5), RelationId::new(6)];
    let collected = collected(vec![
        begin(10, 1),
        relation(None, 5, &["a"]),
        relation(None, 6, &["a"]),
        Message::Truncate { xid: None, relations: relations.to_vec(), body: Bytes::from_static(&[2, 0, 0]) },
        commit(10),
    ]);
    let Content::Inline(block) = &collected.records[0].content else { panic!("inline") };
    assert_eq!((block.heads.len(), block.heads[0].relation), (1, 5));
    let truncate = crate::capture::Truncate::read(&block.body).unwrap();
    assert_eq!(truncate.flags, 2);
    assert_eq!(truncate.relations.iter().map(|(relation, _)| *relation).collect::<Vec<_>>(), relations);
}

#[test]
fn a_transactional_message_is_a_change_and_the_other_kind_is_counted_and_dropped() {
    let mut assembler = assembler();
    let messages = vec![logical(false, "x"), begin(10, 1), logical(true, "trellara"), commit(10)];
    let collected = collect(&mut assembler, messages).unwrap();
    assert_eq!(collected.records[0].header.changes, 1);
    assert_eq!(collected.heartbeats, 1);
    assert_eq!(assembler.ignored_messages(), 1);
}

#[test]
fn the_origin_is_kept() {
    let origin = Message::Origin { name: "elsewhere".to_owned() };
    let collected = collected(vec![begin(10, 1), origin, commit(10)]);
    assert_eq!(collected.records[0].header.origin.as_deref(), Some("elsewhere"));
}

#[test]
fn a_message_that_cannot_follow_the_ones_before_it_is_a_protocol_defect() {
    let described = || vec![begin(10, 1), relation(None, 5, &["a"])];
    let streamed = || vec![start(2, true), relation(Some(2), 5, &["a"])];
    let with = |mut messages: Vec<Message>, more: Vec<Message>| {
        messages.extend(more);
        messages
    };
    let empty_truncate = Message::Truncate { xid: None, relations: vec![], body: Bytes::from_static(&[0]) };
    for (name, messages) in [
        ("commit without begin", vec![commit(10)]),
        ("another commit LSN", vec![begin(10, 1), commit(11)]),
        ("begin inside of a transaction", vec![begin(10, 1), begin(12, 2)]),
        ("change outside of a transaction", vec![insert(None, 5, b"x")]),
        ("change of an undescribed relation", vec![begin(10, 1), insert(None, 5, b"x")]),
        ("xid outside of a segment", with(described(), vec![insert(Some(9), 5, b"x")])),
        ("no xid inside of a segment", with(streamed(), vec![insert(None, 5, b"x")])),
        ("message outside of a transaction", vec![logical(true, "x")]),
        ("origin outside of a transaction", vec![Message::Origin { name: String::new() }]),
        ("truncate of nothing", with(described(), vec![empty_truncate])),
        ("stop without start", vec![Message::StreamStop]),
        ("segment inside of a transaction", with(described(), vec![start(2, true)])),
        ("segment inside of a segment", with(streamed(), vec![start(3, true)])),
        ("begin inside of a segment", with(streamed(), vec![begin(10, 1)])),
        ("second first segment", with(streamed(), vec![Message::StreamStop, start(2, true)])),
        ("later segment first", vec![start(2, false)]),
        ("end of an unknown streamed transaction", vec![stream_commit(9, 10)]),
        ("end inside of a segment", with(streamed(), vec![stream_commit(2, 10)])),
        ("rollback inside of a segment", with(streamed(), vec![abort(2, 2)])),
    ] {
        let failure = collect(&mut assembler(), messages).err();
        assert_eq!(failure.map(|failure| failure.code), Some(Code::ProtocolDefect), "{name}");
    }
}

#[test]
fn a_rollback_of_what_was_never_received_is_nothing() {
    assert!(collected(vec![abort(8, 8), abort(8, 9)]).records.is_empty());
}

proptest! {
    #[test]
    fn any_interleaving_assembles_to_what_the_model_holds_within_bounded_memory(
        plan in plan(),
        choices in prop::collection::vec(any::<prop::sample::Index>(), 400),
    ) {
        let delivery = deliver(&plan, choices, true);
        let collected = collect(&mut assembler(), delivery.messages).unwrap();
        prop_assert_eq!(&collected.contents, &delivery.expected);
        prop_assert_eq!(collected.open, 0);
        prop_assert!(collected.most_buffered <= 500 + 200, "{}", collected.most_buffered);
    }

    #[test]
    fn the_transaction_digest_does_not_depend_on_delivery(
        plan in plan(),
        choices in prop::collection::vec(any::<prop::sample::Index>(), 400),
    ) {
        let mut streamed = deliver(&plan, choices.clone(), true);
        let mut whole = deliver(&plan, choices, false);
        let digests = |messages: &mut Vec<Message>| {
            let collected = collect(&mut assembler(), std::mem::take(messages)).unwrap();
            let digest = |record: &trellara_storage::records::TransactionRecord| {
                (record.header.commit_lsn, record.header.digest, record.header.changes)
            };
            collected.records.iter().map(digest).collect::<Vec<_>>()
        };
        prop_assert_eq!(digests(&mut streamed.messages), digests(&mut whole.messages));
    }
}
