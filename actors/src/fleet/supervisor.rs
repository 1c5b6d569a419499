//! FleetSupervisor: keeps the wanted flows running, each in generations of its own.
//!
//! ```text
//! Waiting -> Opening -> Running -> (ended) -> Waiting        backoff, or an operator's restart
//!                                          -> Settling -> Parked | Detached | Removing -> (gone)
//! ```
//! It never waits for a flow: it sends, and reacts to what comes back. Everything that takes time runs on
//! the data runtime and returns as `News` that carries the generation it belongs to; news of another
//! generation is old and means nothing. The one danger: two generations of one flow with live tasks, hence
//! a generation that does not answer is cut off (its tasks aborted) before the next one starts; against
//! what even that leaves, apply is fenced by its token and the slot admits one reader.

mod lifecycle;
mod orders;
mod watch;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, Addr, AsyncContext, Context, Handler, Message};
use trellara_storage::{Error, FlowName};

use super::diff::FleetDiff;
use super::observe::{FleetView, FlowCell};
use super::restart::{Deaths, RestartPolicy};
use super::stall::StallPolicy;
use super::{WantedFlow, settle};
use crate::flow::core::Begin;
use crate::flow::order::{Answer, FlowOrder, OrderError};
use crate::flow::record::StoredFlow;
use crate::flow::{FlowActor, State};
use crate::ports::{Clock, FlowFactory, FlowLog, OpenFlow, RemoveOptions, RemovedPart};
use crate::runtime::{DataRuntime, FlowExit, Placement, TaskScope, Wheel};

/// The wheel turns this often.
const TURN: Duration = Duration::from_millis(50);

/// Limits and deadlines of the fleet.
#[derive(Clone, Copy, Debug)]
pub struct FleetSettings {
    pub restart: RestartPolicy,
    pub stall: StallPolicy,
    /// Flows that are being opened at one time.
    pub starts_at_once: usize,
}

impl Default for FleetSettings {
    fn default() -> Self {
        Self { restart: RestartPolicy::default(), stall: StallPolicy::default(), starts_at_once: 32 }
    }
}

/// What the fleet works with.
pub struct FleetSetup<F, C> {
    pub factory: Arc<F>,
    pub clock: C,
    pub data: DataRuntime,
    pub placement: Placement,
    pub settings: FleetSettings,
    pub view: FleetView,
}

impl<F, C> std::fmt::Debug for FleetSetup<F, C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FleetSetup").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// What is asked of the fleet.
#[derive(Message)]
#[rtype(result = "()")]
pub(super) enum FleetOrder {
    SetWanted {
        wanted: Vec<WantedFlow>,
        stored: Vec<FlowName>,
        answer: Answer<FleetDiff>,
    },
    ToFlow {
        flow: FlowName,
        order: FlowOrder,
    },
    Restart {
        flow: FlowName,
        take_over: bool,
        answer: Answer<()>,
    },
    Remove {
        flow: FlowName,
        options: RemoveOptions,
        answer: Answer<Vec<RemovedPart>>,
    },
    /// Stops every flow; answered when none is left.
    Close {
        answer: Answer<()>,
    },
    /// Cuts off what has not stopped.
    CutOff,
}

/// What came back from work that the supervisor started.
#[derive(Message)]
#[rtype(result = "()")]
struct News<L: FlowLog, C: Clock> {
    flow: FlowName,
    generation: u64,
    what: What<L, C>,
}

enum What<L: FlowLog, C: Clock> {
    Opened(Result<Box<Ready<L>>, FlowExit>),
    Placed(Addr<FlowActor<L, C>>),
    Exited(FlowExit),
    Settled(Result<Box<State>, OrderError>),
    Removed(Result<Vec<RemovedPart>, Error>),
}

/// What a generation is placed with.
struct Ready<L> {
    open: OpenFlow<L>,
    stored: StoredFlow,
}

enum Stage<L: FlowLog, C: Clock> {
    Waiting {
        not_before: Duration,
    },
    Opening,
    Running(Running<L, C>),
    /// A transition is being recorded, or the flow is being removed.
    Settling(After),
    Parked,
    Detached,
    /// Something of it could not be dropped.
    HalfRemoved,
    Closed,
}

