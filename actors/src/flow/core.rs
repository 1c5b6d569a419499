//! The flow's core: feeds the machines, records what they decide, and says what is to be done, in order.
//!
//! Without actor, store, clock or task: the shell passes in what happened and a `Moment`, and carries out
//! the actions. A `Persist` comes before everything that the recorded step allows, so a shell that carries
//! actions out in order, each batch fsynced before the next action, can never act on what it could forget.

mod intake;
mod schedule;
#[cfg(test)]
mod tests;

use std::time::Duration;

use trellara_storage::records::{EventRecord, Lineage};
use trellara_storage::{Batch, FlowId, FlowName, Progress, Timestamp};

use super::effect::Effect;
use super::event::Event;
use super::machine::{self, Refused};
use super::phase::{Phase, Reason, reasons};
use super::progress::Tracker;
use super::record::{self, PhaseRecord, StoredFlow};
use super::sequence::EventSequence;
use super::state::{Apply, Capture, Half, State, Whole};
use super::status::{self, Condition, FlowStatus, Work};
use crate::fleet::RestartPolicy;
use crate::ports::LogBudget;
use crate::runtime::FlowExit;
pub(crate) use intake::store_failed;
use schedule::Schedule;

/// When something happened, and chance for jitter.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    pub at: Timestamp,
    /// Monotonic.
    pub elapsed: Duration,
    pub random: u64,
}

/// Which flow, and which run of it.
#[derive(Clone, Debug)]
pub struct Identity {
    pub flow: FlowId,
    pub name: FlowName,
    pub generation: u64,
    /// Generations of this flow that died before, since the process started.
    pub deaths: u64,
}

/// How a generation begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// From what is stored.
    Resume,
    /// By an operator's order: Failed and Fenced end.
    Restart { take_over: bool },
}

/// To be carried out in order.
#[derive(Debug)]
pub enum Action {
    /// Fsynced before the next action.
    Persist(Batch),
    Start {
        half: Half,
        take_over: bool,
    },
    Stop(Half),
    /// It did not stop in time.
    Abort(Half),
    Publish(Box<FlowStatus>),
    /// The generation is over; nothing follows.
    Exit(FlowExit),
}

/// What the shell sees around the flow, without asking anyone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Surroundings {
    pub durable: Progress,
    pub log_max_bytes: u64,
    /// A reading that is new since the last look.
    pub log_used: Option<u64>,
}

#[derive(Debug)]
pub struct FlowCore {
    identity: Identity,
    state: State,
    events: EventSequence,
    policy: RestartPolicy,
    conditions: Vec<Condition>,
    /// As it is in the store.
    recorded: PhaseRecord,
    lineage: Option<Lineage>,
    publications_changed: Vec<String>,
    tracker: Tracker,
    log: LogBudget,
    schedule: Schedule,
    /// For the next claim only.
    take_over: bool,
    /// Set once the generation is to end, with the reason that it will give.
    ending: Option<FlowExit>,
    ended: bool,
    actions: Vec<Action>,
}

impl FlowCore {
    pub fn new(
        identity: Identity,
        stored: StoredFlow,
        begin: Begin,
        events: EventSequence,
        policy: RestartPolicy,
        now: Moment,
    ) -> Self {
        let recorded = PhaseRecord::of(&stored.state, Phase::Connecting, now.at);
        let mut core = Self {
            identity,
            state: stored.state,
            events,
            policy,
            conditions: Vec::new(),
            recorded,
            lineage: stored.lineage,
            publications_changed: Vec::new(),
            tracker: Tracker::new(stored.durable, stored.applied),
            log: LogBudget::default(),
            schedule: Schedule::default(),
            take_over: false,
            ending: None,
            ended: false,
            actions: Vec::new(),
        };
        core.refresh(now);
        core.begin(begin, now);
        core
    }

    /// A flow that starts is configured; a removal that was interrupted goes on without it.
    fn begin(&mut self, begin: Begin, now: Moment) {
        let event = match (&self.state.whole, begin) {
            (Whole::Detached, _) => Some(Event::Attach),
            (_, Begin::Restart { take_over }) => {
                self.take_over = take_over;
                Some(Event::Restart)
            }
            (_, Begin::Resume) => None,
        };
        if let Some(event) = event
            && let Ok(step) = machine::on(&self.state, &event)
        {
            self.state = step.next;
            self.settle(&event, None, now);
        }
        let wanted = self.state.wanted();
        for half in [Half::Capture, Half::Apply] {
            if wanted.of(half) {
                self.carry_out(Effect::Start(half), now);
            }
        }
        self.publish();
    }

    /// An order of the operator. What it needs to be durable with goes into the same batch.
    ///
    /// # Errors
    /// `Refused` by the machines; nothing was done.
    pub fn order(&mut self, event: &Event, with: Option<Batch>, now: Moment) -> Result<(), Refused> {
        self.transition(event, with, now)?;
        self.publish();
        Ok(())
    }

    /// Whether an order would be accepted.
    ///
    /// # Errors
    /// As `order`.
    pub fn may(&self, event: &Event) -> Result<(), Refused> {
        machine::on(&self.state, event).map(|_| ())
    }

