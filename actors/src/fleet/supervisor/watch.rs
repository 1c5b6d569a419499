//! The turning wheel: what is due, what may start, who does not answer.

use std::time::Duration;

use actix::Addr;
use tracing::{error, warn};
use trellara_storage::FlowName;

use super::{Stage, Supervisor};
use crate::fleet::stall::{Life, Verdict};
use crate::flow::Tick;
use crate::flow::order::FlowOrder;
use crate::ports::{Clock, FlowFactory};
use crate::runtime::FlowExit;

/// How often the living are looked at.
const WATCH: Duration = Duration::from_millis(250);

impl<F: FlowFactory, C: Clock> Supervisor<F, C> {
    pub(super) fn turn(&mut self, to: &Addr<Self>) {
        let now = self.clock.elapsed();
        for flow in self.wheel.due(now) {
            self.ask(&flow, now);
        }
        if self.closing.is_none() {
            self.start_waiting(now, to);
        }
        if now.saturating_sub(self.watched) >= WATCH {
            self.watched = now;
            self.watch(now, to);
        }
    }

    /// Tells the flow that time has passed; its next sign of life is the answer.
    fn ask(&mut self, flow: &FlowName, now: Duration) {
        let Some(entry) = self.flows.get_mut(flow) else { return };
        let Stage::Running(running) = &mut entry.stage else { return };
        let Some(address) = &running.address else { return };
        match address.try_send(Tick) {
            Ok(()) => running.asked = running.asked.or(Some(now)),
            // Full: it has enough to do; the deadline comes round again.
            Err(actix::dev::SendError::Full(_)) => self.wheel.set(flow, Some(now)),
            // The guard has reported, or will.
            Err(actix::dev::SendError::Closed(_)) => {}
        }
    }

    fn watch(&mut self, now: Duration, to: &Addr<Self>) {
        let verdicts: Vec<(FlowName, Verdict)> = self
            .flows
            .iter_mut()
            .filter_map(|(flow, entry)| {
                let Stage::Running(running) = &mut entry.stage else { return None };
                let answered = entry.cell.answered();
                // The answer is kept in whole milliseconds.
                running.asked = running
                    .asked
                    .filter(|at| running.address.is_none() || answered + Duration::from_millis(1) < *at);
                let (asked, ending) = (running.asked, running.ending);
                let life = Life { asked, answered, ending, work: entry.cell.status().work };
                Some((flow.clone(), self.settings.stall.judge(life, now)))
            })
            .collect();
        for (flow, verdict) in verdicts {
            match verdict {
                Verdict::Fine => {}
                Verdict::Ask => self.ask(&flow, now),
                Verdict::Stuck => {
                    error!(flow = %flow, "no progress while work is pending, generation dropped");
                    self.end(&flow, FlowExit::Stalled);
                }
                Verdict::Mute => {
                    error!(flow = %flow, "flow does not answer, cut off");
                    self.cut_off(&flow, to);
                }
            }
        }
    }

    /// Tells a running flow to end, once.
    pub(super) fn end(&mut self, flow: &FlowName, exit: FlowExit) {
        let now = self.clock.elapsed();
        let Some(entry) = self.flows.get_mut(flow) else { return };
        let Stage::Running(running) = &mut entry.stage else { return };
        if running.ending.is_some() {
            return;
        }
        running.ending = Some(now);
        let Some(address) = &running.address else { return };
        if address.try_send(FlowOrder::End(exit)).is_err() {
            // Full or gone: the deadline of its end cuts it off.
            warn!(flow = %flow, "flow could not be told to end");
        }
    }

    /// Gives up on a generation: its tasks are aborted, its late end means nothing any more. The next one is
    /// placed on another thread, since what does not answer may be the thread.
    pub(super) fn cut_off(&mut self, flow: &FlowName, to: &Addr<Self>) {
        self.generations += 1;
        let generation = self.generations;
        let Some(entry) = self.flows.get_mut(flow) else { return };
        entry.generation = generation;
        entry.number += 1;
        self.exited(flow, &FlowExit::Stalled, to);
    }
}
