//! Carries out what the core asks for: tasks, writes, publishing. Holds nothing that must survive.
//!
//! Jobs are done strictly in order. A write stops the queue until it is durable, so nothing that a
//! recorded step allows happens before the record (persist before acting).

use std::collections::VecDeque;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use trellara_storage::families::flows;
use trellara_storage::records::{Durable, Floor, FlowPart};
use trellara_storage::{Batch, Error, FlowId, Store};

use super::core::{Action, Surroundings};
use super::link::FlowLink;
use super::order::{Answer, OrderError};
use super::sequence::EventSequence;
use super::state::Half;
use crate::apply::{ApplyExit, ApplyReport};
use crate::capture::{CaptureExit, CaptureReport};
use crate::fleet::FlowCell;
use crate::ports::{FlowLog, FlowTasks, TaskContext};
use crate::runtime::{DataRuntime, Doorbell, FlowExit, Report, Task, TaskExit, TaskScope};

impl Report for CaptureReport {
    fn replaces(&self, earlier: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(earlier)
    }
}

impl Report for ApplyReport {
    fn replaces(&self, earlier: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(earlier)
    }
}

/// What the flow works with.
pub(super) struct Tools<L> {
    pub(super) flow: FlowId,
    pub(super) log: L,
    pub(super) tasks: Box<dyn FlowTasks>,
    pub(super) data: DataRuntime,
    pub(super) scope: TaskScope,
    pub(super) bell: Arc<Doorbell>,
    pub(super) cell: Arc<FlowCell>,
    pub(super) link: FlowLink,
    pub(super) events: EventSequence,
}

enum Job {
    Act(Action),
    Answer(Answer<()>, Result<(), OrderError>),
}

/// The outcome of work on the data runtime, left for the next ring.
type Outcome<T> = Arc<Mutex<Option<T>>>;

pub(super) struct Hands<L> {
    pub(super) tools: Tools<L>,
    capture: Option<Task<CaptureReport, CaptureExit>>,
    apply: Option<Task<ApplyReport, ApplyExit>>,
    jobs: VecDeque<Job>,
    written: Option<Outcome<Result<(), Error>>>,
    measured: Option<Outcome<Result<u64, Error>>>,
}

impl<L: FlowLog> Hands<L> {
    pub(super) fn new(tools: Tools<L>) -> Self {
        Self { tools, capture: None, apply: None, jobs: VecDeque::new(), written: None, measured: None }
    }

    pub(super) fn queue(&mut self, actions: Vec<Action>) {
        self.jobs.extend(actions.into_iter().map(Job::Act));
    }

    /// What a record that could not be written would have allowed is not done.
    pub(super) fn abandon(&mut self) {
        self.jobs.clear();
    }

    /// Answers once everything queued before is done.
    pub(super) fn answer(&mut self, answer: Answer<()>, result: Result<(), OrderError>) {
        self.jobs.push_back(Job::Answer(answer, result));
    }

