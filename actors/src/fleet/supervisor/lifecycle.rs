//! From waiting to running to whatever follows an end.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, Addr};
use futures_util::future::{Either, select};
use tracing::{error, info, warn};
use trellara_storage::{Batch, Error, FlowName, Timestamp};

use super::{After, Entry, News, Ready, Running, Stage, Supervisor, Then, What, settle};
use crate::failure::Code;
use crate::fleet::restart::Decision;
use crate::flow::core::{Begin, Identity, store_failed};
use crate::flow::event::Event;
use crate::flow::order::OrderError;
use crate::flow::phase::{Reason, reasons};
use crate::flow::record;
use crate::flow::state::Whole;
use crate::flow::{FlowActor, FlowSetup, Phase, State};
use crate::ports::{Clock, FlowFactory, FlowLog, RemoveOptions, RemovedPart, RemovedState};
use crate::runtime::{ExitGuard, FlowExit, TaskScope};

/// How long an aborted task may take to come to its end; one that does not keeps its flow from starting.
const LAST_STEP: Duration = Duration::from_secs(10);

impl<F: FlowFactory, C: Clock> Supervisor<F, C> {
    /// Waiting -> Opening, under the spawn limit.
    pub(super) fn start_waiting(&mut self, now: Duration, to: &Addr<Self>) {
        let opening = self.flows.values().filter(|entry| matches!(entry.stage, Stage::Opening)).count();
        let room = self.settings.starts_at_once.saturating_sub(opening);
        let due: Vec<FlowName> = self
            .flows
            .iter()
            .filter(|(_, entry)| matches!(entry.stage, Stage::Waiting { not_before } if not_before <= now))
            .map(|(flow, _)| flow.clone())
            .take(room)
            .collect();
        for flow in due {
            self.open(&flow, to);
        }
    }

    fn open(&mut self, flow: &FlowName, to: &Addr<Self>) {
        self.generations += 1;
        let generation = self.generations;
        let Some(entry) = self.flows.get_mut(flow) else { return };
        entry.generation = generation;
        entry.stage = Stage::Opening;
        let (factory, name, clock) = (Arc::clone(&self.factory), flow.clone(), self.clock.clone());
        let before = entry.scope.clone();
        self.work(flow, generation, to, async move {
            What::Opened(ready(&*factory, &clock, &name, &before).await.map(Box::new))
        });
    }

    pub(super) fn opened(
        &mut self,
        flow: &FlowName,
        result: Result<Box<Ready<F::Log>>, FlowExit>,
        to: &Addr<Self>,
    ) {
        let closing = self.closing.is_some();
        let Some(entry) = self.flows.get_mut(flow) else { return };
        if !matches!(entry.then, Then::Decide) || closing {
            return self.exited(flow, &FlowExit::Stopped, to);
        }
        match result {
            Err(exit) => self.exited(flow, &exit, to),
            Ok(ready) => match ready.stored.state.whole {
                Whole::Removing { keep_slot } => {
                    let options = RemoveOptions { keep_slot, dry_run: false };
                    entry.stage = Stage::Settling(After::Remove { options, answer: None });
                    self.remove(flow, options, to);
                }
                Whole::Active | Whole::Fenced(_) | Whole::Failed(_) | Whole::Detached => {
                    self.place(flow, *ready, to);
                }
            },
        }
    }

    /// Makes the actor on its thread; the address comes back as news, the end through the guard.
    fn place(&mut self, flow: &FlowName, ready: Ready<F::Log>, to: &Addr<Self>) {
        let Some(entry) = self.flows.get_mut(flow) else { return };
        let Ready { open, stored } = ready;
        let (generation, scope) = (entry.generation, TaskScope::default());
        let setup = FlowSetup {
            identity: Identity {
                flow: open.id,
                name: flow.clone(),
                generation,
                deaths: entry.deaths.total(),
            },
            open,
            stored,
            begin: std::mem::replace(&mut entry.begin, Begin::Resume),
            policy: self.settings.restart,
            data: self.data.clone(),
            scope: scope.clone(),
            cell: Arc::clone(&entry.cell),
            clock: self.clock.clone(),
            wheel: Arc::clone(&self.wheel),
        };
        let now = Some(self.clock.elapsed());
        entry.scope = scope;
        entry.stage = Stage::Running(Running { address: None, asked: now, ending: None });
        let guard = ExitGuard::new(FlowExit::Panicked, {
            let (flow, to) = (flow.clone(), to.clone());
            move |exit| to.do_send(News { flow, generation, what: What::Exited(exit) })
        });
        let (flow, to, number) = (flow.clone(), to.clone(), entry.number);
        let Some(thread) = self.placement.flow(number) else {
            // The guard reports it.
            return error!(flow = %flow, "no thread is left for flows");
        };
        thread.spawn_fn(move || {
            let address = FlowActor::create(|context| FlowActor::new(setup, guard, context));
            to.do_send(News { flow, generation, what: What::Placed(address) });
        });
    }

