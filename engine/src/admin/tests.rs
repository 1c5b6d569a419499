#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tempfile::TempDir;
use tokio::sync::Notify;
use trellara_actors::apply::{ApplyExit, ApplyReport, Checked};
use trellara_actors::capture::{CaptureExit, CaptureReport};
use trellara_actors::failure::Code;
use trellara_actors::fleet::{FleetSettings, FleetSetup, FleetView, WantedFlow};
use trellara_actors::flow::FlowLink;
use trellara_actors::flow::state::Parked;
use trellara_actors::ports::{
    FlowFactory, FlowTasks, OpenFlow, RemoveOptions, RemovedPart, RemovedState, TaskContext,
};
use trellara_actors::runtime::{Control, DataRuntime, StopSignal};
use trellara_api::client::{Client, Error as Refused};
use trellara_api::config::ReloadRequest;
use trellara_api::flow::{PauseRequest, Phase, RemovalState, RemoveRequest, ResumeRequest};
use trellara_api::quarantine::ReplayRequest;
use trellara_api::repair::BlockageKind;
use trellara_api::status::Verdict;
use trellara_api::store::BackupRequest;
use trellara_api::{RequestCode, Selector};
use trellara_storage::families::{audit, flows, quarantine};
use trellara_storage::log::{FlowLogHandle, LogThreads};
use trellara_storage::records::{
    AuditRecord, FailureDetail, FlowIdentity, FlowPart, QuarantineRecord, QuarantineState,
};
use trellara_storage::{
    Batch, Durability, Error, FlowId, Incarnation, Lsn, MemoryStore, Store, TransactionDigest, TransactionId,
    Xid,
};

use super::*;
use crate::config::{Overrides, load};

const PATIENCE: Duration = Duration::from_secs(20);

const CONFIG: &str = r#"
config_version: 1
instance: retail-west
data_dir: ./data
defaults:
  dataset: { id: retail, tables: [public.sales] }
  target: { url: "postgresql://t@hub/retail", schema: "{source}" }
flows:
  - source: { id: store-0001, url: "postgresql://t@store1/pos" }
    labels: { region: west }
  - source: { id: store-0002, url: "postgresql://t@store2/pos" }
"#;

/// Flows whose halves wait for nothing but the signal to stop.
#[derive(Clone)]
struct Idle {
    log: LogHandle,
}

async fn until(stop: StopSignal) {
    let mut raised = stop.receiver();
    // A dropped sender ends it as well.
    let _ = raised.wait_for(|raised| *raised).await;
}

impl FlowTasks for Idle {
    fn begin(&self, _: &FlowLink) {}

    fn capture(&self, context: TaskContext<CaptureReport>) -> BoxFuture<'static, CaptureExit> {
        async move {
            until(context.stop).await;
            CaptureExit::Stopped
        }
        .boxed()
    }

    fn apply(&self, context: TaskContext<ApplyReport>, _: bool) -> BoxFuture<'static, ApplyExit> {
        async move {
            until(context.stop).await;
            ApplyExit::Stopped
        }
        .boxed()
    }

    fn check(&self, _: &Parked) -> BoxFuture<'static, Result<Checked, Error>> {
        async { Ok(Checked::WouldApply) }.boxed()
    }

    fn log_max_bytes(&self) -> u64 {
        4 << 30
    }
}

impl Idle {
    fn id(flow: &FlowName) -> FlowId {
        FlowId::new(if flow.source() == "store-0001" { 1 } else { 2 })
    }
}

impl FlowFactory for Idle {
    type Log = FlowLogHandle;

    fn open(&self, flow: &FlowName) -> BoxFuture<'static, Result<OpenFlow<Self::Log>, Error>> {
        let (id, tasks) = (Self::id(flow), self.clone());
        async move { Ok(OpenFlow { id, log: tasks.log.for_flow(id), tasks: Box::new(tasks) }) }.boxed()
    }

    fn log_of(&self, flow: &FlowName) -> BoxFuture<'static, Result<Option<(FlowId, Self::Log)>, Error>> {
        let (id, log) = (Self::id(flow), self.log.clone());
        async move { Ok(Some((id, log.for_flow(id)))) }.boxed()
    }

    fn remove(
        &self,
        _: &FlowName,
        options: RemoveOptions,
    ) -> BoxFuture<'static, Result<Vec<RemovedPart>, Error>> {
        let state = if options.dry_run { RemovedState::WouldDrop } else { RemovedState::Dropped };
        async move { Ok(vec![RemovedPart { what: "replication slot s at store1".to_owned(), state }]) }
            .boxed()
    }
}

