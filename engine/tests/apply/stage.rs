//! One flow without its driver: a source database whose changes are read through its slot into a store in
//! memory, and a target database that they are applied to through the port.

use std::future::{Future, Ready, ready};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio_postgres::Client;
use trellara_actors::capture::{Assembled, Assembler, Assembly, Summary};
use trellara_actors::failure::{Class, Code, Failure};
use trellara_actors::ports::{
    ApplyOutcome, Applying, Claim, Claimed, FlowLog, Group, InitialCheckpoint, Member, TargetPort,
    TargetSession, Token,
};
use trellara_engine::apply::{PgTarget, PgTargetSession};
use trellara_engine::decode::Decoder;
use trellara_engine::postgres::pool::Pools;
use trellara_engine::settings::{
    FlowSettings, GroupLimits, RowPolicy, SourceSettings, TargetSettings, TriggerPolicy,
};
use trellara_storage::families::log::{self, LoggedTransaction};
use trellara_storage::{
    Batch, CaptureSession, Durability, Error, FlowId, Incarnation, InstanceId, Lsn, MemoryStore, Progress,
    Store, Timestamp, TransactionDigest,
};

use crate::cluster::Cluster;

const FLOW: FlowId = FlowId::new(1);

/// A log that only reads; what it holds was written by the test.
#[derive(Clone, Debug)]
pub(crate) struct ReadLog(Arc<MemoryStore>);

impl FlowLog for ReadLog {
    type Receipt = Ready<Result<(), Error>>;

    async fn submit(&self, batch: Batch) -> Result<Self::Receipt, Error> {
        Ok(ready(self.0.write(batch, Durability::Synced)))
    }

    async fn submit_buffered(&self, batch: Batch) -> Result<(), Error> {
        self.0.write(batch, Durability::Buffered)
    }

    fn read<R, F>(&self, query: F) -> impl Future<Output = R> + Send
    where
        R: Send + 'static,
        F: FnOnce(&dyn Store) -> R + Send + 'static,
    {
        ready(query(&*self.0))
    }
}

pub(crate) struct Stage {
    pub(crate) source: Client,
    pub(crate) target: Client,
    pub(crate) settings: FlowSettings,
    store: Arc<MemoryStore>,
    decoder: Decoder,
    assembler: Assembler,
    session: PgTargetSession<ReadLog>,
    pub(crate) token: Token,
    pub(crate) applied: Progress,
    reached: Lsn,
}

impl Stage {
    /// Runs `both` on both sides, then starts the slot.
    pub(crate) async fn new(both: &str) -> Stage {
        Self::with(both, "", |_| ()).await
    }

    /// `target` runs at the target only, before the first change.
    pub(crate) async fn with(both: &str, target: &str, adjust: impl FnOnce(&mut FlowSettings)) -> Stage {
        Self::with_parts(both, both, target, 1 << 20, adjust).await
    }

    pub(crate) async fn with_parts(
        on_source: &str,
        on_target: &str,
        more_on_target: &str,
        part_bytes: usize,
        adjust: impl FnOnce(&mut FlowSettings),
    ) -> Stage {
        let cluster = Cluster::shared();
        let source = cluster.database("source").await;
        let target = cluster.database("target").await;
        let mut settings = settings(cluster, &source, &target);
        adjust(&mut settings);
        Self::between(settings, "UTF8", [on_source, on_target, more_on_target], part_bytes).await
    }

    /// Databases of the given encodings.
    pub(crate) async fn encoded(source: &str, target: &str, both: &str) -> Stage {
        let cluster = Cluster::shared();
        let admin = cluster.client("postgres").await;
        let mut names = Vec::new();
        for (side, encoding) in [("source", source), ("target", target)] {
            let name = cluster.database(side).await;
            let made = format!(
                "CREATE DATABASE {name}_e ENCODING '{encoding}' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
            );
            admin.batch_execute(&made).await.unwrap();
            names.push(format!("{name}_e"));
        }
        Self::between(settings(cluster, &names[0], &names[1]), source, [both, both, ""], 1 << 20).await
    }