    pub(super) fn placed(&mut self, flow: &FlowName, address: Addr<FlowActor<F::Log, C>>) {
        let Some(entry) = self.flows.get_mut(flow) else { return };
        if let Stage::Running(running) = &mut entry.stage {
            running.asked = None;
            running.address = Some(address);
            if running.ending.is_some() {
                // It was to end before it was there.
                running.ending = None;
                self.end(flow, FlowExit::Stopped);
            }
        }
    }

    /// A generation is over.
    pub(super) fn exited(&mut self, flow: &FlowName, exit: &FlowExit, to: &Addr<Self>) {
        let now = self.clock.elapsed();
        self.wheel.set(flow, None);
        let Some(entry) = self.flows.get_mut(flow) else { return };
        entry.scope.cut_off();
        if self.closing.is_some() {
            entry.stage = Stage::Closed;
            return;
        }
        match std::mem::take(&mut entry.then) {
            Then::Decide => self.decide(flow, exit, now, to),
            Then::Start => entry.stage = Stage::Waiting { not_before: now },
            Then::Detach => self.settle(flow, Event::Detach, After::Detach, to),
            Then::Remove { options, answer } => {
                let event = Event::Remove { keep_slot: options.keep_slot };
                self.settle(flow, event, After::Remove { options, answer: Some(answer) }, to);
            }
        }
    }

    fn decide(&mut self, flow: &FlowName, exit: &FlowExit, now: Duration, to: &Addr<Self>) {
        let (at, random) = (self.clock.now(), self.clock.random());
        let Some(entry) = self.flows.get_mut(flow) else { return };
        let generation = entry.generation;
        match self.settings.restart.decide(exit, &mut entry.deaths, now, random) {
            // Nothing asked it to end: it is wanted, so it starts again.
            Decision::Leave => entry.stage = Stage::Waiting { not_before: now + self.settings.restart.first },
            Decision::RestartAfter(delay) => {
                warn!(flow = %flow, generation, exit = exit.name(), ?delay, "flow ended, starts again");
                entry.stage = Stage::Waiting { not_before: now + delay };
                entry.show(vec![restarting(exit)], at);
            }
            Decision::Park(fault) => {
                error!(flow = %flow, generation, exit = exit.name(), "flow keeps ending, parked as failed");
                entry.show(vec![Reason::fault(Phase::Failed, &fault)], at);
                self.settle(flow, Event::GaveUp(fault), After::Park { answer: None }, to);
            }
        }
    }

    /// Records a transition of a flow that has no actor.
    pub(super) fn settle(&mut self, flow: &FlowName, event: Event, after: After, to: &Addr<Self>) {
        let at = self.clock.now();
        let Some(entry) = self.flows.get_mut(flow) else { return };
        entry.stage = Stage::Settling(after);
        let generation = entry.generation;
        let (factory, name) = (Arc::clone(&self.factory), flow.clone());
        self.work(flow, generation, to, async move {
            What::Settled(settle::settle(&*factory, &name, &event, at).await.map(Box::new))
        });
    }

    pub(super) fn settled(
        &mut self,
        flow: &FlowName,
        result: Result<Box<State>, OrderError>,
        to: &Addr<Self>,
    ) {
        let at = self.clock.now();
        let Some(entry) = self.flows.get_mut(flow) else { return };
        let Stage::Settling(after) = std::mem::replace(&mut entry.stage, Stage::Parked) else { return };
        match &result {
            Ok(state) => entry.show(resting(state), at),
            // What is in memory still holds; the next start reads the older record.
            Err(error) => warn!(flow = %flow, error = %error, "state of a stopped flow not recorded"),
        }
        match after {
            After::Wait { not_before, answer } => {
                entry.stage = Stage::Waiting { not_before };
                reply(answer, result.map(|_| ()));
            }
            After::Park { answer } => reply(answer, result.map(|_| ())),
            After::Detach => entry.stage = Stage::Detached,
            After::Remove { options, answer } => match result {
                Ok(_) | Err(OrderError::UnknownFlow) => {
                    entry.stage = Stage::Settling(After::Remove { options, answer });
                    self.remove(flow, options, to);
                }
                Err(error) => {
                    entry.stage = Stage::HalfRemoved;
                    reply(answer, Err(error));
                }
            },
        }
    }

