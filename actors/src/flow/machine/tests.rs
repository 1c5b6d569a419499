#![expect(clippy::unwrap_used, reason = "tests state what must hold")]

use proptest::prelude::*;
use trellara_storage::{FlowId, Incarnation, Lsn, Timestamp, TransactionDigest, TransactionId, Xid};

use super::super::effect::Effect;
use super::super::event::{ApplyEnd, CaptureEnd, Event};
use super::super::phase::{Phase, reasons};
use super::super::record::PhaseRecord;
use super::super::state::{
    Apply, Capture, Fault, Half, Holder, Loss, Operator, Parked, Pause, PauseScope, State, Whole,
};
use super::{GIVE_UP_AFTER, Refused, on};
use crate::failure::{Class, Code, Endpoint};

fn fault(class: Class) -> Fault {
    Fault::new(class, Code::Unclassified, "something failed")
}

fn loss() -> Loss {
    Loss { code: Code::SlotMissing, what: "slot is gone".to_owned() }
}

fn parked(id: &str) -> Box<Parked> {
    Box::new(Parked {
        id: id.to_owned(),
        transaction: TransactionId {
            flow: FlowId::new(1),
            incarnation: Incarnation::FIRST,
            commit_lsn: Lsn::new(16),
            xid: Xid::new(7),
        },
        digest: TransactionDigest::default(),
        at: Timestamp::from_unix_micros(1),
        class: "row_data".to_owned(),
        code: "TRL-0102".to_owned(),
        sqlstate: Some("23505".to_owned()),
        constraint: Some("sales_pkey".to_owned()),
        table: Some("public.sales".to_owned()),
    })
}

fn pause(scope: PauseScope) -> Pause {
    Pause {
        scope,
        who: "ada".to_owned(),
        why: "maintenance".to_owned(),
        since: Timestamp::from_unix_micros(1),
        until: None,
    }
}

fn holder() -> Holder {
    Holder { name: "west@host".to_owned(), instance: "00".to_owned(), generation: 4 }
}

fn after(events: &[Event]) -> State {
    events.iter().fold(State::new(false), |state, event| on(&state, event).unwrap().next)
}

fn streaming() -> State {
    after(&[Event::LineageKnown, Event::Capturing, Event::Claimed])
}

fn quarantined() -> State {
    on(&streaming(), &Event::ApplyEnded(ApplyEnd::Quarantined(parked("Q-1")))).unwrap().next
}

fn phases(state: &State) -> Vec<Phase> {
    reasons(state, true).into_iter().map(|reason| reason.phase).collect()
}

#[test]
fn a_new_flow_comes_up_through_lineage_capture_and_claim() {
    assert_eq!(phases(&State::new(false))[0], Phase::NotSeeded);
    assert_eq!(phases(&after(&[Event::LineageKnown])), [Phase::Connecting, Phase::Connecting]);
    assert_eq!(phases(&streaming()), [Phase::Streaming]);
}

#[test]
fn i12_connected_without_proof_is_not_streaming() {
    assert_eq!(reasons(&streaming(), false)[0].phase, Phase::CatchingUp);
}

#[test]
fn a_quarantine_stops_apply_and_leaves_capture_running() {
    let step = on(&streaming(), &Event::ApplyEnded(ApplyEnd::Quarantined(parked("Q-1")))).unwrap();
    assert_eq!(step.effects, []);
    assert!(step.next.wanted().capture);
    assert!(!step.next.wanted().apply);
    assert_eq!(phases(&step.next), [Phase::Quarantined]);
}

#[test]
fn a_decision_on_the_standing_quarantine_starts_apply_again() {
    let decided = |id: &str| Event::Decided { evidence: id.to_owned() };
    assert_eq!(
        on(&quarantined(), &decided("Q-2")),
        Err(Refused::OtherQuarantine { standing: "Q-1".to_owned() })
    );
    assert_eq!(on(&streaming(), &decided("Q-1")), Err(Refused::NotQuarantined));
    let step = on(&quarantined(), &decided("Q-1")).unwrap();
    assert_eq!(step.effects, [Effect::Start(Half::Apply)]);
    assert_eq!(step.next.apply, Apply::Claiming);
}

#[test]
fn a_lost_lineage_hides_no_quarantine_and_no_unavailable_target_hides_a_pause() {
    let state = on(&quarantined(), &Event::CaptureEnded(CaptureEnd::LineageLost(loss()))).unwrap().next;
    assert_eq!(phases(&state), [Phase::LineageLost, Phase::Quarantined]);
    let state = on(&quarantined(), &Event::Pause(pause(PauseScope::Apply))).unwrap().next;
    let down = fault(Class::Endpoint(Endpoint::Source));
    let state = on(&state, &Event::CaptureEnded(CaptureEnd::Failed(down))).unwrap().next;
    assert_eq!(phases(&state), [Phase::Quarantined, Phase::Unavailable, Phase::Paused]);
}

