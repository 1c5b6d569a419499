//! The flow's actor: a mailbox around the core. Control only; no change data ever comes through here.

use std::sync::Arc;

use actix::{Actor, ActorContext, AsyncContext, Context, Handler, Message};

use super::core::{FlowCore, Identity, Moment};
use super::decide::Deciding;
use super::event::Event;
use super::hands::{Hands, Tools};
use super::link::FlowLink;
use super::order::{Answer, FlowOrder, OrderError};
use super::sequence::EventSequence;
use super::setup::FlowSetup;
use crate::ports::{Clock, FlowLog};
use crate::runtime::{Doorbell, ExitGuard, FlowExit, Wheel};

/// Something was left in a cell: look.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub struct Ring;

/// Time has passed; also the question "are you there?".
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub struct Tick;

/// One generation of one flow. Fields are dropped in order: the tasks before the report of the end.
pub struct FlowActor<L: FlowLog, C: Clock> {
    pub(super) core: FlowCore,
    pub(super) hands: Hands<L>,
    pub(super) deciding: Option<Deciding>,
    clock: C,
    wheel: Arc<Wheel>,
    identity: Identity,
    guard: ExitGuard<FlowExit>,
}

impl<L: FlowLog, C: Clock> FlowActor<L, C> {
    /// `guard` reports the end of this generation, whatever ends it.
    pub fn new(setup: FlowSetup<L, C>, guard: ExitGuard<FlowExit>, context: &Context<Self>) -> Self {
        let address = context.address().downgrade();
        let bell = Doorbell::new(move || {
            // A fresh clone per message always has room, and the bell rings once until it is answered.
            let _ = address.upgrade().map(|address| address.try_send(Ring));
        });
        let FlowSetup { identity, open, stored, begin, policy, data, scope, cell, clock, wheel } = setup;
        let events = EventSequence::after(stored.newest_event);
        // Apply waits for the link's lineage, and capture gives it once it is judged.
        let judged = stored.lineage.clone().filter(|_| !stored.recovered);
        let link = FlowLink::new(judged, stored.durable);
        open.tasks.begin(&link);
        let tools = Tools {
            flow: open.id,
            log: open.log,
            tasks: open.tasks,
            data,
            scope,
            bell,
            cell,
            link,
            events: events.clone(),
        };
        let now = moment(&clock);
        let core = FlowCore::new(identity.clone(), stored, begin, events, policy, now);
        let hands = Hands::new(tools);
        Self { core, hands, deciding: None, clock, wheel, identity, guard }
    }

    /// After every message: does what the core asks for, and sets the flow's one deadline.
    fn carry_on(&mut self, context: &mut Context<Self>) {
        if self.hands.tools.scope.is_cut_off() {
            // Given up on: the next generation may be there already.
            return context.stop();
        }
        self.hands.queue(self.core.take_actions());
        let now = moment(&self.clock);
        self.hands.tools.cell.beat(now.elapsed);
        if let Some(exit) = self.hands.work() {
            self.guard.set(exit);
            return context.stop();
        }
        self.wheel.set(&self.identity.name, self.core.wake_at(now));
    }

    fn take_in(&mut self) {
        let now = moment(&self.clock);
        if let Some(Err(error)) = self.hands.written() {
            self.hands.abandon();
            self.core.not_persisted(&error);
        }
        self.core.look(self.hands.surroundings(), now);
        let (reports, ended) = self.hands.capture_news();
        reports.into_iter().for_each(|report| self.core.capture_report(report, now));
        ended.into_iter().for_each(|exit| self.core.capture_ended(exit, now));
        let (reports, ended) = self.hands.apply_news();
        reports.into_iter().for_each(|report| self.core.apply_report(report, now));
        ended.into_iter().for_each(|exit| self.core.apply_ended(exit, now));
        self.core.taken_in(now);
        self.take_decision(now);
    }

    pub(super) fn order_done(&mut self, answer: Answer<()>, result: Result<(), OrderError>) {
        self.hands.queue(self.core.take_actions());
        self.hands.answer(answer, result);
    }
}

/// Nothing in it is pinned.
impl<L: FlowLog, C: Clock> Unpin for FlowActor<L, C> {}

impl<L: FlowLog, C: Clock> Actor for FlowActor<L, C> {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        self.hands.measure();
        self.carry_on(context);
    }
}

impl<L: FlowLog, C: Clock> Handler<Ring> for FlowActor<L, C> {
    type Result = ();

    fn handle(&mut self, _: Ring, context: &mut Self::Context) {
        self.hands.tools.bell.answer();
        self.take_in();
        self.carry_on(context);
    }
}

impl<L: FlowLog, C: Clock> Handler<Tick> for FlowActor<L, C> {
    type Result = ();

    fn handle(&mut self, _: Tick, context: &mut Self::Context) {
        self.hands.measure();
        self.core.tick(moment(&self.clock));
        self.carry_on(context);
    }
}

impl<L: FlowLog, C: Clock> Handler<FlowOrder> for FlowActor<L, C> {
    type Result = ();

    fn handle(&mut self, order: FlowOrder, context: &mut Self::Context) {
        let now = moment(&self.clock);
        match order {
            FlowOrder::Pause { pause, answer } => {
                let result = self.core.order(&Event::Pause(pause), None, now);
                self.order_done(answer, result.map_err(OrderError::Refused));
            }
            FlowOrder::Resume { answer } => {
                let result = self.core.order(&Event::Resume, None, now);
                self.order_done(answer, result.map_err(OrderError::Refused));
            }
            FlowOrder::Decide { evidence, decision, by, answer } => {
                self.decide(evidence, decision, by, answer);
            }
            FlowOrder::Check { evidence, answer } => self.check(&evidence, answer),
            FlowOrder::End(exit) => self.core.end(exit, now),
        }
        self.carry_on(context);
    }
}

impl<L: FlowLog, C: Clock> std::fmt::Debug for FlowActor<L, C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FlowActor").field("flow", &self.identity.name).finish_non_exhaustive()
    }
}

fn moment<C: Clock>(clock: &C) -> Moment {
    Moment { at: clock.now(), elapsed: clock.elapsed(), random: clock.random() }
}