/// An engine of idle flows behind a served socket, and what its levers were used for.
struct Stand {
    folder: TempDir,
    store: Arc<MemoryStore>,
    client: Client,
    reconfigured: Arc<AtomicUsize>,
    stopping: Arc<Notify>,
    served: tokio::task::JoinHandle<std::io::Result<()>>,
    _threads: LogThreads,
    _control: Control,
}

fn record() -> QuarantineRecord {
    QuarantineRecord {
        id: "Q-7F3K".to_owned(),
        transaction: TransactionId {
            flow: FlowId::new(1),
            incarnation: Incarnation::FIRST,
            commit_lsn: Lsn::new(0x16B_3748),
            xid: Xid::new(7_001),
        },
        digest: TransactionDigest::new([0xAB; 16]),
        end_lsn: Lsn::new(0x16B_3790),
        commit_time: Timestamp::from_unix_micros(1_764_590_400_000_000),
        at: Timestamp::from_unix_micros(1_764_590_401_000_000),
        state: QuarantineState::Open,
        failure: FailureDetail {
            class: "row_data".to_owned(),
            code: Code::ConstraintViolation.to_string(),
            sqlstate: Some("23505".to_owned()),
            constraint: Some("sales_pkey".to_owned()),
            message: "duplicate key value".to_owned(),
            ..FailureDetail::default()
        },
        change: Some(1),
        changes: 1,
        image: None,
        conflicting_row: None,
        source_relation: None,
        target_relation: None,
        checkpoint: Lsn::new(0x16B_3000),
        engine_version: "0.1.0".to_owned(),
        source_version: None,
        target_version: None,
        attempts: Vec::new(),
        resolution: None,
    }
}

fn stored(settings: &Settings) -> MemoryStore {
    let store = MemoryStore::new();
    let mut batch = Batch::new();
    for (id, flow) in (1..).zip(&settings.flows) {
        let identity = FlowIdentity {
            name: flow.name.clone(),
            created: Timestamp::default(),
            removed: None,
            spec_digest: flow.spec_digest.clone(),
        };
        flows::put(&mut batch, FlowId::new(id), FlowPart::Identity, &identity);
    }
    quarantine::put(&mut batch, &record());
    store.write(batch, Durability::Synced).unwrap();
    store
}

impl Stand {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("trellara.yml");
        std::fs::write(&config, CONFIG).unwrap();
        let settings = Arc::new(load(&config, &Overrides::default()).unwrap());
        std::fs::create_dir_all(&settings.data_dir).unwrap();
        let store = Arc::new(stored(&settings));
        let (log, threads) = trellara_storage::log::start(Arc::clone(&store) as _).unwrap();
        let control = Control::start(1).unwrap();
        let setup = FleetSetup {
            factory: Arc::new(Idle { log: log.clone() }),
            clock: SystemClock::new(),
            data: DataRuntime::new(tokio::runtime::Handle::current()),
            placement: control.placement(),
            settings: FleetSettings::default(),
            view: FleetView::default(),
        };
        let fleet = tokio::task::spawn_blocking(|| FleetHandle::start(setup)).await.unwrap().unwrap();
        let wanted = settings
            .flows
            .iter()
            .map(|flow| WantedFlow { flow: flow.name.clone(), revision: flow.spec_digest.clone() });
        fleet.set_wanted(wanted.collect(), Vec::new()).await.unwrap();
        let (reconfigured, stopping) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let state = AdminState::new(
            EngineFacts {
                version: "0.1.0".to_owned(),
                instance_id: "ab".repeat(16),
                started: Timestamp::default(),
                config,
                host: "engine1".to_owned(),
            },
            fleet,
            log.clone(),
            AuditTrail::new(log),
            levers(&reconfigured, &stopping),
            Arc::clone(&settings),
        );
        let server = bind(&settings.admin_socket).unwrap();
        let stop = Arc::clone(&stopping);
        let served = tokio::spawn(server.serve(Arc::new(state), async move { stop.notified().await }));
        let client = Client::new(&settings.admin_socket, PATIENCE);
        let stand = Self {
            folder,
            store,
            client,
            reconfigured,
            stopping,
            served,
            _threads: threads,
            _control: control,
        };
        stand.wait_for("store-0001", Phase::NotSeeded).await;
        stand.wait_for("store-0002", Phase::NotSeeded).await;
        stand
    }

    async fn wait_for(&self, flow: &str, phase: Phase) {
        let seen = async {
            while self.client.flow(flow).await.unwrap().line.phase != phase {
                tokio::task::yield_now().await;
            }
        };
        assert!(tokio::time::timeout(PATIENCE, seen).await.is_ok(), "{flow} was never {phase}");
    }

    fn audit(&self) -> Vec<AuditRecord> {
        audit::newest(&*self.store, 10).unwrap().into_iter().map(|(_, record)| record).collect()
    }

    fn rewrite(&self, from: &str, to: &str) {
        std::fs::write(self.folder.path().join("trellara.yml"), CONFIG.replace(from, to)).unwrap();
    }
}

