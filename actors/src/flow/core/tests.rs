#![expect(clippy::unwrap_used, reason = "tests state what must hold")]

use trellara_storage::records::{EventRecord, FailureDetail};
use trellara_storage::store::Entry;
use trellara_storage::{Family, InstanceId, Lsn};

use super::*;
use crate::apply::{ApplyExit, ApplyProgress, ApplyReport};
use crate::capture::{CaptureExit, CaptureProgress, CaptureReport};
use crate::failure::{Class, Code, Endpoint, Failure, Place};
use crate::flow::state::{Parked, Pause, PauseScope};
use crate::ports::{Checkpoint, Token};
use crate::runtime::TaskExit;

const fn at(seconds: u64) -> Moment {
    Moment {
        at: Timestamp::from_unix_micros(1_000_000 * seconds as i64),
        elapsed: Duration::from_secs(seconds),
        random: 0,
    }
}

fn stored(state: State) -> StoredFlow {
    StoredFlow {
        state,
        lineage: None,
        recovered: false,
        durable: Progress::ZERO,
        applied: Progress::ZERO,
        newest_event: 0,
    }
}

fn core_of(state: State, begin: Begin) -> FlowCore {
    let name = "store-0001:retail".parse().unwrap();
    let identity = Identity { flow: FlowId::new(1), name, generation: 1, deaths: 0 };
    let (events, policy) = (EventSequence::after(0), RestartPolicy::default());
    FlowCore::new(identity, stored(state), begin, events, policy, at(0))
}

/// Both halves at work, the actions of the way there taken.
fn running() -> FlowCore {
    let mut core = core_of(State::new(true), Begin::Resume);
    core.capture_report(CaptureReport::Capturing, at(1));
    core.apply_report(ApplyReport::Claimed(checkpoint(0)), at(1));
    core.take_actions();
    core
}

fn progress(commit: u64) -> Progress {
    Progress { commit_lsn: Lsn::new(commit), position: Lsn::new(commit) }
}

fn checkpoint(applied: u64) -> Checkpoint {
    Checkpoint {
        incarnation: trellara_storage::Incarnation::FIRST,
        lineage: "1/slot".to_owned(),
        applied: progress(applied),
        digest: None,
        token: Token { instance: InstanceId::default(), boot: 1, generation: 1 },
        holder: "west".to_owned(),
        lease_live: true,
    }
}

fn captured(commit: u64) -> CaptureReport {
    let (captured, durable) = (progress(commit), progress(commit));
    CaptureReport::Progress(CaptureProgress { captured, durable, ..CaptureProgress::default() })
}

fn applied(commit: u64) -> ApplyReport {
    ApplyReport::Progress(ApplyProgress { applied: progress(commit), ..ApplyProgress::default() })
}

fn failure(class: Class) -> Failure {
    Failure {
        place: Place::SourceConnect,
        class,
        code: Code::ConnectFailed,
        summary: "cannot connect".to_owned(),
        detail: Box::new(FailureDetail::default()),
        evidence: None,
    }
}

fn source_down() -> TaskExit<CaptureExit> {
    TaskExit::Ended(CaptureExit::Failed(failure(Class::Endpoint(Endpoint::Source))))
}

fn lost() -> TaskExit<CaptureExit> {
    TaskExit::Ended(CaptureExit::LineageLost { code: Code::SlotMissing, what: "gone".to_owned() })
}

/// The actions by name, publishing left out.
fn names(core: &mut FlowCore) -> Vec<String> {
    let shown = |action: Action| match action {
        Action::Persist(batch) => format!("persist {}", event(&batch).kind),
        Action::Start { half, take_over } => format!("start {half:?} {take_over}"),
        Action::Stop(half) => format!("stop {half:?}"),
        Action::Abort(half) => format!("abort {half:?}"),
        Action::Exit(exit) => format!("exit {}", exit.name()),
        Action::Publish(_) => String::new(),
    };
    core.take_actions().into_iter().map(shown).filter(|name| !name.is_empty()).collect()
}

