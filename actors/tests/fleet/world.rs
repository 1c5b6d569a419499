//! A fleet on threads of its own, over the in-memory store and the real log writer.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use trellara_actors::fleet::{
    FleetHandle, FleetSettings, FleetSetup, FleetView, RestartPolicy, StallPolicy, WantedFlow,
};
use trellara_actors::flow::{FlowStatus, Phase};
use trellara_actors::ports::Clock;
use trellara_actors::runtime::{
    Control, DataRuntime, Placement, ShutdownDeadlines, ShutdownReport, shut_down,
};
use trellara_storage::families::events;
use trellara_storage::log::{LogHandle, LogThreads};
use trellara_storage::{FlowName, MemoryStore, Timestamp};

use super::synthetic::{Script, Synthetic};

/// How long a state may take to show; far more than it does.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct World {
    pub(super) handle: FleetHandle,
    pub(super) synthetic: Arc<Synthetic>,
    pub(super) placement: Placement,
    runtime: tokio::runtime::Runtime,
    data: DataRuntime,
    control: Control,
    clock: TestClock,
    log_threads: LogThreads,
    log: LogHandle,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct TestClock(Instant);

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        let micros = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros();
        Timestamp::from_unix_micros(i64::try_from(micros).unwrap())
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send {
        tokio::time::sleep(duration)
    }

    fn random(&self) -> u64 {
        u64::from(self.0.elapsed().subsec_nanos()) << 32
    }
}

pub(super) fn settings() -> FleetSettings {
    FleetSettings {
        restart: RestartPolicy {
            first: Duration::from_millis(20),
            longest: Duration::from_millis(200),
            deaths: 4,
            window: Duration::from_secs(600),
        },
        stall: StallPolicy::default(),
        starts_at_once: 16,
    }
}

pub(super) fn flow(n: usize) -> FlowName {
    format!("store-{n:04}:retail").parse().unwrap()
}

pub(super) fn wanted(flows: impl IntoIterator<Item = usize>) -> Vec<WantedFlow> {
    flows.into_iter().map(|n| WantedFlow { flow: flow(n), revision: "1".to_owned() }).collect()
}

impl World {
    pub(super) fn start(settings: FleetSettings, scripts: &[Script]) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (log, log_threads) = trellara_storage::log::start(Arc::new(MemoryStore::new())).unwrap();
        let synthetic = Arc::new(Synthetic::new(log.clone()));
        scripts.iter().enumerate().for_each(|(n, script)| synthetic.script(&flow(n), *script));
        let control = Control::start(2).unwrap();
        let (data, clock) = (DataRuntime::new(runtime.handle().clone()), TestClock(Instant::now()));
        let placement = control.placement();
        let handle = FleetHandle::start(FleetSetup {
            factory: Arc::clone(&synthetic),
            clock,
            data: data.clone(),
            placement: placement.clone(),
            settings,
            view: FleetView::default(),
        })
        .unwrap();
        Self { handle, synthetic, placement, runtime, data, control, clock, log_threads, log }
    }

    /// A fleet in which every scripted flow is wanted.
    pub(super) fn all(settings: FleetSettings, scripts: &[Script]) -> Self {
        let world = Self::start(settings, scripts);
        world.block_on(world.handle.set_wanted(wanted(0..scripts.len()), Vec::new())).unwrap();
        world
    }

    pub(super) fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    pub(super) fn status(&self, n: usize) -> Arc<FlowStatus> {
        self.handle.view().flow(&flow(n)).unwrap()
    }

    #[track_caller]
    pub(super) fn wait_phase(&self, n: usize, phase: Phase) -> Arc<FlowStatus> {
        self.wait(|| self.handle.view().flow(&flow(n)).filter(|status| status.phase() == phase))
    }

    /// Looks until there is something.
    #[track_caller]
    pub(super) fn wait<T>(&self, look: impl Fn() -> Option<T>) -> T {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(found) = look() {
                return found;
            }
            assert!(Instant::now() < until, "not seen in {PATIENCE:?}: {:#?}", self.phases());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Kinds of the flow's events, oldest first.
    pub(super) fn events(&self, n: usize) -> Vec<String> {
        let (log, id) = (self.synthetic.log_of(&flow(n)), self.synthetic.id_of(&flow(n)));
        let newest = self.block_on(log.read(move |store| events::newest(store, id, 1_000))).unwrap();
        newest.into_iter().rev().map(|(_, event)| event.kind).collect()
    }

    pub(super) fn end(self, deadlines: ShutdownDeadlines) -> ShutdownReport {
        let Self { handle, synthetic, placement, runtime, data, control, clock, log_threads, log } = self;
        let report = shut_down(&handle, &data, control, &clock, deadlines);
        drop((handle, synthetic, placement, runtime, log));
        assert!(log_threads.stop(PATIENCE), "something still holds the log");
        report
    }

    /// The end of a test in which nothing resists: anything left behind fails it.
    pub(super) fn end_orderly(self) {
        let report = self.end(ShutdownDeadlines { flows: PATIENCE, tasks: PATIENCE, threads: PATIENCE });
        assert_eq!(report, ShutdownReport { orderly: true, tasks_left: 0, threads_joined: true });
    }

    fn phases(&self) -> Vec<String> {
        let flows = self.handle.view().flows();
        let unusual = flows.iter().filter(|status| status.phase() != Phase::Streaming);
        unusual.map(|status| format!("{} {:?}", status.flow, status.conditions)).collect()
    }
}