    /// Does jobs until a write is under way; the reason once the generation is over.
    pub(super) fn work(&mut self) -> Option<FlowExit> {
        while self.written.is_none() {
            match self.jobs.pop_front()? {
                Job::Answer(answer, result) => drop(answer.send(result)),
                Job::Act(Action::Exit(exit)) => return Some(exit),
                Job::Act(action) => self.act(action),
            }
        }
        None
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Persist(batch) => self.written = Some(self.write(batch)),
            Action::Start { half: Half::Capture, .. } => self.capture = Some(self.start_capture()),
            Action::Start { half: Half::Apply, take_over } => self.apply = Some(self.start_apply(take_over)),
            Action::Stop(Half::Capture) => self.capture.iter().for_each(Task::stop),
            Action::Stop(Half::Apply) => self.apply.iter().for_each(Task::stop),
            Action::Abort(Half::Capture) => self.capture.iter().for_each(Task::abort),
            Action::Abort(Half::Apply) => self.apply.iter().for_each(Task::abort),
            Action::Publish(status) => self.tools.cell.publish(*status),
            Action::Exit(_) => unreachable!("handled by the queue"),
        }
    }

    fn start_capture(&self) -> Task<CaptureReport, CaptureExit> {
        let Tools { data, scope, bell, tasks, link, events, .. } = &self.tools;
        data.start(scope, bell, |reports, stop| {
            tasks.capture(TaskContext { link: link.clone(), events: events.clone(), reports, stop })
        })
    }

    fn start_apply(&self, take_over: bool) -> Task<ApplyReport, ApplyExit> {
        let Tools { data, scope, bell, tasks, link, events, .. } = &self.tools;
        data.start(scope, bell, |reports, stop| {
            let context = TaskContext { link: link.clone(), events: events.clone(), reports, stop };
            tasks.apply(context, take_over)
        })
    }

    fn write(&self, batch: Batch) -> Outcome<Result<(), Error>> {
        let log = self.tools.log.clone();
        self.run(async move { log.submit(batch).await?.await })
    }

    /// Runs bounded work on the data runtime and rings when its outcome is there.
    pub(super) fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Outcome<T> {
        let outcome = Arc::new(Mutex::new(None));
        let (left, bell) = (Arc::clone(&outcome), Arc::clone(&self.tools.bell));
        self.tools.data.run_in(&self.tools.scope, async move {
            let done = work.await;
            *left.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
            bell.ring();
        });
        outcome
    }

    /// Reads how full the log is, unless a reading is under way.
    pub(super) fn measure(&mut self) {
        if self.measured.is_none() {
            let (log, flow) = (self.tools.log.clone(), self.tools.flow);
            let reading = self.run(async move { log.read(move |store| log_bytes(store, flow)).await });
            self.measured = Some(reading);
        }
    }

    /// How the write under way ended, once.
    pub(super) fn written(&mut self) -> Option<Result<(), Error>> {
        let result = take(self.written.as_ref()?)?;
        self.written = None;
        Some(result)
    }

    pub(super) fn surroundings(&mut self) -> Surroundings {
        let read = self.measured.as_ref().and_then(take);
        if read.is_some() {
            self.measured = None;
        }
        // A statement of its own: the guard would be held for the whole of the next, and capture wait on it.
        let durable = *self.tools.link.durable.borrow();
        Surroundings {
            durable,
            log_max_bytes: self.tools.tasks.log_max_bytes(),
            // A failed reading is repeated by the next measure; capture decides by its own.
            log_used: read.and_then(Result::ok),
        }
    }

    pub(super) fn capture_news(&mut self) -> (Vec<CaptureReport>, Option<TaskExit<CaptureExit>>) {
        look(&mut self.capture)
    }

    pub(super) fn apply_news(&mut self) -> (Vec<ApplyReport>, Option<TaskExit<ApplyExit>>) {
        look(&mut self.apply)
    }
}

/// Reports and end of a task; the end is looked at first, so that it overtakes none of its reports.
fn look<R: Report, E>(slot: &mut Option<Task<R, E>>) -> (Vec<R>, Option<TaskExit<E>>) {
    let Some(task) = slot else { return (Vec::new(), None) };
    let ended = task.ended();
    let reports = task.reports();
    if ended.is_some() {
        *slot = None;
    }
    (reports, ended)
}

pub(super) fn take<T>(outcome: &Outcome<T>) -> Option<T> {
    outcome.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Bytes of the log that count against the flow's budget.
fn log_bytes(store: &dyn Store, flow: FlowId) -> Result<u64, Error> {
    let durable: Durable = flows::get(store, flow, FlowPart::Durable)?.unwrap_or_default();
    let floor: Option<Floor> = flows::get(store, flow, FlowPart::Floor)?;
    let pruned = floor.map_or(0, |floor| floor.pruned.bytes);
    Ok(durable.appended.bytes.saturating_sub(pruned))
}