#[test]
fn each_class_of_failure_has_its_reaction() {
    let endpoint = Endpoint::Target;
    for (class, phase, retries) in [
        (Class::Transient, Phase::Retrying, true),
        (Class::Endpoint(endpoint), Phase::Unavailable, true),
        (Class::Unknown, Phase::Retrying, true),
        (Class::RowData, Phase::Retrying, true),
        (Class::SchemaContract, Phase::Retrying, true),
        (Class::Integrity, Phase::Failed, false),
        (Class::Defect, Phase::Failed, false),
        (Class::Lineage, Phase::LineageLost, false),
        (Class::Fence, Phase::Fenced, false),
    ] {
        for event in [
            Event::CaptureEnded(CaptureEnd::Failed(fault(class))),
            Event::ApplyEnded(ApplyEnd::Failed(fault(class))),
        ] {
            let step = on(&streaming(), &event).unwrap();
            assert_eq!(phases(&step.next)[0], phase, "{class:?}");
            let scheduled = step.effects.iter().any(|effect| matches!(effect, Effect::RetryAfter(_, 1)));
            assert_eq!(scheduled, retries, "{class:?}");
        }
    }
}

#[test]
fn a_failed_half_stops_the_other_only_through_the_whole_flow() {
    let defect = Event::CaptureEnded(CaptureEnd::Failed(fault(Class::Defect)));
    assert_eq!(on(&streaming(), &defect).unwrap().effects, [Effect::Stop(Half::Apply)]);
    let down = Event::CaptureEnded(CaptureEnd::Failed(fault(Class::Endpoint(Endpoint::Source))));
    assert_eq!(on(&streaming(), &down).unwrap().effects, [Effect::RetryAfter(Half::Capture, 1)]);
}

#[test]
fn an_unknown_failure_is_tried_again_until_the_give_up_rule_and_an_endpoint_for_ever() {
    let outcome = |class: Class, rounds: u32| {
        (0..rounds).fold(streaming(), |state, _| {
            let failed = Event::ApplyEnded(ApplyEnd::Failed(fault(class)));
            let state = on(&state, &failed).unwrap().next;
            on(&state, &Event::RetryDue(Half::Apply)).map_or(state, |step| step.next)
        })
    };
    assert_eq!(outcome(Class::Unknown, GIVE_UP_AFTER - 1).whole, Whole::Active);
    assert_eq!(outcome(Class::Unknown, GIVE_UP_AFTER).whole, Whole::Failed(fault(Class::Unknown)));
    assert_eq!(outcome(Class::Endpoint(Endpoint::Target), 1_000).whole, Whole::Active);
}

#[test]
fn progress_clears_the_account_of_failures() {
    let failed = Event::ApplyEnded(ApplyEnd::Failed(fault(Class::Unknown)));
    let state = on(&streaming(), &failed).unwrap().next;
    let state = on(&state, &Event::RetryDue(Half::Apply)).unwrap().next;
    assert_eq!(state.tries.apply, 1);
    let state = on(&state, &Event::ApplyAdvanced).unwrap().next;
    assert_eq!((state.tries.apply, &state.apply), (0, &Apply::Applying));
}

#[test]
fn a_full_log_closes_capture_until_there_is_room() {
    let full = on(&streaming(), &Event::CaptureEnded(CaptureEnd::LogFull)).unwrap();
    assert_eq!(full.effects, []);
    assert!(full.next.wanted().apply);
    assert_eq!(phases(&full.next), [Phase::LogFull]);
    assert_eq!(on(&full.next, &Event::RoomAgain).unwrap().effects, [Effect::Start(Half::Capture)]);
    assert_eq!(on(&streaming(), &Event::RoomAgain), Err(Refused::NotFull));
}

#[test]
fn apply_drains_what_the_log_holds_before_a_lost_lineage_stops_it() {
    let lost = on(&streaming(), &Event::CaptureEnded(CaptureEnd::LineageLost(loss()))).unwrap().next;
    assert!(lost.wanted().apply);
    let drained = on(&lost, &Event::Drained).unwrap();
    assert_eq!(drained.effects, [Effect::Stop(Half::Apply)]);
    assert_eq!(on(&streaming(), &Event::Drained), Err(Refused::NotDrained));
}

