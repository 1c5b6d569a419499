//! Orders of operators and of a reload.

use std::collections::BTreeMap;

use actix::Addr;
use tracing::info;
use trellara_storage::FlowName;

use super::lifecycle::reply;
use super::{After, Entry, FleetOrder, Stage, Supervisor, Then, WantedFlow};
use crate::fleet::diff::{FleetDiff, diff};
use crate::fleet::restart::Deaths;
use crate::flow::Phase;
use crate::flow::core::Begin;
use crate::flow::event::Event;
use crate::flow::machine::Refused;
use crate::flow::order::{Answer, FlowOrder, OrderError};
use crate::flow::phase::Reason;
use crate::ports::{Clock, FlowFactory, FlowLog, RemoveOptions, RemovedPart};
use crate::runtime::{FlowExit, TaskScope};

impl<F: FlowFactory, C: Clock> Supervisor<F, C> {
    pub(super) fn order(&mut self, order: FleetOrder, to: &Addr<Self>) {
        match order {
            FleetOrder::SetWanted { wanted, stored, answer } => {
                let diff = self.set_wanted(&wanted, &stored, to);
                reply(Some(answer), Ok(diff));
            }
            FleetOrder::ToFlow { flow, order } => self.forward(&flow, order, to),
            FleetOrder::Restart { flow, take_over, answer } => {
                let result = self.restart(&flow, take_over);
                reply(Some(answer), result);
            }
            FleetOrder::Remove { flow, options, answer } => self.remove_order(&flow, options, answer, to),
            FleetOrder::Close { answer } => self.close(answer),
            FleetOrder::CutOff => {
                let flows: Vec<FlowName> = self.flows.keys().cloned().collect();
                flows.iter().for_each(|flow| self.cut_off(flow, to));
            }
        }
    }

    fn set_wanted(&mut self, wanted: &[WantedFlow], stored: &[FlowName], to: &Addr<Self>) -> FleetDiff {
        for flow in stored {
            let known = self.flows.contains_key(flow) || wanted.iter().any(|wanted| wanted.flow == *flow);
            if !known {
                self.enter(flow, String::new(), Stage::Detached, Phase::Detached, "not configured");
            }
        }
        let present: BTreeMap<FlowName, Option<String>> = self
            .flows
            .iter()
            .map(|(flow, entry)| (flow.clone(), configured(entry).then(|| entry.revision.clone())))
            .collect();
        let diff = diff(&present, wanted);
        let revisions: BTreeMap<&FlowName, &String> =
            wanted.iter().map(|wanted| (&wanted.flow, &wanted.revision)).collect();
        for flow in &diff.start {
            self.attach(flow, revisions[flow].clone());
        }
        for flow in &diff.restart {
            if let Some(entry) = self.flows.get_mut(flow) {
                entry.revision.clone_from(revisions[flow]);
            }
            self.renew(flow);
        }
        for flow in &diff.detach {
            self.detach(flow, to);
        }
        info!(
            start = diff.start.len(),
            restart = diff.restart.len(),
            detach = diff.detach.len(),
            "fleet set"
        );
        diff
    }

    fn enter(&mut self, flow: &FlowName, revision: String, stage: Stage<F::Log, C>, phase: Phase, why: &str) {
        let cell = self.view.enter(flow, Reason::plain(phase, why), self.clock.now());
        self.numbers += 1;
        let entry = Entry {
            revision,
            number: self.numbers,
            generation: 0,
            stage,
            then: Then::Decide,
            begin: Begin::Resume,
            deaths: Deaths::default(),
            cell,
            scope: TaskScope::default(),
        };
        self.flows.insert(flow.clone(), entry);
    }

