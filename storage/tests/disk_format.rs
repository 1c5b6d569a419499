//! Golden bytes: what stores in the field look like. A change here is a new format version, never an edit.

use trellara_storage::codec::value;
use trellara_storage::families::chunks::PartKey;
use trellara_storage::families::{audit, dedup, default, events, flows, log, quarantine, relations};
use trellara_storage::records::{
    ChangeBlock, ChangeHead, Content, DedupRecord, Durable, FlowPart, LoggedBytes, Manifest, Operation,
    Outcome, PartRef, StoreIdentity, TransactionHeader, TransactionRecord,
};
use trellara_storage::store::Entry;
use trellara_storage::{
    Batch, CaptureSession, Family, FlowId, Incarnation, InstanceId, Lsn, Progress, RelationId,
    RelationVersion, Timestamp, TransactionId, Xid,
};

const FLOW: FlowId = FlowId::new(0x0102_0304);
const INCARNATION: Incarnation = Incarnation::new(5);
const LSN: Lsn = Lsn::new(0x1122_3344_5566_7788);

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Keys and values of a batch.
fn written(batch: Batch) -> Vec<(Family, String, String)> {
    batch
        .into_entries()
        .into_iter()
        .map(|entry| match entry {
            Entry::Put { family, key, value } => (family, hex(&key), hex(&value)),
            Entry::Delete { .. } | Entry::DeleteRange { .. } => panic!("only puts are written here"),
        })
        .collect()
}

#[test]
fn keys_are_big_endian_and_begin_with_their_flow() {
    let part = PartKey {
        flow: FLOW,
        incarnation: INCARNATION,
        session: CaptureSession::new(6),
        xid: Xid::new(7),
        n: 8,
    };
    let transaction =
        TransactionId { flow: FLOW, incarnation: INCARNATION, commit_lsn: LSN, xid: Xid::new(9) };
    let relation = relations::key(FLOW, INCARNATION, RelationId::new(10), RelationVersion::new(11));
    for (key, golden) in [
        (flows::key(FLOW, FlowPart::Durable), "0102030403"),
        (log::key(FLOW, INCARNATION, LSN), "01020304000000051122334455667788"),
        (dedup::key(FLOW, INCARNATION, LSN), "01020304000000051122334455667788"),
        (quarantine::key(transaction), "01020304000000051122334455667788"),
        (part.bytes(), "0102030400000005000000060000000700000008"),
        (relation, "01020304000000050000000a0000000b"),
        (events::key(FLOW, 12), "01020304000000000000000c"),
        (audit::key(13), "000000000000000d"),
    ] {
        assert_eq!(hex(&key), golden);
    }
}

#[test]
fn the_envelope_is_magic_version_form_length_checksum_payload() {
    let sealed = value::seal_archived(b"payload");
    assert_eq!(
        hex(&sealed),
        concat!("54524c41010001000700000000000000", "e5e43cf1bbf81396a9de00b82ee7d6f3", "7061796c6f6164")
    );
    assert_eq!(value::open_archived(&sealed).unwrap(), b"payload");
}

#[test]
fn an_unknown_version_another_form_and_a_cut_value_are_refused_by_name() {
    let sealed = value::seal_archived(b"payload");
    let mut newer = sealed.clone();
    newer[4] = 2;
    assert_eq!(value::open_archived(&newer), Err(value::Damage::Version(2)));
    assert_eq!(value::open_json::<u8>(&sealed), Err(value::Damage::Form(1)));
    assert_eq!(value::open_archived(&sealed[..20]), Err(value::Damage::Short));
    let cut = value::Damage::Length { expected: 7, found: 6 };
    assert_eq!(value::open_archived(&sealed[..sealed.len() - 1]), Err(cut));
}

fn header() -> TransactionHeader {
    TransactionHeader {
        xid: 0x0A0B_0C0D,
        commit_lsn: LSN.get(),
        end_lsn: LSN.get() + 1,
        commit_time: 2,
        received: 3,
        digest: [4; 16],
        changes: 1,
        bytes: 3,
        origin: Some("ring".to_owned()),
    }
}