fn event(batch: &Batch) -> EventRecord {
    let mut events = batch.entries().iter().filter_map(|entry| match entry {
        Entry::Put { family: Family::Events, value, .. } => Some(value),
        Entry::Put { .. } | Entry::Delete { .. } | Entry::DeleteRange { .. } => None,
    });
    trellara_storage::codec::value::open_json(events.next_back().unwrap()).unwrap()
}

fn parked() -> Box<Parked> {
    Box::new(Parked {
        id: "Q-1".to_owned(),
        transaction: trellara_storage::TransactionId {
            flow: FlowId::new(1),
            incarnation: trellara_storage::Incarnation::FIRST,
            commit_lsn: Lsn::new(5),
            xid: trellara_storage::Xid::new(1),
        },
        digest: Default::default(),
        at: at(1).at,
        class: "row_data".to_owned(),
        code: "TRL-0102".to_owned(),
        sqlstate: None,
        constraint: None,
        table: None,
    })
}

#[test]
fn a_new_flow_starts_both_halves_and_writes_nothing() {
    let mut core = core_of(State::new(false), Begin::Resume);
    assert_eq!(names(&mut core), ["start Capture false", "start Apply false"]);
}

#[test]
fn a_restart_is_durable_before_anything_starts_and_takes_over_only_once() {
    let failed = State { whole: Whole::Failed(intake::defect("x".to_owned())), ..State::new(true) };
    let mut core = core_of(failed, Begin::Restart { take_over: true });
    let steps = ["persist operator.restarted", "start Capture false", "start Apply true"];
    assert_eq!(names(&mut core), steps);
    core.apply_report(ApplyReport::Claimed(checkpoint(0)), at(1));
    core.apply_ended(TaskExit::Ended(ApplyExit::Failed(failure(Class::Transient))), at(1));
    names(&mut core);
    core.tick(at(60));
    assert_eq!(names(&mut core), ["start Apply false"]);
}

#[test]
fn i7_a_decision_and_the_phase_that_it_allows_are_one_batch_before_apply_starts() {
    let state = State { apply: Apply::Quarantined(parked()), ..State::new(true) };
    let mut core = core_of(state, Begin::Resume);
    assert_eq!(names(&mut core), ["start Capture false"]);
    let mut decision = Batch::new();
    decision.put(Family::Quarantine, vec![1], vec![2]);
    core.order(&Event::Decided { evidence: "Q-1".to_owned() }, Some(decision), at(2)).unwrap();
    let actions = core.take_actions();
    let Action::Persist(batch) = &actions[0] else { panic!("not persisted first: {actions:?}") };
    let families: Vec<Family> = batch
        .entries()
        .iter()
        .map(|entry| match entry {
            Entry::Put { family, .. } | Entry::Delete { family, .. } | Entry::DeleteRange { family, .. } => {
                *family
            }
        })
        .collect();
    assert_eq!(families, [Family::Quarantine, Family::Events, Family::Flows]);
    assert!(matches!(actions[1], Action::Start { half: Half::Apply, .. }));
}

#[test]
fn an_unreachable_source_is_recorded_once_and_tried_again_after_its_backoff() {
    let mut core = running();
    core.capture_ended(source_down(), at(2));
    assert_eq!(names(&mut core), ["persist capture.failed"]);
    let wake = core.wake_at(at(2)).unwrap();
    assert!(wake > at(2).elapsed && wake < at(4).elapsed);
    core.tick(at(4));
    assert_eq!(names(&mut core), ["start Capture false"]);
    core.capture_ended(source_down(), at(5));
    assert_eq!(names(&mut core), Vec::<String>::new(), "nothing new to record");
    assert_eq!(core.phase(), Phase::Unavailable);
}

#[test]
fn i12_streaming_begins_with_the_proof_and_ends_when_it_is_not_renewed() {
    let mut core = running();
    core.capture_report(captured(10), at(2));
    core.taken_in(at(2));
    assert_eq!(core.phase(), Phase::CatchingUp);
    core.apply_report(applied(10), at(3));
    core.taken_in(at(3));
    assert_eq!(
        (core.phase(), names(&mut core)),
        (Phase::Streaming, vec!["persist flow.progress".to_owned()])
    );
    let until = core.wake_at(at(3)).unwrap();
    assert_eq!(until, at(2).elapsed + crate::flow::PROOF_WINDOW);
    core.tick(at(until.as_secs() + 1));
    assert_eq!(core.phase(), Phase::CatchingUp);
}