    async fn between(settings: FlowSettings, encoding: &str, sql: [&str; 3], part_bytes: usize) -> Stage {
        let [on_source, on_target, more_on_target] = sql;
        let cluster = Cluster::shared();
        let source_name = &settings.source.server.database;
        let source = cluster.client(source_name).await;
        let target = cluster.client(&settings.target.server.database).await;
        source.batch_execute(on_source).await.unwrap();
        target.batch_execute(on_target).await.unwrap();
        target.batch_execute(more_on_target).await.unwrap();
        source.batch_execute("CREATE PUBLICATION p FOR ALL TABLES").await.unwrap();
        let slot = format!("SELECT pg_create_logical_replication_slot('{source_name}', 'pgoutput')");
        source.batch_execute(&slot).await.unwrap();
        let of = Assembly {
            flow: FLOW,
            incarnation: Incarnation::FIRST,
            session: CaptureSession::new(1),
            encoding: encoding.into(),
            part_bytes,
            buffered_bytes: 1 << 24,
        };
        let store = Arc::new(MemoryStore::new());
        let (session, token, applied) = claim(&settings, &store, 1).await;
        Stage {
            source,
            target,
            settings,
            decoder: Decoder::default(),
            assembler: Assembler::new(of, &[], Lsn::ZERO),
            session,
            token,
            applied,
            store,
            reached: Lsn::ZERO,
        }
    }

    /// Runs the statements at the source.
    pub(crate) async fn run(&self, sql: &str) {
        self.source.batch_execute(sql).await.unwrap();
    }

    /// Everything that was committed at the source since the last call, through the assembler.
    pub(crate) async fn received(&mut self) -> Vec<Arc<LoggedTransaction>> {
        let slot = &self.settings.source.slot;
        let sql = format!(
            "SELECT data FROM pg_logical_slot_get_binary_changes('{slot}', NULL, NULL, \
             'proto_version', '1', 'publication_names', 'p', 'messages', 'true')"
        );
        // The stream asks for the source's own encoding.
        let encoding = self.assembler.assembly().encoding.clone();
        self.run(&format!("SET client_encoding = '{encoding}'")).await;
        let rows = self.source.query(&sql, &[]).await.unwrap();
        self.run("SET client_encoding = 'UTF8'").await;
        for row in rows {
            let data: &[u8] = row.get(0);
            let message = self.decoder.decode(&Bytes::copy_from_slice(data)).unwrap();
            let mut out = Vec::new();
            if let Some(message) = message {
                self.assembler.on(message, &mut out).unwrap();
            }
            out.into_iter().for_each(|assembled| self.keep(assembled));
        }
        let mut transactions = Vec::new();
        let from = self.reached;
        log::read_from(&*self.store, FLOW, Incarnation::FIRST, from, &mut |commit_lsn, transaction| {
            self.reached = Lsn::new(commit_lsn.get() + 1);
            transactions.push(Arc::new(transaction?));
            Ok(std::ops::ControlFlow::Continue(()))
        })
        .unwrap();
        transactions
    }

    fn keep(&self, assembled: Assembled) {
        let batch = match assembled {
            Assembled::Parts(batch) => batch,
            Assembled::Transaction(whole) => {
                // The digest of a transaction in parts is the driver's business; the adapter reads parts.
                let unread = Summary { digest: TransactionDigest::default(), changes: 0, bytes: 0 };
                let summary = whole.summary().unwrap_or(unread);
                whole.record(self.assembler.assembly(), summary, Timestamp::default()).0
            }
        };
        self.store.write(batch, Durability::Synced).unwrap();
    }

    pub(crate) fn group(&self, transactions: &[Arc<LoggedTransaction>]) -> Group {
        let members = transactions
            .iter()
            .map(|transaction| Member { transaction: Arc::clone(transaction), instead: None })
            .collect();
        let to = transactions.last().map_or(self.applied, |last| Progress {
            commit_lsn: last.id().commit_lsn,
            position: last.end_lsn(),
        });
        Group { from: self.applied, members, to }
    }

    /// Applies the group and moves on when it was applied.
    pub(crate) async fn apply(&mut self, group: &Group, how: Applying) -> ApplyOutcome {
        let outcome = self.session.apply(self.token, group, how).await;
        if matches!(outcome, ApplyOutcome::Applied) && how != Applying::Check {
            self.applied = group.to;
        }
        outcome
    }

    /// Applies everything received as one set-based group, which must succeed.
    pub(crate) async fn apply_all(&mut self) {
        let transactions = self.received().await;
        let group = self.group(&transactions);
        let outcome = self.apply(&group, Applying::SetBased).await;
        assert!(matches!(outcome, ApplyOutcome::Applied), "{outcome:?}");
    }