    fn remove(&mut self, flow: &FlowName, options: RemoveOptions, to: &Addr<Self>) {
        let Some(entry) = self.flows.get(flow) else { return };
        let generation = entry.generation;
        let removing = self.factory.remove(flow, options);
        self.work(flow, generation, to, async move { What::Removed(removing.await) });
    }

    pub(super) fn removed(&mut self, flow: &FlowName, result: Result<Vec<RemovedPart>, Error>) {
        let Some(entry) = self.flows.get_mut(flow) else { return };
        let Stage::Settling(After::Remove { answer, .. }) =
            std::mem::replace(&mut entry.stage, Stage::HalfRemoved)
        else {
            return;
        };
        let left = |part: &RemovedPart| matches!(part.state, RemovedState::Left { .. });
        let whole = result.as_ref().is_ok_and(|parts| !parts.iter().any(left));
        if whole {
            info!(flow = %flow, "flow removed");
            self.flows.remove(flow);
            self.view.leave(flow);
        } else {
            warn!(flow = %flow, "flow could not be removed wholly");
        }
        reply(answer, result.map_err(OrderError::Store));
    }
}

/// Opens the flow once nothing of the generation before is left: no task, and no write on its way.
async fn ready<F: FlowFactory, C: Clock>(
    factory: &F,
    clock: &C,
    flow: &FlowName,
    before: &TaskScope,
) -> Result<Ready<F::Log>, FlowExit> {
    let (idle, alarm) = (pin!(before.idle()), pin!(clock.sleep(LAST_STEP)));
    if let Either::Right(_) = select(idle, alarm).await {
        return Err(FlowExit::Lost);
    }
    load(factory, flow).await.map_err(|error| store_failed(&error))
}

async fn load<F: FlowFactory>(factory: &F, flow: &FlowName) -> Result<Ready<F::Log>, Error> {
    let open = factory.open(flow).await?;
    // Its receipt comes after everything that was submitted before.
    open.log.submit(Batch::new()).await?.await?;
    let id = open.id;
    let stored = open.log.read(move |store| record::load(store, id)).await?;
    Ok(Ready { open, stored })
}

/// What a stopped flow shows of its recorded state: nothing of it is on its way.
fn resting(state: &State) -> Vec<Reason> {
    let mut reasons = reasons(state, false);
    reasons.retain(|reason| match reason.phase {
        Phase::Connecting | Phase::CatchingUp | Phase::Streaming => false,
        Phase::Failed
        | Phase::Fenced
        | Phase::Removing
        | Phase::Detached
        | Phase::LineageLost
        | Phase::Quarantined
        | Phase::Unavailable
        | Phase::LogFull
        | Phase::Paused
        | Phase::Retrying
        | Phase::NotSeeded => true,
    });
    reasons
}

fn restarting(exit: &FlowExit) -> Reason {
    let code = match exit {
        FlowExit::Failed(fault) => fault.code,
        FlowExit::NoRoom => Code::StoreFull,
        FlowExit::Stalled => Code::Stalled,
        FlowExit::Completed | FlowExit::Stopped | FlowExit::Panicked | FlowExit::Lost => Code::Panicked,
    };
    Reason {
        code: Some(code.to_string()),
        ..Reason::plain(Phase::Retrying, format!("{}, starts again", code.title()))
    }
}

impl<L: FlowLog, C: Clock> Entry<L, C> {
    fn show(&self, reasons: Vec<Reason>, at: Timestamp) {
        if !reasons.is_empty() {
            self.cell.show(reasons, self.deaths.total(), at);
        }
    }
}

/// Whoever asked may have gone.
pub(super) fn reply<T>(answer: Option<crate::flow::order::Answer<T>>, result: Result<T, OrderError>) {
    if let Some(answer) = answer {
        drop(answer.send(result));
    }
}