#[test]
fn a_task_that_panicked_ends_the_generation_after_the_other_half_has_stopped() {
    let mut core = running();
    core.apply_ended(TaskExit::Broken, at(2));
    assert_eq!(names(&mut core), ["stop Capture"]);
    core.capture_ended(TaskExit::Ended(CaptureExit::Stopped), at(3));
    assert_eq!(names(&mut core).last().unwrap(), "exit panicked");
}

#[test]
fn a_task_that_does_not_stop_in_time_is_aborted_and_counts_as_stopped() {
    let mut core = running();
    core.end(FlowExit::Stopped, at(2));
    assert_eq!(names(&mut core), ["stop Capture", "stop Apply"]);
    core.capture_ended(TaskExit::Ended(CaptureExit::Stopped), at(3));
    core.tick(Moment { elapsed: core.wake_at(at(3)).unwrap(), ..at(12) });
    assert_eq!(names(&mut core), ["abort Apply"]);
    core.apply_ended(TaskExit::Broken, at(13));
    assert_eq!(names(&mut core).last().unwrap(), "exit stopped");
}

#[test]
fn a_record_that_was_not_written_ends_the_generation_at_once() {
    let mut core = running();
    core.capture_ended(source_down(), at(2));
    core.not_persisted(&trellara_storage::Error::DiskFull);
    assert_eq!(names(&mut core), ["exit no_room"]);
}

#[test]
fn a_full_log_is_left_when_there_is_room_again() {
    let mut core = running();
    let look = |core: &mut FlowCore, used| {
        core.look(Surroundings { durable: Progress::ZERO, log_max_bytes: 100, log_used: used }, at(3));
        core.taken_in(at(3));
    };
    look(&mut core, Some(10));
    core.capture_ended(TaskExit::Ended(CaptureExit::LogFull), at(2));
    assert_eq!(names(&mut core), ["persist capture.log_full"]);
    look(&mut core, None);
    assert_eq!(names(&mut core), Vec::<String>::new(), "a reading from before is not believed");
    look(&mut core, Some(81));
    assert_eq!(names(&mut core), Vec::<String>::new());
    look(&mut core, Some(80));
    assert_eq!(names(&mut core), ["persist capture.room_again", "start Capture false"]);
}

#[test]
fn apply_drains_the_log_of_a_lost_lineage_and_then_stops() {
    let mut core = running();
    core.capture_report(captured(10), at(2));
    core.capture_ended(lost(), at(2));
    core.apply_report(applied(9), at(3));
    core.taken_in(at(3));
    assert_eq!(names(&mut core), ["persist capture.lineage_lost"]);
    core.apply_report(applied(10), at(4));
    core.taken_in(at(4));
    assert_eq!(names(&mut core), ["persist apply.drained", "stop Apply"]);
    assert_eq!(core.phase(), Phase::LineageLost);
}

#[test]
fn a_pause_runs_out_by_itself_and_reports_of_a_stopping_task_mean_nothing() {
    let mut core = running();
    let pause = Pause {
        scope: PauseScope::Apply,
        who: "ada".to_owned(),
        why: "index build".to_owned(),
        since: at(2).at,
        until: Some(at(100).at),
    };
    core.order(&Event::Pause(pause), None, at(2)).unwrap();
    assert_eq!(names(&mut core), ["persist operator.paused", "stop Apply"]);
    core.apply_report(applied(5), at(3));
    core.apply_ended(TaskExit::Ended(ApplyExit::Stopped), at(3));
    assert_eq!(core.phase(), Phase::Paused);
    assert_eq!(core.wake_at(at(3)), Some(at(100).elapsed));
    core.tick(at(100));
    assert_eq!(names(&mut core), ["persist operator.pause_ran_out", "start Apply false"]);
}