    /// A new flow, or one that came back into the configuration.
    fn attach(&mut self, flow: &FlowName, revision: String) {
        let waiting = Stage::Waiting { not_before: self.clock.elapsed() };
        match self.flows.get_mut(flow) {
            None => self.enter(flow, revision, waiting, Phase::Connecting, "starting"),
            Some(entry) => {
                entry.revision = revision;
                match entry.stage {
                    Stage::Detached => entry.stage = waiting,
                    // On its way out: it starts once it is there.
                    Stage::Running(_) | Stage::Opening => entry.then = Then::Start,
                    Stage::Settling(_) => {
                        entry.stage =
                            Stage::Settling(After::Wait { not_before: self.clock.elapsed(), answer: None });
                    }
                    Stage::Waiting { .. } | Stage::Parked | Stage::HalfRemoved | Stage::Closed => {}
                }
            }
        }
    }

    /// A new generation by the newest settings. A parked flow stays parked.
    fn renew(&mut self, flow: &FlowName) {
        let Some(entry) = self.flows.get_mut(flow) else { return };
        match entry.stage {
            Stage::Running(_) | Stage::Opening => {
                entry.then = Then::Start;
                self.end(flow, FlowExit::Stopped);
            }
            Stage::Waiting { .. }
            | Stage::Settling(_)
            | Stage::Parked
            | Stage::Detached
            | Stage::HalfRemoved
            | Stage::Closed => {}
        }
    }

    fn detach(&mut self, flow: &FlowName, to: &Addr<Self>) {
        let Some(entry) = self.flows.get_mut(flow) else { return };
        match entry.stage {
            Stage::Running(_) | Stage::Opening => {
                entry.then = Then::Detach;
                self.end(flow, FlowExit::Stopped);
            }
            Stage::Waiting { .. } | Stage::Parked => self.settle(flow, Event::Detach, After::Detach, to),
            Stage::Settling(ref mut after) => match after {
                After::Wait { .. } | After::Park { .. } | After::Detach => *after = After::Detach,
                After::Remove { .. } => {}
            },
            Stage::Detached | Stage::HalfRemoved | Stage::Closed => {}
        }
    }

    fn forward(&mut self, flow: &FlowName, order: FlowOrder, to: &Addr<Self>) {
        let Some(entry) = self.flows.get_mut(flow) else { return refuse(order, OrderError::UnknownFlow) };
        match &entry.stage {
            Stage::Running(running) => match &running.address {
                Some(address) if running.ending.is_none() => match address.try_send(order) {
                    Ok(()) => {}
                    Err(actix::dev::SendError::Full(order)) => refuse(order, OrderError::Busy),
                    Err(actix::dev::SendError::Closed(order)) => refuse(order, OrderError::NotRunning),
                },
                Some(_) | None => refuse(order, OrderError::NotRunning),
            },
            Stage::Waiting { not_before } => {
                let not_before = *not_before;
                self.settle_order(flow, order, |answer| After::Wait { not_before, answer }, to);
            }
            Stage::Parked => self.settle_order(flow, order, |answer| After::Park { answer }, to),
            Stage::Detached => refuse(order, OrderError::Refused(Refused::Detached)),
            Stage::HalfRemoved => refuse(order, OrderError::Refused(Refused::Removing)),
            Stage::Opening | Stage::Settling(_) | Stage::Closed => refuse(order, OrderError::NotRunning),
        }
    }

    /// A pause reaches a flow that waits for its next start, or that was parked, as well.
    fn settle_order(
        &mut self,
        flow: &FlowName,
        order: FlowOrder,
        after: impl FnOnce(Option<Answer<()>>) -> After,
        to: &Addr<Self>,
    ) {
        match order {
            FlowOrder::Pause { pause, answer } => {
                self.settle(flow, Event::Pause(pause), after(Some(answer)), to);
            }
            FlowOrder::Resume { answer } => self.settle(flow, Event::Resume, after(Some(answer)), to),
            order @ (FlowOrder::Decide { .. } | FlowOrder::Check { .. } | FlowOrder::End(_)) => {
                refuse(order, OrderError::NotRunning);
            }
        }
    }

