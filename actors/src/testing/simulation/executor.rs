//! One thread, scheduled time, and a seed that picks which ready task runs next. Nothing else decides, so a
//! seed is a schedule.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use trellara_storage::Timestamp;

use crate::ports::Clock;

/// So many polls at one moment are a loop without end.
const STANDSTILL: u32 = 100_000;

/// A stream of numbers that a seed determines (SplitMix64).
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// In `0..below`; zero when `below` is.
    pub(super) fn below(&mut self, below: u64) -> u64 {
        self.next().checked_rem(below).unwrap_or(0)
    }

    /// As `below`, for places and counts.
    pub(super) fn index(&mut self, below: usize) -> usize {
        usize::try_from(self.below(below as u64)).expect("below a usize")
    }

    pub(super) fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }
}

#[derive(Debug)]
struct Time {
    now: Duration,
    timers: BTreeMap<(Duration, u64), Waker>,
    made: u64,
    random: Random,
}

/// Scheduled time and the schedule's randomness, shared by everything in it.
#[derive(Clone, Debug)]
pub(super) struct SimClock(Arc<Mutex<Time>>);

impl SimClock {
    fn new(seed: u64) -> Self {
        let time = Time { now: Duration::ZERO, timers: BTreeMap::new(), made: 0, random: Random::new(seed) };
        Self(Arc::new(Mutex::new(time)))
    }

    pub(super) fn below(&self, below: u64) -> u64 {
        self.time().random.below(below)
    }

    pub(super) fn index(&self, below: usize) -> usize {
        self.time().random.index(below)
    }

    pub(super) fn one_in(&self, chances: u64) -> bool {
        self.time().random.one_in(chances)
    }

    /// Lets up to this many milliseconds pass.
    pub(super) async fn dawdle(&self, most_millis: u64) {
        let millis = self.below(most_millis + 1);
        self.sleep(Duration::from_millis(millis)).await;
    }

    /// Goes to the next moment that somebody waits for; false at the limit.
    fn advance(&self, limit: Duration) -> bool {
        let mut time = self.time();
        let next = time.timers.first_key_value().map(|(&timer, _)| timer);
        let Some((moment, id)) = next.filter(|&(moment, _)| moment <= limit) else {
            time.now = limit;
            return false;
        };
        time.now = time.now.max(moment);
        let waker = time.timers.remove(&(moment, id)).expect("seen above");
        drop(time);
        waker.wake();
        true
    }

    fn time(&self) -> MutexGuard<'_, Time> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_micros(i64::try_from(self.elapsed().as_micros()).expect("a short simulation"))
    }

    fn elapsed(&self) -> Duration {
        self.time().now
    }

    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send {
        Sleep { clock: self.clone(), until: self.elapsed() + duration, timer: None }
    }

    fn random(&self) -> u64 {
        self.time().random.next()
    }
}

struct Sleep {
    clock: SimClock,
    until: Duration,
    timer: Option<u64>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let clock = self.clone_clock();
        let mut time = clock.time();
        if time.now >= self.until {
            return Poll::Ready(());
        }
        let id = *self.timer.get_or_insert_with(|| {
            time.made += 1;
            time.made
        });
        time.timers.insert((self.until, id), context.waker().clone());
        Poll::Pending
    }
}

impl Sleep {
    fn clone_clock(&self) -> SimClock {
        self.clock.clone()
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(id) = self.timer {
            self.clock.time().timers.remove(&(self.until, id));
        }
    }
}

/// Names a spawned task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TaskId(u64);

type Ready = Arc<Mutex<BTreeSet<TaskId>>>;

struct Bell {
    task: TaskId,
    ready: Ready,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner).insert(self.task);
    }
}

/// Runs tasks one poll at a time.
pub(super) struct Executor {
    clock: SimClock,
    random: Random,
    tasks: BTreeMap<TaskId, Pin<Box<dyn Future<Output = ()> + Send>>>,
    ready: Ready,
    spawned: u64,
}

impl std::fmt::Debug for Executor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Executor").field("tasks", &self.tasks.len()).finish_non_exhaustive()
    }
}

impl Executor {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            clock: SimClock::new(seed ^ 0x5EED),
            random: Random::new(seed),
            tasks: BTreeMap::new(),
            ready: Ready::default(),
            spawned: 0,
        }
    }

    pub(super) fn clock(&self) -> &SimClock {
        &self.clock
    }

    pub(super) fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    pub(super) fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) -> TaskId {
        self.spawned += 1;
        let id = TaskId(self.spawned);
        self.tasks.insert(id, Box::pin(task));
        self.ready().insert(id);
        id
    }

    /// Drops the task where it stands.
    pub(super) fn kill(&mut self, id: TaskId) {
        self.tasks.remove(&id);
        self.ready().remove(&id);
    }

    /// Runs until `done` holds or so much time has passed; true when it held.
    pub(super) fn run(&mut self, time: Duration, mut done: impl FnMut() -> bool) -> bool {
        let limit = self.clock.elapsed() + time;
        let mut steps_at_once = 0;
        loop {
            if done() {
                return true;
            }
            if self.step() {
                steps_at_once += 1;
                assert!(steps_at_once < STANDSTILL, "a task spins while no time passes");
            } else {
                steps_at_once = 0;
                if !self.clock.advance(limit) {
                    return false;
                }
            }
        }
    }

    fn step(&mut self) -> bool {
        let ready: Vec<TaskId> = self.ready().iter().copied().collect();
        let Some(&id) = ready.get(self.random.index(ready.len())) else { return false };
        self.ready().remove(&id);
        let waker = Waker::from(Arc::new(Bell { task: id, ready: Arc::clone(&self.ready) }));
        if let Some(task) = self.tasks.get_mut(&id)
            && task.as_mut().poll(&mut Context::from_waker(&waker)).is_ready()
        {
            self.tasks.remove(&id);
        }
        true
    }

    fn ready(&self) -> MutexGuard<'_, BTreeSet<TaskId>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