    /// Received transactions as one group, set-based first; one by one up to the one that fails alone, as
    /// the driver does. The failure of that one, change by change, and its place in the list.
    pub(crate) async fn first_failure(&mut self) -> Option<(usize, Failure)> {
        let transactions = self.received().await;
        let group = self.group(&transactions);
        if matches!(self.apply(&group, Applying::SetBased).await, ApplyOutcome::Applied) {
            return None;
        }
        for (at, transaction) in transactions.iter().enumerate() {
            let alone = self.group(std::slice::from_ref(transaction));
            if matches!(self.apply(&alone, Applying::SetBased).await, ApplyOutcome::Applied) {
                continue;
            }
            let outcome = self.apply(&alone, Applying::ChangeByChange).await;
            if let ApplyOutcome::Failed { member, failure } = outcome {
                assert_eq!(member, Some(0), "{failure:?}");
                return Some((at, failure));
            }
            assert!(matches!(outcome, ApplyOutcome::Applied), "{outcome:?}");
        }
        None
    }

    /// The query gives the same rows on both sides.
    pub(crate) async fn assert_equal(&self, query: &str) {
        let (source, target) = (content(&self.source, query).await, content(&self.target, query).await);
        assert_eq!(source, target, "{query}");
    }

    pub(crate) async fn at_target(&self, query: &str) -> Vec<String> {
        content(&self.target, query).await
    }

    /// A second engine's port on the same flow.
    pub(crate) async fn rival(&self) -> PgTargetSession<ReadLog> {
        port(&self.settings, &self.store).connect().await.unwrap()
    }

    pub(crate) fn session(&mut self) -> &mut PgTargetSession<ReadLog> {
        &mut self.session
    }
}

/// Rows as text.
pub(crate) async fn content(client: &Client, query: &str) -> Vec<String> {
    let sql = format!("SELECT q::text FROM ({query}) q ORDER BY 1");
    client.query(&sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

pub(crate) fn claim_of(instance: u8) -> Claim {
    Claim {
        instance: InstanceId::new([instance; 16]),
        boot: 7,
        holder: format!("engine {instance}"),
        take_over: false,
        initial: Some(InitialCheckpoint {
            incarnation: Incarnation::FIRST,
            lineage: "1/slot".into(),
            applied: Progress::ZERO,
        }),
    }
}

pub(crate) fn assert_failure(failure: &Failure, class: Class, code: Code) {
    assert_eq!((failure.class, failure.code), (class, code), "{failure:?}");
}

async fn claim(
    settings: &FlowSettings,
    store: &Arc<MemoryStore>,
    instance: u8,
) -> (PgTargetSession<ReadLog>, Token, Progress) {
    let mut session = port(settings, store).connect().await.unwrap();
    let claimed = session.claim(&claim_of(instance)).await.unwrap();
    let Claimed::Ours(checkpoint) = claimed else { panic!("{claimed:?}") };
    (session, checkpoint.token, checkpoint.applied)
}

fn port(settings: &FlowSettings, store: &Arc<MemoryStore>) -> PgTarget<ReadLog> {
    let pool = Pools::new("test").pool(&settings.target);
    PgTarget::new(settings, ReadLog(Arc::clone(store)), pool)
}

fn settings(cluster: &Cluster, source: &str, target: &str) -> FlowSettings {
    FlowSettings {
        name: "store:sales".parse().unwrap(),
        instance: "test".into(),
        labels: Vec::new(),
        source: SourceSettings {
            server: cluster.server(source),
            slot: source.into(),
            publications: vec!["p".into()],
            create_publication: false,
            tables: Vec::new(),
            streaming: false,
            binary: false,
            accept_synchronous: false,
            idle_timeout: Duration::from_secs(60),
            wal_sender_timeout: Duration::from_secs(30),
            heartbeat_interval: Duration::from_secs(30),
            boundary_wait: Duration::from_secs(30),
        },
        target: TargetSettings {
            server: cluster.server(target),
            schema: None,
            triggers_and_foreign_keys: TriggerPolicy::Skip,
            synchronous_commit: true,
            on_missing_row: RowPolicy::Quarantine,
            on_duplicate: RowPolicy::Quarantine,
            lock_timeout: Duration::from_secs(5),
            lease: Duration::from_secs(30),
            quarantine_unlisted_tables: false,
            pool_max: 2,
        },
        from_now: true,
        group: GroupLimits { transactions: 500, changes: 10_000, bytes: 1 << 24 },
        log_max_bytes: 1 << 30,
        log_retain_applied: Duration::from_secs(60),
        log_retain_applied_bytes: 1 << 30,
        dedup_retain: Duration::from_secs(60),
        spec_digest: String::new(),
    }
}