#[test]
fn a_pause_of_apply_keeps_capture_and_a_pause_of_all_stops_both() {
    let apply = on(&streaming(), &Event::Pause(pause(PauseScope::Apply))).unwrap();
    assert_eq!(apply.effects, [Effect::Stop(Half::Apply)]);
    let all = on(&apply.next, &Event::Pause(pause(PauseScope::All))).unwrap();
    assert_eq!(all.effects, [Effect::Stop(Half::Capture)]);
    let resumed = on(&all.next, &Event::Resume).unwrap();
    assert_eq!(resumed.effects, [Effect::Start(Half::Capture), Effect::Start(Half::Apply)]);
    assert_eq!(on(&streaming(), &Event::Resume), Err(Refused::NotPaused));
}

#[test]
fn a_task_that_ends_after_the_flow_was_resumed_is_started_again() {
    let paused = on(&streaming(), &Event::Pause(pause(PauseScope::All))).unwrap().next;
    let resumed = on(&paused, &Event::Resume).unwrap().next;
    let ended = on(&resumed, &Event::CaptureEnded(CaptureEnd::Stopped)).unwrap();
    assert_eq!(ended.effects, [Effect::Start(Half::Capture)]);
}

#[test]
fn fenced_and_failed_leave_by_restart_only() {
    for event in [
        Event::ApplyEnded(ApplyEnd::Fenced(holder())),
        Event::ApplyEnded(ApplyEnd::Failed(fault(Class::Defect))),
        Event::GaveUp(fault(Class::Defect)),
    ] {
        let state = on(&streaming(), &event).unwrap().next;
        assert_eq!(state.wanted(), Default::default());
        let resumed = [Event::Pause(pause(PauseScope::All)), Event::Resume]
            .iter()
            .fold(state.clone(), |state, event| on(&state, event).unwrap().next);
        assert_eq!(resumed.whole, state.whole);
        let restarted = on(&state, &Event::Restart).unwrap().next;
        assert!(restarted.wanted().capture && restarted.wanted().apply);
    }
}

#[test]
fn a_restart_keeps_quarantine_lost_lineage_and_pause() {
    let state = on(&quarantined(), &Event::CaptureEnded(CaptureEnd::LineageLost(loss()))).unwrap().next;
    let state = on(&state, &Event::Pause(pause(PauseScope::Apply))).unwrap().next;
    assert_eq!(on(&state, &Event::Restart).unwrap().next, state);
}

#[test]
fn a_removed_or_detached_flow_takes_no_orders() {
    let removing = on(&streaming(), &Event::Remove { keep_slot: true }).unwrap();
    assert_eq!(removing.effects, [Effect::Stop(Half::Capture), Effect::Stop(Half::Apply)]);
    for event in [Event::Pause(pause(PauseScope::All)), Event::Resume, Event::Restart, Event::Detach] {
        assert_eq!(on(&removing.next, &event), Err(Refused::Removing));
    }
    let detached = on(&streaming(), &Event::Detach).unwrap().next;
    assert_eq!(on(&detached, &Event::Restart), Err(Refused::Detached));
    assert!(on(&detached, &Event::Attach).unwrap().next.wanted().apply);
}

fn classes() -> impl Strategy<Value = Class> {
    prop_oneof![
        Just(Class::Transient),
        Just(Class::Endpoint(Endpoint::Source)),
        Just(Class::Endpoint(Endpoint::Target)),
        Just(Class::RowData),
        Just(Class::SchemaContract),
        Just(Class::Integrity),
        Just(Class::Lineage),
        Just(Class::Fence),
        Just(Class::Defect),
        Just(Class::Unknown),
    ]
}

fn half() -> impl Strategy<Value = Half> {
    prop_oneof![Just(Half::Capture), Just(Half::Apply)]
}

fn events() -> impl Strategy<Value = Event> {
    let capture = prop_oneof![
        Just(Event::LineageKnown),
        Just(Event::Capturing),
        Just(Event::CaptureAdvanced),
        Just(Event::RoomAgain),
        Just(Event::CaptureEnded(CaptureEnd::Stopped)),
        Just(Event::CaptureEnded(CaptureEnd::LogFull)),
        Just(Event::CaptureEnded(CaptureEnd::LineageLost(loss()))),
        classes().prop_map(|class| Event::CaptureEnded(CaptureEnd::Failed(fault(class)))),
    ];
    let apply = prop_oneof![
        Just(Event::Claimed),
        Just(Event::ApplyAdvanced),
        Just(Event::Drained),
        classes().prop_map(|class| Event::ApplyTrouble(fault(class))),
        Just(Event::ApplyEnded(ApplyEnd::Stopped)),
        Just(Event::ApplyEnded(ApplyEnd::Quarantined(parked("Q-1")))),
        Just(Event::ApplyEnded(ApplyEnd::Fenced(holder()))),
        Just(Event::ApplyEnded(ApplyEnd::LineageLost(loss()))),
        classes().prop_map(|class| Event::ApplyEnded(ApplyEnd::Failed(fault(class)))),
        Just(Event::Decided { evidence: "Q-1".to_owned() }),
    ];
    let others = prop_oneof![
        half().prop_map(Event::RetryDue),
        Just(Event::Pause(pause(PauseScope::Apply))),
        Just(Event::Pause(pause(PauseScope::All))),
        Just(Event::Resume),
        Just(Event::PauseRanOut),
        Just(Event::Restart),
        Just(Event::Attach),
        classes().prop_map(|class| Event::GaveUp(fault(class))),
    ];
    prop_oneof![8 => capture, 8 => apply, 5 => others, 1 => Just(Event::Detach), 1 => Just(Event::Remove { keep_slot: false })]
}