#[test]
fn an_inline_transaction_is_archived_little_endian_and_unaligned_with_32_bit_pointers() {
    let head = ChangeHead {
        operation: Operation::Update,
        relation: 16_384,
        version: 1,
        sub_xid: 0,
        offset: 0,
        length: 3,
    };
    let content = Content::Inline(ChangeBlock { heads: vec![head], body: b"abc".to_vec() });
    let mut batch = Batch::new();
    log::put(&mut batch, FLOW, INCARNATION, &TransactionRecord { header: header(), content });
    let (_, _, value) = written(batch).remove(0);
    assert_eq!(
        value,
        concat!(
            "54524c41010001007a00000000000000",
            "d1fbe902a95963ab2f62ac04c5d9e63d",
            "0200400000010000000000000000000000030000006162630d0c0b0a887766554433221189776655",
            "44332211020000000000000003000000000000000404040404040404040404040404040401000000",
            "0000000003000000000000000172696e67ffffffff009affffff01000000a7ffffff030000000000",
            "0000"
        )
    );
}

#[test]
fn a_manifest_is_archived_as_it_always_was() {
    let part = PartRef { hash: [9; 16], changes: 2, bytes: 100 };
    let content = Content::Chunked(Manifest { session: 3, parts: vec![part], aborted: vec![11] });
    let mut batch = Batch::new();
    log::put(&mut batch, FLOW, INCARNATION, &TransactionRecord { header: header(), content });
    let (_, _, value) = written(batch).remove(0);
    assert_eq!(
        value,
        concat!(
            "54524c41010001007e00000000000000",
            "f423afb10a6cadbdcd15cc931afe173b",
            "0909090909090909090909090909090902000000640000000b0000000d0c0b0a8877665544332211",
            "89776655443322110200000000000000030000000000000004040404040404040404040404040404",
            "010000000000000003000000000000000172696e67ffffffff010300000092ffffff01000000a2ff",
            "ffff01000000"
        )
    );
}

#[test]
fn a_dedup_record_is_archived_as_it_always_was() {
    let record =
        DedupRecord { xid: 1, digest: [2; 16], bytes: 3, received: 4, outcome: Some(Outcome::Discarded) };
    let mut batch = Batch::new();
    dedup::put(&mut batch, FLOW, INCARNATION, LSN, &record);
    let (_, _, value) = written(batch).remove(0);
    assert_eq!(
        value,
        concat!(
            "54524c41010001002600000000000000",
            "3f6d534620843b941040ac534860b1f0",
            "0100000002020202020202020202020202020202030000000000000004000000000000000101"
        )
    );
}

#[test]
fn a_new_store_says_its_format_outside_every_envelope() {
    let identity =
        StoreIdentity { instance: InstanceId::new([0xAB; 16]), created: Timestamp::from_unix_micros(7) };
    let mut batch = Batch::new();
    default::put_identity(&mut batch, &identity);
    let written = written(batch);
    assert_eq!(written[0], (Family::Default, hex(b"format"), "00000001".to_owned()));
    assert_eq!(written[1].1, hex(b"identity"));
    let json = r#"{"instance":"abababababababababababababababab","created":7}"#;
    assert!(written[1].2.ends_with(&hex(json.as_bytes())));
}

#[test]
fn the_durable_part_reads_as_its_progress_alone() {
    let durable = Durable {
        progress: Progress { commit_lsn: LSN, position: LSN },
        appended: LoggedBytes { bytes: 5, transactions: 1 },
        session: CaptureSession::new(2),
    };
    let sealed = value::seal_json(&durable);
    assert_eq!(value::open_json::<Durable>(&sealed).unwrap(), durable);
    assert_eq!(value::open_json::<Progress>(&sealed).unwrap(), durable.progress);
}
