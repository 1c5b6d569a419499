//! The decision as a table: what is known, what the source shows, and what follows.

#![expect(clippy::unwrap_used, reason = "tests")]

use trellara_storage::records::{Lineage, PublicationIdentity, StartMode};
use trellara_storage::{Incarnation, InstanceId, Lsn, Progress, Timestamp, TransactionDigest};

use super::{Known, LineageSettings, Verdict, judge};
use crate::failure::{Class, Code};
use crate::flow::TargetView;
use crate::ports::{Checkpoint, PublicationFacts, SlotFacts, SlotKind, SourceFacts, Token, WalStatus};

/// One situation; the default is an ordinary reconnect: slot and log at 100/100.
struct Case {
    lineage: Option<Lineage>,
    durable: Progress,
    recovered: bool,
    target: TargetView,
    facts: SourceFacts,
    settings: LineageSettings,
}

/// What a verdict comes to, without its details.
#[derive(Debug, PartialEq)]
enum Seen {
    Continue,
    Start(StartMode),
    Adopt(u64),
    Lost(Code),
    Refused(Class, Code),
    NeedCheckpoint,
}

fn at(position: u64) -> Progress {
    Progress { commit_lsn: Lsn::new(position - 10), position: Lsn::new(position) }
}

fn lineage() -> Lineage {
    Lineage {
        incarnation: Incarnation::FIRST,
        system_identifier: 42,
        timeline: 1,
        slot: "trellara_s".to_owned(),
        publications: vec![PublicationIdentity { name: "p".to_owned(), oid: 9, digest: "d1".to_owned() }],
        start: Lsn::new(50),
        start_mode: StartMode::Empty,
        started: Timestamp::default(),
    }
}

fn slot(confirmed: u64) -> SlotFacts {
    SlotFacts {
        kind: SlotKind::Logical,
        plugin: "pgoutput".to_owned(),
        same_database: true,
        temporary: false,
        two_phase: false,
        confirmed: Some(Lsn::new(confirmed)),
        restart: Some(Lsn::new(40)),
        wal_status: Some(WalStatus::Reserved),
        invalidation: None,
        active_pid: None,
    }
}

fn checkpoint(position: u64) -> Checkpoint {
    let token = Token { instance: InstanceId::default(), boot: 1, generation: 1 };
    Checkpoint {
        incarnation: Incarnation::FIRST,
        lineage: "42/trellara_s".to_owned(),
        applied: at(position),
        digest: Some(TransactionDigest::new([7; 16])),
        token,
        holder: "engine".to_owned(),
        lease_live: true,
    }
}

fn reconnect() -> Case {
    Case {
        lineage: Some(lineage()),
        durable: at(100),
        recovered: false,
        target: TargetView::default(),
        facts: SourceFacts {
            system_identifier: 42,
            timeline: 1,
            timeline_history: Vec::new(),
            position: Lsn::new(500),
            server_version: 150_000,
            encoding: "UTF8".to_owned(),
            slot: Some(slot(100)),
            publications: vec![PublicationFacts { name: "p".to_owned(), oid: 9, digest: "d1".to_owned() }],
            tables_with_rows: Vec::new(),
            now: Timestamp::default(),
        },
        settings: LineageSettings {
            slot: "trellara_s".to_owned(),
            publications: vec!["p".to_owned()],
            from_now: false,
        },
    }
}

fn first_start() -> Case {
    let mut case = reconnect();
    case.lineage = None;
    case.durable = Progress::ZERO;
    case.target.read = true;
    case.facts.slot = None;
    case
}

/// This store has no record, the target's checkpoint stands at 100.
fn without_store() -> Case {
    let mut case = first_start();
    case.target.checkpoint = Some(checkpoint(100));
    case.facts.slot = Some(slot(90));
    case
}

fn verdict(case: &Case) -> Verdict {
    let known = Known {
        lineage: case.lineage.as_ref(),
        durable: case.durable,
        recovered: case.recovered,
        target: &case.target,
    };
    judge(known, &case.facts, &case.settings)
}