    /// Ends the generation in an orderly way: its tasks first.
    pub fn end(&mut self, exit: FlowExit, now: Moment) {
        if self.ending.is_some() {
            self.exit_when_still();
            return;
        }
        self.ending = Some(exit);
        for half in [Half::Capture, Half::Apply] {
            self.carry_out(Effect::Stop(half), now);
        }
        self.exit_when_still();
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    pub fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    fn transition(&mut self, event: &Event, with: Option<Batch>, now: Moment) -> Result<(), Refused> {
        let step = machine::on(&self.state, event)?;
        self.state = step.next;
        self.settle(event, with, now);
        for effect in step.effects {
            self.carry_out(effect, now);
        }
        Ok(())
    }

    /// After every transition: renews what is shown, and records it when it needs recording.
    fn settle(&mut self, event: &Event, with: Option<Batch>, now: Moment) {
        if (&self.state.capture, &self.state.apply) != (&Capture::Capturing, &Apply::Applying) {
            self.tracker.disprove();
        }
        self.schedule.forget_unless(&self.state);
        self.record(event.kind(), cause(event), with, now);
    }

    /// Writes the event and the phase part when what holds or what a restart would find has changed, or
    /// when something must go with it. That a flow which ends does not stream any more is no news.
    fn record(&mut self, kind: &str, cause: Option<String>, with: Option<Batch>, now: Moment) {
        let before = std::mem::take(&mut self.conditions);
        self.refresh_from(&before, now);
        let phase = PhaseRecord::of(&self.state, self.phase(), now.at);
        let shown = self.ending.is_none() && !same(&before, &self.conditions);
        if !shown && phase.same_state(&self.recorded) && with.is_none() {
            return;
        }
        let top = &self.conditions[0].reason;
        let event = EventRecord {
            at: now.at,
            kind: kind.to_owned(),
            from: before.first().map_or("", |condition| condition.reason.phase.name()).to_owned(),
            to: top.phase.name().to_owned(),
            cause: cause.unwrap_or_else(|| top.cause.clone()),
            code: top.code.clone(),
            evidence: top.evidence.clone(),
        };
        let mut batch = with.unwrap_or_default();
        record::put(&mut batch, self.identity.flow, self.events.next(), &event, &phase);
        self.recorded = phase;
        self.actions.push(Action::Persist(batch));
    }

    fn refresh(&mut self, now: Moment) {
        let before = std::mem::take(&mut self.conditions);
        self.refresh_from(&before, now);
    }

    /// A condition that held before keeps its "since".
    fn refresh_from(&mut self, before: &[Condition], now: Moment) {
        let since = |reason: &Reason| {
            let held = before.iter().find(|held| held.reason.phase == reason.phase);
            held.map_or(now.at, |held| held.since)
        };
        self.conditions = reasons(&self.state, self.tracker.proven(now.elapsed))
            .into_iter()
            .map(|reason| Condition { since: since(&reason), reason })
            .collect();
    }

    fn phase(&self) -> Phase {
        self.conditions[0].reason.phase
    }

    fn publish(&mut self) {
        let pending = self.state.apply == Apply::Applying && !self.tracker.caught_up();
        let status = FlowStatus {
            flow: self.identity.name.clone(),
            id: Some(self.identity.flow),
            generation: self.identity.generation,
            conditions: self.conditions.clone(),
            lineage: self.lineage.clone(),
            publications_changed: self.publications_changed.clone(),
            captured: self.tracker.captured,
            durable: self.tracker.durable,
            applied: self.tracker.applied,
            counters: self.tracker.counters(),
            source_seen: self.tracker.source_seen,
            target_seen: self.tracker.target_seen,
            heartbeat: self.tracker.heartbeat,
            applied_commit_time: self.tracker.applied_commit_time,
            tries: self.state.tries,
            deaths: self.identity.deaths,
            pause: self.state.pause().cloned(),
            quarantine: status::parked(&self.state),
            holder: status::holder(&self.state),
            log: self.log,
            work: Work { pending, silent_since: self.tracker.silent_since() },
        };
        self.actions.push(Action::Publish(Box::new(status)));
    }
}

/// The same things hold for the same coded reason; a changed wording is no news.
fn same(before: &[Condition], after: &[Condition]) -> bool {
    let key = |condition: &Condition| {
        let Reason { phase, code, evidence, .. } = &condition.reason;
        (*phase, code.clone(), evidence.clone())
    };
    before.iter().map(key).eq(after.iter().map(key))
}

/// What to say of an event beyond the condition that it leads to.
pub(crate) fn cause(event: &Event) -> Option<String> {
    match event {
        Event::Pause(pause) => Some(format!("by {}: {}", pause.who, pause.why)),
        Event::Decided { evidence } => Some(format!("{evidence} was released by a decision")),
        Event::GaveUp(fault) => Some(fault.what.clone()),
        Event::LineageKnown
        | Event::Capturing
        | Event::CaptureAdvanced
        | Event::CaptureEnded(_)
        | Event::RoomAgain
        | Event::Claimed
        | Event::ApplyAdvanced
        | Event::ApplyTrouble(_)
        | Event::ApplyEnded(_)
        | Event::Drained
        | Event::RetryDue(_)
        | Event::PauseRanOut
        | Event::Resume
        | Event::Restart
        | Event::Remove { .. }
        | Event::Detach
        | Event::Attach => None,
    }
}