struct Running<L: FlowLog, C: Clock> {
    /// None until the actor really runs on its thread.
    address: Option<Addr<FlowActor<L, C>>>,
    asked: Option<Duration>,
    ending: Option<Duration>,
}

/// What follows once a transition of a flow without actor is recorded.
enum After {
    Wait { not_before: Duration, answer: Option<Answer<()>> },
    Park { answer: Option<Answer<()>> },
    Detach,
    Remove { options: RemoveOptions, answer: Option<Answer<Vec<RemovedPart>>> },
}

/// What follows once the running generation has ended.
#[derive(Default)]
enum Then {
    /// Its exit decides.
    #[default]
    Decide,
    Start,
    Detach,
    Remove {
        options: RemoveOptions,
        answer: Answer<Vec<RemovedPart>>,
    },
}

struct Entry<L: FlowLog, C: Clock> {
    revision: String,
    /// Where it is placed.
    number: usize,
    generation: u64,
    stage: Stage<L, C>,
    then: Then,
    begin: Begin,
    deaths: Deaths,
    cell: Arc<FlowCell>,
    /// Tasks of the newest generation that ran.
    scope: TaskScope,
}

/// The actor. Its mailbox carries orders and news, never data.
pub struct Supervisor<F: FlowFactory, C: Clock> {
    factory: Arc<F>,
    clock: C,
    data: DataRuntime,
    placement: Placement,
    settings: FleetSettings,
    view: FleetView,
    wheel: Arc<Wheel>,
    flows: BTreeMap<FlowName, Entry<F::Log, C>>,
    generations: u64,
    numbers: usize,
    watched: Duration,
    closing: Option<Answer<()>>,
}

impl<F: FlowFactory, C: Clock> Supervisor<F, C> {
    pub fn new(setup: FleetSetup<F, C>) -> Self {
        let FleetSetup { factory, clock, data, placement, settings, view } = setup;
        Self {
            factory,
            clock,
            data,
            placement,
            settings,
            view,
            wheel: Arc::default(),
            flows: BTreeMap::new(),
            generations: 0,
            numbers: 0,
            watched: Duration::ZERO,
            closing: None,
        }
    }

    /// Runs work on the data runtime; what it returns comes back as news of this generation.
    fn work(
        &self,
        flow: &FlowName,
        generation: u64,
        to: &Addr<Self>,
        work: impl Future<Output = What<F::Log, C>> + Send + 'static,
    ) {
        let (flow, to) = (flow.clone(), to.clone());
        self.data.run(async move {
            let what = work.await;
            to.do_send(News { flow, generation, what });
        });
    }
}

/// Nothing in it is pinned.
impl<F: FlowFactory, C: Clock> Unpin for Supervisor<F, C> {}

impl<F: FlowFactory, C: Clock> Actor for Supervisor<F, C> {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        context.run_interval(TURN, |supervisor, context| supervisor.turn(&context.address()));
    }
}

impl<F: FlowFactory, C: Clock> Handler<FleetOrder> for Supervisor<F, C> {
    type Result = ();

    fn handle(&mut self, order: FleetOrder, context: &mut Self::Context) {
        self.order(order, &context.address());
        self.close_when_still();
    }
}

impl<F: FlowFactory, C: Clock> Handler<News<F::Log, C>> for Supervisor<F, C> {
    type Result = ();

    fn handle(&mut self, news: News<F::Log, C>, context: &mut Self::Context) {
        let to = context.address();
        let News { flow, generation, what } = news;
        if self.flows.get(&flow).is_none_or(|entry| entry.generation != generation) {
            return;
        }
        match what {
            What::Opened(result) => self.opened(&flow, result, &to),
            What::Placed(address) => self.placed(&flow, address),
            What::Exited(exit) => self.exited(&flow, &exit, &to),
            What::Settled(result) => self.settled(&flow, result, &to),
            What::Removed(result) => self.removed(&flow, result),
        }
        self.close_when_still();
    }
}

impl<F: FlowFactory, C: Clock> std::fmt::Debug for Supervisor<F, C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Supervisor").field("flows", &self.flows.len()).finish_non_exhaustive()
    }
}