fn seen(case: &Case) -> Seen {
    match verdict(case) {
        Verdict::Continue { .. } => Seen::Continue,
        Verdict::Start { mode, .. } => Seen::Start(mode),
        Verdict::Adopt { applied, .. } => Seen::Adopt(applied.position.get()),
        Verdict::Lost { code, .. } => Seen::Lost(code),
        Verdict::Refused(failure) => Seen::Refused(failure.class, failure.code),
        Verdict::NeedCheckpoint => Seen::NeedCheckpoint,
    }
}

type Row = (&'static str, fn() -> Case, fn(&mut Case), Seen);

fn slot_of(case: &mut Case) -> &mut SlotFacts {
    case.facts.slot.as_mut().unwrap()
}

fn check(rows: Vec<Row>) {
    for (name, base, change, expected) in rows {
        let mut case = base();
        change(&mut case);
        assert_eq!(seen(&case), expected, "{name}");
    }
}

#[test]
fn i8_a_reconnect_goes_on_only_without_a_possible_gap() {
    let refused = || Seen::Refused(Class::Defect, Code::SlotMismatch);
    check(vec![
        ("slot at durable", reconnect, |_| {}, Seen::Continue),
        ("slot below durable", reconnect, |c| c.facts.slot = Some(slot(60)), Seen::Continue),
        (
            "slot beyond durable, target not read",
            reconnect,
            |c| c.facts.slot = Some(slot(101)),
            Seen::NeedCheckpoint,
        ),
        (
            "slot beyond durable, no checkpoint",
            reconnect,
            |c| {
                c.facts.slot = Some(slot(101));
                c.target.read = true;
            },
            Seen::Lost(Code::SlotBeyondSafePoint),
        ),
        (
            "slot beyond durable and applied",
            reconnect,
            |c| {
                c.facts.slot = Some(slot(131));
                c.target = TargetView { read: true, checkpoint: Some(checkpoint(130)), answering: true };
            },
            Seen::Lost(Code::SlotBeyondSafePoint),
        ),
        (
            "slot beyond durable, covered by the target",
            reconnect,
            |c| {
                c.facts.slot = Some(slot(130));
                c.target = TargetView { read: true, checkpoint: Some(checkpoint(130)), answering: true };
            },
            Seen::Adopt(130),
        ),
        (
            "covered by a checkpoint of another incarnation",
            reconnect,
            |c| {
                c.facts.slot = Some(slot(130));
                let checkpoint = Checkpoint { incarnation: Incarnation::new(2), ..checkpoint(130) };
                c.target = TargetView { read: true, checkpoint: Some(checkpoint), answering: true };
            },
            Seen::Lost(Code::SlotBeyondSafePoint),
        ),
        (
            "covered by a checkpoint of another lineage",
            reconnect,
            |c| {
                c.facts.slot = Some(slot(130));
                let checkpoint = Checkpoint { lineage: "43/trellara_s".to_owned(), ..checkpoint(130) };
                c.target = TargetView { read: true, checkpoint: Some(checkpoint), answering: true };
            },
            Seen::Lost(Code::SlotBeyondSafePoint),
        ),
        (
            "recovered store, slot beyond it",
            reconnect,
            |c| {
                c.facts.slot = Some(slot(131));
                c.recovered = true;
                c.target.read = true;
            },
            Seen::Lost(Code::StoreRecovered),
        ),
        ("recovered store, slot below it", reconnect, |c| c.recovered = true, Seen::Continue),
        ("slot missing", reconnect, |c| c.facts.slot = None, Seen::Lost(Code::SlotMissing)),
        (
            "slot invalidated",
            reconnect,
            |c| {
                slot_of(c).invalidation = Some("rows_removed".to_owned());
            },
            Seen::Lost(Code::SlotInvalidated),
        ),
        (
            "slot without its WAL",
            reconnect,
            |c| {
                slot_of(c).wal_status = Some(WalStatus::Lost);
            },
            Seen::Lost(Code::SlotInvalidated),
        ),
        (
            "slot about to lose its WAL",
            reconnect,
            |c| {
                slot_of(c).wal_status = Some(WalStatus::Unreserved);
            },
            Seen::Continue,
        ),
        (
            "slot still being made",
            reconnect,
            |c| slot_of(c).confirmed = None,
            Seen::Refused(Class::Transient, Code::SlotInUse),
        ),
        (
            "slot confirmed to zero",
            reconnect,
            |c| slot_of(c).confirmed = Some(Lsn::ZERO),
            Seen::Refused(Class::Transient, Code::SlotInUse),
        ),
        ("physical slot", reconnect, |c| slot_of(c).kind = SlotKind::Physical, refused()),
        ("another plugin", reconnect, |c| slot_of(c).plugin = "test_decoding".to_owned(), refused()),
        ("another database", reconnect, |c| slot_of(c).same_database = false, refused()),
        ("temporary slot", reconnect, |c| slot_of(c).temporary = true, refused()),
        ("two-phase slot", reconnect, |c| slot_of(c).two_phase = true, refused()),
        (
            "another cluster",
            reconnect,
            |c| c.facts.system_identifier = 43,
            Seen::Lost(Code::SystemIdentifierChanged),
        ),
        ("server behind", reconnect, |c| c.facts.position = Lsn::new(99), Seen::Lost(Code::ServerBehind)),
        ("server exactly at durable", reconnect, |c| c.facts.position = Lsn::new(100), Seen::Continue),
    ]);
}

#[test]
fn i8_a_timeline_goes_on_only_where_it_contains_the_durable_position() {
    fn promoted(case: &mut Case, history: Vec<(u32, Lsn)>) {
        case.facts.timeline = 3;
        case.facts.timeline_history = history;
    }
    check(vec![
        (
            "switched beyond durable",
            reconnect,
            |c| promoted(c, vec![(1, Lsn::new(120)), (2, Lsn::new(130))]),
            Seen::Continue,
        ),
        ("switched exactly at durable", reconnect, |c| promoted(c, vec![(1, Lsn::new(100))]), Seen::Continue),
        (
            "switched below durable",
            reconnect,
            |c| promoted(c, vec![(1, Lsn::new(99))]),
            Seen::Lost(Code::TimelineDiverged),
        ),
        (
            "not a descendant",
            reconnect,
            |c| promoted(c, vec![(2, Lsn::new(200))]),
            Seen::Lost(Code::TimelineDiverged),
        ),
        (
            "older timeline",
            reconnect,
            |c| {
                c.lineage.as_mut().unwrap().timeline = 5;
            },
            Seen::Lost(Code::TimelineDiverged),
        ),
    ]);
}

#[test]
fn i8_publications_must_be_there_and_the_same_objects() {
    check(vec![
        ("missing", reconnect, |c| c.facts.publications.clear(), Seen::Lost(Code::PublicationMissing)),
        (
            "made again",
            reconnect,
            |c| c.facts.publications[0].oid = 10,
            Seen::Lost(Code::PublicationReplaced),
        ),
        ("altered", reconnect, |c| c.facts.publications[0].digest = "d2".to_owned(), Seen::Continue),
        (
            "missing at the first start",
            first_start,
            |c| c.facts.publications.clear(),
            Seen::Refused(Class::Defect, Code::PublicationMissing),
        ),
        (
            "missing at adoption",
            without_store,
            |c| c.facts.publications.clear(),
            Seen::Lost(Code::PublicationMissing),
        ),
    ]);
}

#[test]
fn i8_a_flow_without_record_starts_only_where_nobody_has_one() {
    check(vec![
        ("nothing anywhere", first_start, |_| {}, Seen::Start(StartMode::Empty)),
        ("target not read", first_start, |c| c.target.read = false, Seen::NeedCheckpoint),
        (
            "slot exists",
            first_start,
            |c| c.facts.slot = Some(slot(50)),
            Seen::Refused(Class::Defect, Code::SlotMismatch),
        ),
        (
            "physical slot exists",
            first_start,
            |c| {
                c.facts.slot = Some(SlotFacts { kind: SlotKind::Physical, ..slot(50) });
            },
            Seen::Refused(Class::Defect, Code::SlotMismatch),
        ),
        (
            "tables hold rows",
            first_start,
            |c| c.facts.tables_with_rows = vec!["a.b".to_owned()],
            Seen::Refused(Class::Defect, Code::TablesNotEmpty),
        ),
        (
            "tables hold rows, from now",
            first_start,
            |c| {
                c.facts.tables_with_rows = vec!["a.b".to_owned()];
                c.settings.from_now = true;
            },
            Seen::Start(StartMode::FromNow),
        ),
    ]);
}

#[test]
fn i8_an_engine_without_record_adopts_the_flow_only_from_a_checkpoint_that_covers_the_slot() {
    check(vec![
        ("slot below applied", without_store, |_| {}, Seen::Adopt(100)),
        ("slot at applied", without_store, |c| c.facts.slot = Some(slot(100)), Seen::Adopt(100)),
        (
            "slot beyond applied",
            without_store,
            |c| c.facts.slot = Some(slot(101)),
            Seen::Lost(Code::SlotBeyondSafePoint),
        ),
        (
            "slot beyond applied, recovered",
            without_store,
            |c| {
                c.facts.slot = Some(slot(101));
                c.recovered = true;
            },
            Seen::Lost(Code::StoreRecovered),
        ),
        ("slot missing", without_store, |c| c.facts.slot = None, Seen::Lost(Code::SlotMissing)),
        (
            "slot invalidated",
            without_store,
            |c| {
                slot_of(c).invalidation = Some("wal_removed".to_owned());
            },
            Seen::Lost(Code::SlotInvalidated),
        ),
        (
            "slot still being made",
            without_store,
            |c| slot_of(c).confirmed = None,
            Seen::Refused(Class::Transient, Code::SlotInUse),
        ),
        (
            "another cluster",
            without_store,
            |c| c.facts.system_identifier = 43,
            Seen::Lost(Code::SystemIdentifierChanged),
        ),
        (
            "another slot",
            without_store,
            |c| c.settings.slot = "other".to_owned(),
            Seen::Refused(Class::Defect, Code::SlotMismatch),
        ),
        (
            "server behind applied",
            without_store,
            |c| c.facts.position = Lsn::new(99),
            Seen::Lost(Code::ServerBehind),
        ),
        ("target not read", without_store, |c| c.target.read = false, Seen::NeedCheckpoint),
    ]);
}

#[test]
fn an_altered_publication_is_named_and_remembered() {
    let mut case = reconnect();
    case.facts.publications[0].digest = "d2".to_owned();
    let Verdict::Continue { lineage, changed, .. } = verdict(&case) else { panic!("goes on") };
    assert_eq!(changed, ["p"]);
    assert_eq!(lineage.publications[0].digest, "d2");
}

#[test]
fn a_promotion_that_contains_the_durable_position_moves_the_lineage_to_the_new_timeline() {
    let mut case = reconnect();
    case.facts.timeline = 2;
    case.facts.timeline_history = vec![(1, Lsn::new(150))];
    let Verdict::Continue { lineage, .. } = verdict(&case) else { panic!("goes on") };
    assert_eq!(lineage.timeline, 2);
}

#[test]
fn an_adopted_lineage_starts_at_the_applied_position_in_the_checkpoints_incarnation() {
    let mut case = without_store();
    case.target.checkpoint = Some(Checkpoint { incarnation: Incarnation::new(4), ..checkpoint(100) });
    let Verdict::Adopt { lineage, digest, confirmed, .. } = verdict(&case) else { panic!("adopts") };
    assert_eq!(lineage.incarnation, Incarnation::new(4));
    assert_eq!((lineage.start, lineage.start_mode), (Lsn::new(100), StartMode::Adopted));
    assert_eq!((confirmed, digest), (Lsn::new(90), Some(TransactionDigest::new([7; 16]))));
}

#[test]
fn a_refused_slot_comes_with_the_statement_that_removes_it() {
    let mut case = reconnect();
    slot_of(&mut case).two_phase = true;
    let Verdict::Refused(failure) = verdict(&case) else { panic!("refused") };
    let hint = failure.detail.hint.unwrap();
    assert!(hint.contains("SELECT pg_drop_replication_slot('trellara_s');"), "{hint}");
}
