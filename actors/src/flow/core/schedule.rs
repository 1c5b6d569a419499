//! What the core waits for: scheduled retries, tasks that are stopping, a pause that runs out, a proof
//! that does. Everything is a deadline that the shell passes on to the fleet's one wheel.

use std::time::Duration;

use super::super::effect::Effect;
use super::super::event::Event;
use super::super::state::{Capture, Half, State};
use super::{Action, FlowCore, Moment};
use crate::flow::Phase;
use crate::runtime::FlowExit;

/// How long a task may take to end in an orderly way.
const STOP_GRACE: Duration = Duration::from_secs(10);
/// How often a full log is looked at.
const ROOM_POLL: Duration = Duration::from_secs(1);
/// Capture goes on when the log is filled to at most this many percent.
const ROOM_PERCENT: u64 = 80;

/// What of a half is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Slot {
    #[default]
    Empty,
    Running,
    /// Told to stop; aborted after the deadline.
    Stopping {
        deadline: Duration,
    },
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Schedule {
    capture: Plan,
    apply: Plan,
}

#[derive(Clone, Copy, Debug, Default)]
struct Plan {
    slot: Slot,
    retry_at: Option<Duration>,
}

impl Schedule {
    pub(super) fn slot(&self, half: Half) -> Slot {
        self.plan(half).slot
    }

    pub(super) fn clear(&mut self, half: Half) {
        self.plan_mut(half).slot = Slot::Empty;
    }

    /// A retry that the state no longer waits for is off.
    pub(super) fn forget_unless(&mut self, state: &State) {
        for half in [Half::Capture, Half::Apply] {
            if !state.waits(half) {
                self.plan_mut(half).retry_at = None;
            }
        }
    }

    fn plan(&self, half: Half) -> &Plan {
        match half {
            Half::Capture => &self.capture,
            Half::Apply => &self.apply,
        }
    }

    fn plan_mut(&mut self, half: Half) -> &mut Plan {
        match half {
            Half::Capture => &mut self.capture,
            Half::Apply => &mut self.apply,
        }
    }
}

impl FlowCore {
    pub(super) fn carry_out(&mut self, effect: Effect, now: Moment) {
        match effect {
            Effect::Start(half) => self.start(half),
            Effect::Stop(half) => {
                let plan = self.schedule.plan_mut(half);
                if plan.slot == Slot::Running {
                    plan.slot = Slot::Stopping { deadline: now.elapsed + STOP_GRACE };
                    self.actions.push(Action::Stop(half));
                }
            }
            Effect::RetryAfter(half, failures) => {
                let delay = self.policy.backoff(failures, now.random);
                self.schedule.plan_mut(half).retry_at = Some(now.elapsed + delay);
            }
        }
    }

    /// A half that is still stopping is started when it has ended.
    fn start(&mut self, half: Half) {
        if self.ending.is_some() || self.schedule.slot(half) != Slot::Empty {
            return;
        }
        self.schedule.plan_mut(half).slot = Slot::Running;
        let take_over = half == Half::Apply && self.take_over;
        self.actions.push(Action::Start { half, take_over });
    }

    pub(super) fn exit_when_still(&mut self) {
        let still = [Half::Capture, Half::Apply].iter().all(|half| self.schedule.slot(*half) == Slot::Empty);
        if let Some(exit) = &self.ending
            && still
            && !self.ended
        {
            self.ended = true;
            self.actions.push(Action::Exit(exit.clone()));
        }
    }

    /// Time has passed: whatever is due happens.
    pub fn tick(&mut self, now: Moment) {
        for half in [Half::Capture, Half::Apply] {
            self.abort_overdue(half, now);
            if self.schedule.plan(half).retry_at.is_some_and(|at| at <= now.elapsed) {
                self.schedule.plan_mut(half).retry_at = None;
                self.happen(&Event::RetryDue(half), now);
            }
        }
        if self.state.pause().and_then(|pause| pause.until).is_some_and(|until| until <= now.at) {
            self.happen(&Event::PauseRanOut, now);
        }
        self.look_for_room(now);
        self.look_at_proof(now);
        self.publish();
    }

    fn abort_overdue(&mut self, half: Half, now: Moment) {
        match self.schedule.slot(half) {
            Slot::Stopping { deadline } if deadline <= now.elapsed => {
                // The abort ends the task, which reports itself; asked once.
                self.schedule.plan_mut(half).slot = Slot::Stopping { deadline: Duration::MAX };
                self.actions.push(Action::Abort(half));
            }
            Slot::Stopping { .. } | Slot::Running | Slot::Empty => {}
        }
    }

    pub(super) fn look_for_room(&mut self, now: Moment) {
        let room = self.log.used.saturating_mul(100) <= self.log.max.saturating_mul(ROOM_PERCENT);
        if self.state.capture == Capture::LogFull && room && self.schedule.slot(Half::Capture) == Slot::Empty
        {
            self.happen(&Event::RoomAgain, now);
        }
    }

    /// Streaming begins and ends without any event of the machines.
    pub(super) fn look_at_proof(&mut self, now: Moment) {
        if matches!(self.phase(), Phase::Streaming | Phase::CatchingUp) {
            self.record("flow.progress", None, None, now);
        }
    }

    /// A transition that the core itself found due. A refusal is a defect of this flow, which ends it.
    pub(super) fn happen(&mut self, event: &Event, now: Moment) {
        if let Err(refused) = self.transition(event, None, now) {
            let what = format!("{} refused: {refused}", event.kind());
            self.end(FlowExit::Failed(super::intake::defect(what)), now);
        }
    }

    /// The earliest moment at which `tick` has something to do.
    pub fn wake_at(&self, now: Moment) -> Option<Duration> {
        let halves = [Half::Capture, Half::Apply].into_iter().flat_map(|half| {
            let stop = match self.schedule.slot(half) {
                Slot::Stopping { deadline } if deadline < Duration::MAX => Some(deadline),
                Slot::Stopping { .. } | Slot::Running | Slot::Empty => None,
            };
            [stop, self.schedule.plan(half).retry_at]
        });
        let pause = self.state.pause().and_then(|pause| pause.until);
        let pause = pause.map(|until| now.elapsed + Duration::from_micros(until.micros_since(now.at)));
        let room = (self.state.capture == Capture::LogFull).then_some(now.elapsed + ROOM_POLL);
        let proof = (self.phase() == Phase::Streaming).then(|| self.tracker.proven_until()).flatten();
        halves.chain([pause, room, proof]).flatten().min()
    }
}