fn levers(reconfigured: &Arc<AtomicUsize>, stopping: &Arc<Notify>) -> Levers {
    let (count, stop) = (Arc::clone(reconfigured), Arc::clone(stopping));
    Levers {
        reconfigure: Box::new(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
            async { Ok(()) }.boxed()
        }),
        backup: Box::new(|path| Err(Error::BackupFailed(format!("{}: no", path.display())))),
        stop: Box::new(move || stop.notify_one()),
    }
}

fn code<T: std::fmt::Debug>(answer: Result<T, Refused>) -> String {
    match answer {
        Err(Refused::Refused(problem)) => problem.code,
        other => panic!("a refusal was expected, not {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn status_shows_every_flow_and_the_evidence() {
    let stand = Stand::start().await;
    let all = Selector::default();
    let summary = stand.client.summary(&all).await.unwrap();
    assert_eq!((summary.flows, summary.open_quarantine), (2, 1));
    assert_eq!(summary.oldest_quarantine.unwrap().id, "Q-7F3K");
    let west = Selector { labels: vec!["region=west".to_owned()], ..Selector::default() };
    let found = stand.client.diagnostics(&west).await.unwrap();
    assert_eq!(found.flows.len(), 1);
    assert_eq!(found.flows[0].quarantine[0].constraint.as_deref(), Some("sales_pkey"));
    let report = stand.client.report(&Selector::flow("store-0001")).await.unwrap();
    let check = report.flows[0].checks.iter().find(|check| check.check == "quarantine").unwrap();
    assert_eq!((check.verdict, check.evidence.as_deref()), (Verdict::AtRisk, Some("Q-7F3K")));
    let detail = stand.client.flow("store-0001:retail").await.unwrap();
    assert_eq!(detail.source.value().unwrap().address, "store1:5432/pos");
    assert_eq!(detail.quarantine.len(), 1);
    assert!(!detail.positions.durable_lsn.is_unknown() || detail.beginning.is_unknown());
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_fit_none_or_several_are_refused_with_their_code() {
    let stand = Stand::start().await;
    assert_eq!(code(stand.client.flow("hub").await), RequestCode::FlowNotFound.to_string());
    assert_eq!(code(stand.client.flow("store").await), RequestCode::NameAmbiguous.to_string());
    assert_eq!(
        code(stand.client.quarantine_record("Q-9").await),
        RequestCode::QuarantineNotFound.to_string()
    );
    assert_eq!(code(stand.client.locate("store-0001", "x").await), RequestCode::RequestInvalid.to_string());
    assert_eq!(code(stand.client.locate("store-0001", "0/1").await), RequestCode::NotNow.to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_made_from_the_evidence() {
    let stand = Stand::start().await;
    let plan = stand.client.plan(&Selector::default()).await.unwrap();
    assert_eq!(plan.flows, 2);
    let [blockage] = &plan.blockages[..] else { panic!("one blockage is expected: {plan:?}") };
    assert_eq!(
        (blockage.kind, blockage.flow.as_str()),
        (BlockageKind::ConstraintViolation, "store-0001:retail")
    );
    assert!(blockage.steps.iter().all(|step| !step.text.is_empty() && !step.host.is_empty()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_is_durable_shown_and_audited_with_its_actor() {
    let stand = Stand::start().await;
    let client = stand.client.clone().acting_as(Some("anna".to_owned()));
    let request = PauseRequest {
        select: Selector::flow("store-0002"),
        capture: true,
        reason: "night shift".to_owned(),
        for_seconds: None,
    };
    let outcomes = client.pause(&request).await.unwrap();
    assert_eq!(outcomes.flows.len(), 1);
    assert_eq!(outcomes.flows[0].problem, None);
    stand.wait_for("store-0002", Phase::Paused).await;
    let paused = client.flow("store-0002").await.unwrap().paused.unwrap();
    assert!(paused.capture_too && paused.who.ends_with(" as anna"), "{paused:?}");
    let audit = stand.audit();
    assert_eq!(
        (audit[0].action.as_str(), audit[0].subject.as_str()),
        ("flow pause --capture", "store-0002:retail")
    );
    assert_eq!((audit[0].reason.as_deref(), audit[0].outcome.as_str()), (Some("night shift"), "done"));
    assert!(audit[0].actor.ends_with(" as anna"), "{}", audit[0].actor);
    client.resume(&ResumeRequest { select: Selector::flow("store-0002") }).await.unwrap();
    stand.wait_for("store-0002", Phase::NotSeeded).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_without_a_choice_of_flows_is_refused() {
    let stand = Stand::start().await;
    let nothing = ResumeRequest { select: Selector::default() };
    assert_eq!(code(stand.client.resume(&nothing).await), RequestCode::RequestInvalid.to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_replay_is_audited_as_well() {
    let stand = Stand::start().await;
    let refused = stand.client.replay("q-7f", &ReplayRequest { check: false }).await;
    assert_eq!(code(refused), RequestCode::NotNow.to_string());
    let audit = stand.audit();
    assert_eq!((audit[0].action.as_str(), audit[0].subject.as_str()), ("quarantine replay", "Q-7F3K"));
    assert_ne!(audit[0].outcome, "begun");
}

#[tokio::test(flavor = "multi_thread")]
async fn removal_is_tried_without_a_trace_and_done_with_one() {
    let stand = Stand::start().await;
    let tried = RemoveRequest { dry_run: true, keep_slot: false };
    let removal = stand.client.remove("store-0002", &tried).await.unwrap();
    assert_eq!(removal.steps[0].state, RemovalState::Planned);
    assert_eq!(stand.audit().len(), 0);
    let removal = stand.client.remove("store-0002", &RemoveRequest::default()).await.unwrap();
    assert_eq!(removal.steps[0].state, RemovalState::Done);
    assert_eq!(stand.audit()[0].outcome, "removed");
    assert_eq!(code(stand.client.flow("store-0002").await), RequestCode::FlowNotFound.to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_flow_is_enrolled_again_by_a_reload_whatever_it_was_like() {
    let stand = Stand::start().await;
    stand.client.remove("store-0001", &RemoveRequest::default()).await.unwrap();
    stand.client.remove("store-0002", &RemoveRequest::default()).await.unwrap();
    stand.rewrite("public.sales", "public.other");
    let report = stand.client.reload(&ReloadRequest::default()).await.unwrap();
    assert_eq!(report.added, ["store-0001:retail", "store-0002:retail"]);
    assert!(report.applied && !report.is_refused(), "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reload_takes_live_changes_and_refuses_the_others() {
    let stand = Stand::start().await;
    let reload = async |dry_run, yes| stand.client.reload(&ReloadRequest { dry_run, yes }).await;
    stand.rewrite("region: west", "region: east");
    let tried = reload(true, false).await.unwrap();
    assert_eq!((tried.applied, tried.changed.len()), (false, 1));
    let done = reload(false, false).await.unwrap();
    assert!(done.applied, "{done:?}");
    assert_eq!(stand.client.flow("store-0001").await.unwrap().line.labels["region"], "east");
    stand.rewrite("public.sales", "public.other");
    let refused = reload(false, false).await.unwrap();
    assert!(!refused.applied && refused.is_refused(), "{refused:?}");
    stand.rewrite("tables:", "tablets:");
    assert_eq!(code(reload(false, true).await), RequestCode::ConfigurationInvalid.to_string());
    assert_eq!(stand.reconfigured.load(Ordering::Relaxed), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_backup_says_so_and_a_relative_path_is_refused() {
    let stand = Stand::start().await;
    let backup =
        async |directory: &str| stand.client.backup(&BackupRequest { directory: directory.to_owned() }).await;
    assert_eq!(code(backup("here").await), RequestCode::RequestInvalid.to_string());
    assert_eq!(code(backup("/there").await), RequestCode::BackupFailed.to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn stop_answers_first_and_the_socket_is_gone_afterwards() {
    let stand = Stand::start().await;
    assert_eq!(stand.client.stop().await.unwrap().pid, std::process::id());
    tokio::time::timeout(PATIENCE, stand.served).await.unwrap().unwrap().unwrap();
    assert!(matches!(stand.client.version().await, Err(Refused::Unreachable { .. })));
    drop(stand.stopping);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_own_user_may_open_the_socket_and_a_stale_one_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("admin.sock");
    drop(bind(&path).unwrap());
    assert!(path.exists(), "a dead engine leaves its socket behind");
    let _server = bind(&path).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let file = folder.path().join("file");
    std::fs::write(&file, "precious").unwrap();
    assert!(bind(&file).is_err());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
}