fn of_capture(event: &Event) -> bool {
    event.kind().starts_with("capture.")
}

fn standing(state: &State) -> bool {
    matches!(state.apply, Apply::Quarantined(_))
}

/// What runs, kept by carrying out effects as the core does.
#[derive(Default)]
struct Running {
    capture: bool,
    apply: bool,
}

impl Running {
    fn set(&mut self, half: Half, runs: bool) {
        match half {
            Half::Capture => self.capture = runs,
            Half::Apply => self.apply = runs,
        }
    }

    fn carry_out(&mut self, event: &Event, effects: &[Effect]) {
        if let Event::CaptureEnded(_) = event {
            self.capture = false;
        }
        if let Event::ApplyEnded(_) = event {
            self.apply = false;
        }
        for effect in effects {
            match effect {
                Effect::Start(half) => self.set(*half, true),
                Effect::Stop(half) => self.set(*half, false),
                Effect::RetryAfter(..) => {}
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn random_events_never_reach_an_illegal_combination(events in prop::collection::vec(events(), 1..60)) {
        let mut state = State::new(false);
        let mut running = Running { capture: true, apply: true };
        for event in events {
            let Ok(step) = on(&state, &event) else { continue };
            running.carry_out(&event, &step.effects);
            let wanted = step.next.wanted();
            // Carrying out the effects is all it takes to run exactly what the state wants.
            prop_assert_eq!((running.capture, running.apply), (wanted.capture, wanted.apply));
            // Nothing runs in a flow that is not active, nor apply while an operator holds it.
            if step.next.whole != Whole::Active {
                prop_assert!(!wanted.capture && !wanted.apply);
            }
            prop_assert!(!(wanted.apply && step.next.operator != Operator::Running));
            // A quarantine ends by a decision only, a lost lineage not at all here.
            if standing(&state) && !standing(&step.next) {
                let decided = matches!(event, Event::Decided { .. });
                prop_assert!(decided);
            }
            if matches!(state.capture, Capture::LineageLost(_)) {
                prop_assert_eq!(&step.next.capture, &state.capture);
            }
            // No event of capture moves apply, but for the lineage that ends NotSeeded and a stop of all.
            if of_capture(&event) && state.apply != Apply::NotSeeded && step.next.whole == state.whole {
                prop_assert!(event == Event::RetryDue(Half::Capture) || step.next.apply == state.apply);
            }
            // A scheduled start and a running task exclude each other.
            for half in [Half::Capture, Half::Apply] {
                prop_assert!(!(step.next.waits(half) && wanted.of(half)));
                prop_assert!(!step.next.waits(half) || step.next.whole == Whole::Active);
            }
            // Every scheduled start was asked for with its number.
            for effect in &step.effects {
                if let Effect::RetryAfter(half, failures) = effect {
                    prop_assert!(step.next.waits(*half) && *failures > 0);
                }
            }
            state = step.next;
        }
    }

    #[test]
    fn the_stored_form_keeps_everything_that_needs_someone(events in prop::collection::vec(events(), 1..60)) {
        let state = events.iter().fold(State::new(false), |state, event| {
            on(&state, event).map_or(state, |step| step.next)
        });
        let record = PhaseRecord::of(&state, reasons(&state, true)[0].phase, Timestamp::default());
        let text = serde_json_round_trip(&record);
        let again = text.state(state.apply != Apply::NotSeeded);
        let blocked = |state: &State| {
            let mut held = phases(state);
            held.retain(|phase| phase.blocked() || matches!(phase, Phase::Paused | Phase::Removing | Phase::Detached));
            held
        };
        prop_assert_eq!(blocked(&again), blocked(&state));
        prop_assert_eq!(again.operator, state.operator);
        prop_assert_eq!(again.whole, state.whole);
    }
}

/// Through the store's own codec, as it is written and read.
fn serde_json_round_trip(record: &PhaseRecord) -> PhaseRecord {
    let sealed = trellara_storage::codec::value::seal_json(record);
    trellara_storage::codec::value::open_json(&sealed).unwrap()
}