    /// Accepted: a new generation follows at once, whatever the flow was.
    fn restart(&mut self, flow: &FlowName, take_over: bool) -> Result<(), OrderError> {
        let now = self.clock.elapsed();
        let entry = self.flows.get_mut(flow).ok_or(OrderError::UnknownFlow)?;
        match entry.stage {
            Stage::Detached => return Err(OrderError::Refused(Refused::Detached)),
            Stage::HalfRemoved => return Err(OrderError::Refused(Refused::Removing)),
            Stage::Settling(_) | Stage::Closed => return Err(OrderError::Busy),
            Stage::Waiting { .. } | Stage::Parked => entry.stage = Stage::Waiting { not_before: now },
            Stage::Running(_) | Stage::Opening => {
                if !matches!(entry.then, Then::Decide | Then::Start) {
                    return Err(OrderError::Busy);
                }
                entry.then = Then::Start;
            }
        }
        entry.begin = Begin::Restart { take_over };
        entry.deaths.forgive();
        self.end(flow, FlowExit::Stopped);
        Ok(())
    }

    fn remove_order(
        &mut self,
        flow: &FlowName,
        options: RemoveOptions,
        answer: Answer<Vec<RemovedPart>>,
        to: &Addr<Self>,
    ) {
        let Some(entry) = self.flows.get_mut(flow) else {
            return reply(Some(answer), Err(OrderError::UnknownFlow));
        };
        if options.dry_run {
            let planned = self.factory.remove(flow, options);
            self.data.run(async move { reply(Some(answer), planned.await.map_err(OrderError::Store)) });
            return;
        }
        match entry.stage {
            Stage::Running(_) | Stage::Opening => {
                entry.then = Then::Remove { options, answer };
                self.end(flow, FlowExit::Stopped);
            }
            Stage::Waiting { .. } | Stage::Parked | Stage::Detached | Stage::HalfRemoved => {
                let event = Event::Remove { keep_slot: options.keep_slot };
                self.settle(flow, event, After::Remove { options, answer: Some(answer) }, to);
            }
            Stage::Settling(_) | Stage::Closed => reply(Some(answer), Err(OrderError::Busy)),
        }
    }

    fn close(&mut self, answer: Answer<()>) {
        self.closing = Some(answer);
        let flows: Vec<FlowName> = self.flows.keys().cloned().collect();
        for flow in flows {
            self.end(&flow, FlowExit::Stopped);
        }
    }

    /// Answers the close once no generation and no removal is under way.
    pub(super) fn close_when_still(&mut self) {
        let still = |entry: &Entry<F::Log, C>| match entry.stage {
            Stage::Opening | Stage::Running(_) | Stage::Settling(_) => false,
            Stage::Waiting { .. } | Stage::Parked | Stage::Detached | Stage::HalfRemoved | Stage::Closed => {
                true
            }
        };
        if self.closing.is_some() && self.flows.values().all(still) {
            // The answer is given once; closing goes on to hold new starts back.
            let (done, _) = tokio::sync::oneshot::channel();
            reply(self.closing.replace(done), Ok(()));
        }
    }
}

/// Detached and half-removed flows are there without being configured.
fn configured<L: FlowLog, C: Clock>(entry: &Entry<L, C>) -> bool {
    match entry.stage {
        Stage::Detached | Stage::HalfRemoved => false,
        Stage::Settling(After::Detach | After::Remove { .. }) => false,
        Stage::Settling(After::Wait { .. } | After::Park { .. })
        | Stage::Waiting { .. }
        | Stage::Opening
        | Stage::Running(_)
        | Stage::Parked
        | Stage::Closed => !matches!(entry.then, Then::Detach | Then::Remove { .. }),
    }
}

fn refuse(order: FlowOrder, error: OrderError) {
    match order {
        FlowOrder::Pause { answer, .. } | FlowOrder::Resume { answer } | FlowOrder::Decide { answer, .. } => {
            reply(Some(answer), Err(error))
        }
        FlowOrder::Check { answer, .. } => reply(Some(answer), Err(error)),
        FlowOrder::End(_) => {}
    }
}
