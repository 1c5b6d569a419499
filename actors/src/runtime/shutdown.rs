//! Staged shutdown: flows, then their tasks, then the threads, each stage with a deadline.
//!
//! Stopping an actor system joins nothing by itself, and a stopped thread drops what runs on it. So flows
//! end first, in an orderly way (the group in hand is finished, connections are closed); what has not ended
//! by its deadline is cut off and counted; threads are joined last.

use std::future::Future;
use std::time::Duration;

use futures_util::future::{Either, select};

use super::arbiters::Control;
use super::task::DataRuntime;
use crate::fleet::FleetHandle;
use crate::ports::Clock;

/// Deadlines of the stages.
#[derive(Clone, Copy, Debug)]
pub struct ShutdownDeadlines {
    /// Flows end by themselves.
    pub flows: Duration,
    /// Tasks that were cut off are gone.
    pub tasks: Duration,
    pub threads: Duration,
}

impl Default for ShutdownDeadlines {
    fn default() -> Self {
        Self {
            flows: Duration::from_secs(20),
            tasks: Duration::from_secs(5),
            threads: Duration::from_secs(5),
        }
    }
}

/// How far an orderly end went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShutdownReport {
    /// Every flow ended by itself in time.
    pub orderly: bool,
    /// Tasks that could not even be aborted in time.
    pub tasks_left: usize,
    pub threads_joined: bool,
}

/// Blocks; to be called outside every runtime, while the data runtime still works.
pub fn shut_down<C: Clock>(
    fleet: &FleetHandle,
    data: &DataRuntime,
    control: Control,
    clock: &C,
    deadlines: ShutdownDeadlines,
) -> ShutdownReport {
    let orderly = data.block_on(async {
        let closed = within(clock, deadlines.flows, fleet.close()).await.is_some_and(|end| end.is_ok());
        if !closed {
            fleet.cut_off();
        }
        let idle = within(clock, deadlines.tasks, data.idle()).await.is_some();
        closed && idle
    });
    let tasks_left = data.live();
    let threads_joined = control.join(deadlines.threads).is_ok();
    ShutdownReport { orderly, tasks_left, threads_joined }
}

/// None when the deadline comes first.
async fn within<T>(clock: &impl Clock, deadline: Duration, work: impl Future<Output = T>) -> Option<T> {
    let (work, alarm) = (std::pin::pin!(work), std::pin::pin!(clock.sleep(deadline)));
    match select(work, alarm).await {
        Either::Left((done, _)) => Some(done),
        Either::Right(_) => None,
    }
}
