//! One run of one workload, side by side: raw receive, native replication, Trellara catching up, Trellara draining.
//!
//! Every run has databases, slots and an engine of its own, so that nothing of an earlier one helps or hinders. Each
//! contestant's slot is made before the backlog, and each one reads the same stream.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use tokio_postgres::{Client, Config};
use trellara_api::Selector;
use trellara_api::flow::{PauseRequest, Phase, ResumeRequest};
use trellara_scenarios::cluster::{ADMINISTRATOR, Cluster};
use trellara_scenarios::engine::Engine;
use trellara_scenarios::sandbox::Sandbox;
use trellara_scenarios::{binaries, session, wait};

use crate::backlog::{Backlog, Piled};

const LIMIT: Duration = Duration::from_secs(600);
const LOOK: Duration = Duration::from_millis(3);
const FLOW: &str = "source:bench";

const TABLES: &str = "
CREATE TABLE entries (id bigint PRIMARY KEY, payload text NOT NULL);
CREATE TABLE accounts (id bigint PRIMARY KEY, amount bigint NOT NULL, note text NOT NULL);";

/// How long each took for the same backlog.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    pub raw: Duration,
    pub native: Duration,
    pub catch_up: Duration,
    pub drain: Duration,
}

/// The two servers of a contest.
#[derive(Debug)]
pub struct Arena {
    source: Cluster,
    target: Cluster,
    // Dropped last.
    sandbox: Sandbox,
}

impl Arena {
    /// # Errors
    /// A server did not start.
    pub async fn create() -> Result<Self> {
        let sandbox = Sandbox::create()?;
        let source = Cluster::create(&sandbox, "source").await?;
        let target = Cluster::create(&sandbox, "target").await?;
        for server in [&source, &target] {
            let maintenance = server.database("postgres");
            session::script(&maintenance, "ALTER SYSTEM SET fsync = on").await?;
            session::script(&maintenance, "SELECT pg_reload_conf()").await?;
        }
        Ok(Self { source, target, sandbox })
    }

    /// # Errors
    /// A contestant failed, or did not end within ten minutes.
    pub async fn run(&self, backlog: Backlog, number: usize) -> Result<Times> {
        let ring = Ring::prepare(self, backlog, &format!("{}_{number}", backlog.name())).await?;
        let mut engine = Engine::configure(&self.sandbox, &ring.name, &ring.configuration(self))?;
        engine.start().await?;
        engine.wait_for(&[], Phase::Streaming, LIMIT).await?;
        engine.stop().await?;

        let piled = backlog.pile_up(&ring.source, 1).await?;
        let raw = ring.receive_raw(&piled).await?;
        let native = ring.replicate_natively(self, &piled).await?;
        let started = Instant::now();
        engine.start().await?;
        arrived(&ring.ours, &piled).await?;
        let catch_up = started.elapsed();
        let drain = ring.drain(&engine, backlog).await?;
        engine.stop().await?;
        ring.close(self).await?;
        Ok(Times { raw, native, catch_up, drain })
    }
}

/// Databases and slots of one run.
struct Ring {
    name: String,
    source: Config,
    native: Config,
    ours: Config,
}

impl Ring {
    async fn prepare(arena: &Arena, backlog: Backlog, name: &str) -> Result<Self> {
        let (native, ours) = (format!("{name}_native"), format!("{name}_ours"));
        let ring = Self {
            name: name.to_owned(),
            source: arena.source.database(name),
            native: arena.target.database(&native),
            ours: arena.target.database(&ours),
        };
        session::script(&arena.source.database("postgres"), &format!("CREATE DATABASE {name}")).await?;
        for database in [&native, &ours] {
            session::script(&arena.target.database("postgres"), &format!("CREATE DATABASE {database}"))
                .await?;
        }
        let rows = backlog.standing_rows();
        let tables = format!(
            "{TABLES}
             INSERT INTO accounts SELECT n, 0, repeat('y', 60) FROM generate_series(1, {rows}) n;
             ANALYZE"
        );
        for side in [&ring.source, &ring.native, &ring.ours] {
            session::script(side, &tables).await?;
        }
        let slots = format!(
            "CREATE PUBLICATION bench FOR TABLE entries, accounts;
             SELECT pg_create_logical_replication_slot('{name}_raw', 'pgoutput'),
                    pg_create_logical_replication_slot('{name}_native', 'pgoutput')"
        );
        for statement in slots.split(';') {
            session::script(&ring.source, statement).await?;
        }
        Ok(ring)
    }

