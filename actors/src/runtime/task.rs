//! Tasks of a flow on the data runtime: spawned, counted, stopped, and reported exactly once.
//!
//! The one danger: a task that outlives its flow's generation. Dropping a `Task` aborts it, and a
//! generation whose actor does not answer can be cut off from outside through its `TaskScope`.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::doorbell::{Doorbell, Report, Reports};
use super::exit::ExitGuard;

/// The runtime that does the work, and how many tasks of flows live on it.
#[derive(Clone, Debug)]
pub struct DataRuntime {
    handle: Handle,
    live: watch::Sender<usize>,
}

/// Raised once, when a task is to end in an orderly way.
#[derive(Clone, Debug)]
pub struct StopSignal(watch::Receiver<bool>);

/// How a task ended.
#[derive(Debug)]
pub enum TaskExit<E> {
    Ended(E),
    /// It panicked, or was aborted.
    Broken,
}

/// One running task of a flow, as its flow holds it.
#[derive(Debug)]
pub struct Task<R, E> {
    reports: Reports<R>,
    exit: Arc<Mutex<Option<TaskExit<E>>>>,
    stop: watch::Sender<bool>,
    abort: AbortHandle,
}

/// Every task of one generation. Once it is cut off, nothing of the generation may act any more.
#[derive(Clone, Debug, Default)]
pub struct TaskScope(Arc<Scope>);

#[derive(Debug, Default)]
struct Scope {
    tasks: Mutex<Vec<AbortHandle>>,
    live: watch::Sender<usize>,
    cut_off: AtomicBool,
}

impl DataRuntime {
    pub fn new(handle: Handle) -> Self {
        Self { handle, live: watch::Sender::new(0) }
    }

    /// Runs work that is bounded by itself: a read, a write, a step of removal.
    pub fn run(&self, work: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let count = Counted::new(self.live.clone());
        let counted = async move {
            let _count = count;
            work.await;
        };
        self.handle.spawn(counted).abort_handle()
    }

    /// As `run`, for one generation: counted in its scope and cut off with it.
    pub fn run_in(&self, scope: &TaskScope, work: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let count = Counted::new(scope.0.live.clone());
        let task = self.run(async move {
            let _count = count;
            work.await;
        });
        scope.add(task.clone());
        task
    }

    /// For a thread outside every runtime.
    pub(super) fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.handle.block_on(work)
    }

    pub fn live(&self) -> usize {
        *self.live.borrow()
    }

    /// Resolves when no task of any flow is left.
    pub async fn idle(&self) {
        // The sender lives in `self`, so the wait cannot fail.
        let _ = self.live.subscribe().wait_for(|live| *live == 0).await;
    }

    /// Starts a task of a flow. Its end, whatever it is, rings the bell once.
    pub fn start<R, E, F>(
        &self,
        scope: &TaskScope,
        bell: &Arc<Doorbell>,
        task: impl FnOnce(Reports<R>, StopSignal) -> F,
    ) -> Task<R, E>
    where
        R: Report,
        E: Send + 'static,
        F: Future<Output = E> + Send + 'static,
    {
        let reports = Reports::new(Arc::clone(bell));
        let exit = Arc::new(Mutex::new(None));
        let stop = watch::Sender::new(false);
        let future = task(reports.clone(), StopSignal(stop.subscribe()));
        let mut guard = ExitGuard::new(TaskExit::Broken, {
            let (exit, bell) = (Arc::clone(&exit), Arc::clone(bell));
            move |reason| {
                *exit.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
                bell.ring();
            }
        });
        let abort = self.run_in(scope, async move {
            let ended = future.await;
            guard.set(TaskExit::Ended(ended));
        });
        Task { reports, exit, stop, abort }
    }
}

impl<R: Report, E> Task<R, E> {
    pub fn reports(&self) -> Vec<R> {
        self.reports.take()
    }

    /// The end, once; to be asked before `reports`, so that no report of the task is overtaken by its end.
    pub fn ended(&self) -> Option<TaskExit<E>> {
        self.exit.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    pub fn stop(&self) {
        self.stop.send_replace(true);
    }

    pub fn abort(&self) {
        self.abort.abort();
    }
}

impl<R, E> Drop for Task<R, E> {
    fn drop(&mut self) {
        self.abort.abort();
    }
}

impl StopSignal {
    /// Resolves when the task is to end; at once when its flow is gone.
    ///
    /// # Cancel safety
    /// May be dropped and called again.
    pub async fn raised(&mut self) {
        let _ = self.0.wait_for(|raised| *raised).await;
    }

    pub fn is_raised(&self) -> bool {
        *self.0.borrow() || self.0.has_changed().is_err()
    }

    /// For drivers that take the channel itself.
    pub fn receiver(&self) -> watch::Receiver<bool> {
        self.0.clone()
    }
}

impl TaskScope {
    /// Aborts every task; what the generation's actor still does when it comes to itself is nothing.
    pub fn cut_off(&self) {
        self.0.cut_off.store(true, Ordering::Release);
        for task in self.0.tasks.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            task.abort();
        }
    }

    pub fn is_cut_off(&self) -> bool {
        self.0.cut_off.load(Ordering::Acquire)
    }

    /// Resolves when no task of the generation is left; an aborted one may still be in its last step.
    pub async fn idle(&self) {
        // The sender lives in `self`, so the wait cannot fail.
        let _ = self.0.live.subscribe().wait_for(|live| *live == 0).await;
    }

    fn add(&self, task: AbortHandle) {
        let mut tasks = self.0.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.retain(|task| !task.is_finished());
        tasks.push(task);
    }
}

struct Counted(watch::Sender<usize>);

impl Counted {
    fn new(live: watch::Sender<usize>) -> Self {
        live.send_modify(|live| *live += 1);
        Self(live)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.send_modify(|live| *live -= 1);
    }
}
