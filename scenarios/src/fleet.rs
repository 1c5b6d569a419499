//! The stores of a scenario: source clusters with one database a store, one target cluster with one schema a store.
//!
//! The engine's role owns the tables on both sides and is no superuser, as in a careful installation; load and
//! oracles use the administrator.

use std::path::Path;

use anyhow::{Context as _, Result};
use tokio_postgres::Config;

use crate::cluster::{Cluster, Stop};
use crate::disk::Disk;
use crate::sandbox::Sandbox;
use crate::session;
use crate::spec::FleetSpec;

/// Role that the engine connects as, on both sides.
pub const ROLE: &str = "trellara";
/// Database that every store flows into.
pub const TARGET_DATABASE: &str = "retail";
/// Id of the dataset that every store has.
pub const DATASET: &str = "retail";
/// The tables of the dataset.
pub const TABLES: [&str; 3] = ["sales", "sale_items", "payments"];

/// Tables of a store.
pub const RETAIL: &str = include_str!("retail.sql");

/// One store: its source database and its schema at the target.
#[derive(Clone, Debug)]
pub struct Store {
    pub id: String,
    /// Which source cluster it lives in.
    pub cluster: usize,
    pub database: String,
    pub source: Config,
    pub target: Config,
    /// Quoted schema at the target.
    pub schema: String,
}

/// All clusters of a run, and the stores in them.
#[derive(Debug)]
pub struct Fleet {
    pub sources: Vec<Cluster>,
    pub target: Cluster,
    pub stores: Vec<Store>,
    log_mebibytes: Option<u64>,
    // Dropped after the target, which writes to it.
    disk: Option<Disk>,
}

impl Fleet {
    /// Starts the clusters and makes databases, role and tables.
    ///
    /// # Errors
    /// A cluster did not start, or refused a statement.
    pub async fn create(sandbox: &Sandbox, spec: FleetSpec) -> Result<Self> {
        let disk = spec.target_disk_megabytes.map(|size| Disk::mount(sandbox, size)).transpose()?;
        let target = Cluster::create(sandbox, "target").await?;
        let mut sources = Vec::new();
        for number in 1..=spec.clusters {
            sources.push(Cluster::create(sandbox, &format!("source-{number}")).await?);
        }
        let log_mebibytes = spec.log_mebibytes;
        let mut fleet = Self { sources, target, stores: Vec::new(), log_mebibytes, disk };
        fleet.prepare_target().await?;
        for source in &fleet.sources {
            let role = format!("CREATE ROLE {ROLE} LOGIN REPLICATION");
            session::script(&source.database("postgres"), &role).await?;
        }
        for number in 0..spec.stores {
            let store = fleet.store(number + 1, number % spec.clusters);
            fleet.prepare_store(&store).await.with_context(|| format!("preparing {}", store.id))?;
            fleet.stores.push(store);
        }
        Ok(fleet)
    }

    /// The part of an engine's configuration that names this fleet's flows.
    pub fn configuration(&self) -> String {
        let tables = TABLES.map(|table| format!("public.{table}")).join(", ");
        let target = self.target.url(ROLE, TARGET_DATABASE);
        let log =
            self.log_mebibytes.map_or(String::new(), |size| format!("  log: {{ max_bytes: {size}MiB }}\n"));
        let defaults = format!(
            "defaults:
{log}  source: {{ tls: disable }}
  dataset: {{ id: {DATASET}, tables: [{tables}] }}
  target: {{ url: \"{target}\", tls: disable, schema: \"{{source}}\" }}
flows:\n"
        );
        let entries = self.stores.iter().map(|store| {
            let cluster = &self.sources[store.cluster];
            let url = cluster.url(ROLE, &store.database);
            let name = cluster.name();
            format!("  - source: {{ id: {}, url: \"{url}\" }}\n    labels: {{ cluster: {name} }}\n", store.id)
        });
        defaults + &entries.collect::<String>()
    }

    /// # Errors
    /// The scenario has no such store.
    pub fn named(&self, id: &str) -> Result<&Store> {
        self.stores.iter().find(|store| store.id == id).with_context(|| format!("no store {id} here"))
    }

    /// The target's own disk, where it has one.
    pub(crate) fn disk(&self) -> Option<&Path> {
        self.disk.as_ref().map(Disk::path)
    }

    pub(crate) fn target_database(&self) -> Config {
        self.target.database(TARGET_DATABASE)
    }

    /// The cluster that a store lives in.
    ///
    /// # Errors
    /// The scenario has no such store.
    pub(crate) fn source_of(&mut self, id: &str) -> Result<&mut Cluster> {
        let cluster = self.named(id)?.cluster;
        self.sources.get_mut(cluster).context("a store lives in a cluster")
    }

    /// Stops every server that runs, all at once.
    pub(crate) async fn stop(&mut self) -> Result<()> {
        for cluster in self.sources.iter().chain([&self.target]) {
            cluster.ask_to_stop(Stop::Fast)?;
        }
        for cluster in self.sources.iter_mut().chain([&mut self.target]) {
            cluster.ended().await.with_context(|| format!("stopping {}", cluster.name()))?;
        }
        Ok(())
    }

    pub(crate) fn processes(&self) -> Vec<u32> {
        self.sources.iter().chain(std::iter::once(&self.target)).flat_map(Cluster::processes).collect()
    }

    fn store(&self, number: usize, cluster: usize) -> Store {
        let id = format!("store-{number:04}");
        let database = format!("store_{number:04}");
        Store {
            source: self.sources[cluster].database(&database),
            target: self.target_database(),
            schema: format!("\"{id}\""),
            id,
            cluster,
            database,
        }
    }

    async fn prepare_target(&self) -> Result<()> {
        let administrator = session::open(&self.target.database("postgres")).await?;
        administrator.batch_execute(&format!("CREATE ROLE {ROLE} LOGIN")).await?;
        let mut database = format!("CREATE DATABASE {TARGET_DATABASE} OWNER {ROLE}");
        if let Some(disk) = &self.disk {
            let folder = disk.tablespace();
            let tablespace = format!("CREATE TABLESPACE small LOCATION '{}'", folder.display());
            administrator.batch_execute(&tablespace).await?;
            database.push_str(" TABLESPACE small");
        }
        administrator.batch_execute(&database).await?;
        let grant = format!("GRANT SET ON PARAMETER session_replication_role TO {ROLE}");
        administrator.batch_execute(&grant).await.context("granting the target's role")
    }

    async fn prepare_store(&self, store: &Store) -> Result<()> {
        let maintenance = session::open(&self.sources[store.cluster].database("postgres")).await?;
        maintenance.batch_execute(&format!("CREATE DATABASE {} OWNER {ROLE}", store.database)).await?;
        session::script(&store.source, &format!("SET ROLE {ROLE};\n{RETAIL}")).await?;
        let schema = &store.schema;
        let script =
            format!("SET ROLE {ROLE}; CREATE SCHEMA {schema}; SET search_path = {schema};\n{RETAIL}");
        session::script(&store.target, &script).await
    }
}