    fn configuration(&self, arena: &Arena) -> String {
        let source = arena.source.url(ADMINISTRATOR, &self.name);
        let target = arena.target.url(ADMINISTRATOR, &format!("{}_ours", self.name));
        format!(
            "defaults:
  source: {{ tls: disable }}
  dataset: {{ id: bench, tables: [public.entries, public.accounts] }}
  target: {{ url: \"{target}\", tls: disable }}
  start: from_now
flows:
  - source: {{ id: source, url: \"{source}\" }}\n"
        )
    }

    /// A consumer that discards: `pg_recvlogical` into nothing.
    async fn receive_raw(&self, piled: &Piled) -> Result<Duration> {
        let started = Instant::now();
        let output = tokio::process::Command::new(self.tool("pg_recvlogical")?)
            .args(["--start", "--no-loop", "-f", "/dev/null", "-F", "0"])
            .args(["-o", "proto_version=1", "-o", "publication_names=bench"])
            .args(["--slot", &format!("{}_raw", self.name), "--endpos", &lsn(piled.end)])
            .args(["-h", "127.0.0.1", "-U", ADMINISTRATOR, "-d", &self.name])
            .args(["-p", &self.source.get_ports().first().context("a port")?.to_string()])
            .kill_on_drop(true)
            .output()
            .await
            .context("running pg_recvlogical")?;
        ensure!(output.status.success(), "pg_recvlogical: {}", String::from_utf8_lossy(&output.stderr));
        Ok(started.elapsed())
    }

    fn tool(&self, name: &str) -> Result<std::path::PathBuf> {
        Ok(Path::new(&binaries::postgres()?).join(name))
    }

    async fn replicate_natively(&self, arena: &Arena, piled: &Piled) -> Result<Duration> {
        let target = session::open(&self.native).await?;
        let (name, port) = (&self.name, arena.source.port());
        target
            .batch_execute(&format!(
                "CREATE SUBSCRIPTION {name} CONNECTION
                 'host=127.0.0.1 port={port} user={ADMINISTRATOR} dbname={name}' PUBLICATION bench
                 WITH (create_slot = false, slot_name = '{name}_native', copy_data = false, enabled = false)"
            ))
            .await?;
        let started = Instant::now();
        target.batch_execute(&format!("ALTER SUBSCRIPTION {name} ENABLE")).await?;
        arrived(&self.native, piled).await?;
        let took = started.elapsed();
        target.batch_execute(&format!("ALTER SUBSCRIPTION {name} DISABLE")).await?;
        Ok(took)
    }

    /// Fills the log while apply is paused, then lets it go.
    async fn drain(&self, engine: &Engine, backlog: Backlog) -> Result<Duration> {
        let client = engine.client();
        let select = Selector { all: true, ..Selector::default() };
        let reason = "drain benchmark".to_owned();
        let pause = PauseRequest { select: select.clone(), capture: false, reason, for_seconds: None };
        client.pause(&pause).await?;
        let piled = backlog.pile_up(&self.source, 2).await?;
        wait::until("the backlog in the durable log", LIMIT, async || {
            let positions = client.flow(FLOW).await?.positions;
            let durable = positions.durable_lsn.value().map(|text| parse(text)).transpose()?;
            Ok(durable.is_some_and(|durable| durable > piled.before_marker).then_some(()))
        })
        .await?;
        let started = Instant::now();
        client.resume(&ResumeRequest { select }).await?;
        arrived(&self.ours, &piled).await?;
        Ok(started.elapsed())
    }

    /// Slots would hold the source's log for the runs that follow.
    async fn close(&self, arena: &Arena) -> Result<()> {
        let name = &self.name;
        let drop = format!("ALTER SUBSCRIPTION {name} SET (slot_name = NONE)");
        session::script(&self.native, &drop).await?;
        session::script(&self.native, &format!("DROP SUBSCRIPTION {name}")).await?;
        let maintenance = session::open(&arena.source.database("postgres")).await?;
        let idle = "SELECT count(*) FROM pg_replication_slots WHERE database = $1 AND active";
        wait::until("slots released", LIMIT, async || {
            let active: i64 = maintenance.query_one(idle, &[name]).await?.try_get(0)?;
            Ok((active == 0).then_some(()))
        })
        .await?;
        let slots =
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = $1";
        maintenance.query(slots, &[name]).await?;
        Ok(())
    }
}

/// Waits for the marker, with looks that cost the target next to nothing.
async fn arrived(target: &Config, piled: &Piled) -> Result<()> {
    let client: Client = session::open(target).await?;
    let look = client.prepare("SELECT 1 FROM entries WHERE id = $1").await?;
    let deadline = Instant::now() + LIMIT;
    while client.query_opt(&look, &[&piled.marker]).await?.is_none() {
        ensure!(Instant::now() < deadline, "the backlog did not arrive within {} s", LIMIT.as_secs());
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

fn lsn(position: u64) -> String {
    format!("{:X}/{:X}", position >> 32, position & 0xFFFF_FFFF)
}

fn parse(text: &str) -> Result<u64> {
    let (high, low) = text.split_once('/').context("not an LSN")?;
    Ok(u64::from_str_radix(high, 16)? << 32 | u64::from_str_radix(low, 16)?)
}
