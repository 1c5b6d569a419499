//! One real PostgreSQL cluster: made, started, stopped, killed and removed.
//!
//! Every cluster gets its own `initdb`: a copied data directory has the same system identifier, so lineage tests
//! on it would prove nothing. Servers die with the runner. The danger is a port that someone else takes while the
//! server is down; ports come from below the range that the kernel hands to outgoing connections.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use rand::RngExt as _;
use rustix::process::Signal;
use tokio_postgres::Config;

use crate::sandbox::{Account, Sandbox};
use crate::{binaries, process, session, wait};

/// Role that owns the servers; load and oracles use it, the engine does not.
pub const ADMINISTRATOR: &str = "postgres";

/// Below the kernel's default range for outgoing connections (32768 and up).
const PORTS: std::ops::Range<u16> = 18_000..32_000;
const PORT_TRIES: usize = 200;
const START_TRIES: usize = 3;
const START_LIMIT: Duration = Duration::from_secs(60);
const STOP_LIMIT: Duration = Duration::from_secs(30);

/// One at a time, so that two clusters of one process never settle on one port.
static STARTS: Mutex<Vec<u16>> = Mutex::new(Vec::new());

/// Nothing here survives the machine, and what a killed server wrote stays with the kernel: without fsync a dozen
/// databases are made and stopped in seconds. Benchmarks turn it on again.
const SETTINGS: &str = "
fsync = off
listen_addresses = '127.0.0.1'
wal_level = logical
max_replication_slots = 64
max_wal_senders = 64
max_connections = 200
shared_buffers = 32MB
dynamic_shared_memory_type = mmap
max_prepared_transactions = 8
log_line_prefix = '%m [%p] %a '
autovacuum_naptime = 10s
";

/// How a server is asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Sessions are cut, walsenders are drained.
    Fast,
    /// As in a crash, with recovery at the next start.
    Immediate,
}

/// A PostgreSQL cluster with its server, which may be down.
#[derive(Debug)]
pub struct Cluster {
    name: String,
    folder: PathBuf,
    account: Account,
    binaries: PathBuf,
    port: u16,
    server: Option<Child>,
}

impl Cluster {
    /// Makes a cluster below the sandbox and starts it.
    ///
    /// # Errors
    /// `initdb` or the start failed; the message carries what they said.
    pub async fn create(sandbox: &Sandbox, name: &str) -> Result<Self> {
        let folder = sandbox.path().join(name);
        let account = sandbox.account();
        std::fs::create_dir(&folder).with_context(|| format!("making {}", folder.display()))?;
        account.own(&folder)?;
        let mut cluster = Self {
            name: name.to_owned(),
            folder,
            account,
            binaries: binaries::postgres()?,
            port: 0,
            server: None,
        };
        cluster.initialise()?;
        for _ in 1..START_TRIES {
            cluster.port = free_port()?;
            match cluster.start().await {
                Ok(()) => return Ok(cluster),
                // Someone outside this process took the port in between.
                Err(_) if cluster.log().contains("could not bind") => {}
                Err(error) => return Err(error),
            }
        }
        cluster.port = free_port()?;
        cluster.start().await?;
        Ok(cluster)
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// How a client reaches one database of it.
    pub fn database(&self, name: &str) -> Config {
        let mut config = Config::new();
        config
            .host("127.0.0.1")
            .port(self.port)
            .user(ADMINISTRATOR)
            .dbname(name)
            .application_name("trellara-scenario")
            .connect_timeout(Duration::from_secs(5));
        config
    }

    /// The same as a URL for another role.
    pub fn url(&self, role: &str, database: &str) -> String {
        format!("postgresql://{role}@127.0.0.1:{}/{database}", self.port)
    }

    pub fn is_running(&self) -> bool {
        self.server.is_some()
    }

    /// Starts the server and waits until it answers. After a kill that includes crash recovery.
    ///
    /// # Errors
    /// It ended, or did not answer in time; the message carries the end of its log.
    pub async fn start(&mut self) -> Result<()> {
        ensure!(self.server.is_none(), "cluster {} runs already", self.name);
        wait::until(&format!("cluster {} answering", self.name), START_LIMIT, async || self.answers().await)
            .await
            .with_context(|| format!("log of cluster {}:\n{}", self.name, tail(&self.log(), 20)))
    }

    async fn answers(&mut self) -> Result<Option<()>> {
        if self.server.is_none() {
            self.server = Some(self.spawn()?);
        }
        if self.has_ended()? {
            self.server = None;
            let log = self.log();
            // Backends of a killed server take a moment to leave its shared memory.
            if tail(&log, 5).contains("still in use") {
                return Ok(None);
            }
            bail!("the server ended at once: {}", tail(&log, 5));
        }
        let client = session::open(&self.database("postgres")).await?;
        client.simple_query("SELECT 1").await?;
        Ok(Some(()))
    }

    fn spawn(&self) -> Result<Child> {
        let log = std::fs::File::options().create(true).append(true).open(self.log_path())?;
        self.account
            .command(&self.binaries.join("postgres"), "INT")
            .arg("-D")
            .arg(self.data())
            .args(["-p", &self.port.to_string()])
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("starting postgres")
    }

    /// Asks the server to end, without waiting.
    ///
    /// # Errors
    /// It could not be signalled.
    pub fn ask_to_stop(&self, how: Stop) -> Result<()> {
        let signal = match how {
            Stop::Fast => Signal::INT,
            Stop::Immediate => Signal::QUIT,
        };
        self.server.as_ref().map_or(Ok(()), |server| process::signal(server.id(), signal))
    }

    /// Stops the server and waits for its end.
    ///
    /// # Errors
    /// It did not end within half a minute.
    pub async fn stop(&mut self, how: Stop) -> Result<()> {
        self.ask_to_stop(how)?;
        self.ended().await
    }

    /// Waits for the end of a server that was asked to stop.
    pub(crate) async fn ended(&mut self) -> Result<()> {
        let what = format!("end of cluster {}", self.name);
        wait::until(&what, STOP_LIMIT, async || Ok(self.has_ended()?.then_some(()))).await?;
        self.server = None;
        Ok(())
    }

    /// `kill -9` of the server and of every process that it had forked.
    ///
    /// # Errors
    /// The server was down, or could not be signalled.
    pub fn kill(&mut self) -> Result<()> {
        let mut server = self.server.take().with_context(|| format!("cluster {} is down", self.name))?;
        let backends = process::children(server.id());
        server.kill()?;
        for backend in backends {
            // Those that ended by themselves meanwhile are what was wanted.
            let _ = process::signal(backend, Signal::KILL);
        }
        server.wait()?;
        Ok(())
    }

    /// The server and what it forked.
    pub(crate) fn processes(&self) -> Vec<u32> {
        self.server.as_ref().map(|server| process::tree(server.id())).unwrap_or_default()
    }

    fn has_ended(&mut self) -> Result<bool> {
        Ok(self.server.as_mut().is_none_or(|server| !matches!(server.try_wait(), Ok(None))))
    }

    fn initialise(&self) -> Result<()> {
        let output = self
            .account
            .command(&self.binaries.join("initdb"), "KILL")
            .arg("-D")
            .arg(self.data())
            .args(["--no-sync", "-A", "trust", "-U", ADMINISTRATOR, "-E", "UTF8", "--locale=C.UTF-8"])
            .current_dir("/")
            .stdin(Stdio::null())
            .output()
            .context("running initdb")?;
        ensure!(output.status.success(), "initdb: {}", String::from_utf8_lossy(&output.stderr));
        let file = self.data().join("postgresql.conf");
        let mut settings = std::fs::read_to_string(&file)?;
        settings.push_str(SETTINGS);
        settings.push_str(&format!("unix_socket_directories = '{}'\n", self.folder.display()));
        std::fs::write(&file, settings).context("writing postgresql.conf")
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn log_path(&self) -> PathBuf {
        self.folder.join("server.log")
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.log_path()).unwrap_or_default()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if self.server.is_some() && self.kill().is_err() {
            tracing::warn!(cluster = %self.name, "server could not be ended");
        }
    }
}

fn free_port() -> Result<u16> {
    let mut taken = STARTS.lock().unwrap_or_else(PoisonError::into_inner);
    for _ in 0..PORT_TRIES {
        let port = rand::rng().random_range(PORTS);
        if !taken.contains(&port) && TcpListener::bind(("127.0.0.1", port)).is_ok() {
            taken.push(port);
            return Ok(port);
        }
    }
    bail!("no free port between {} and {}", PORTS.start, PORTS.end)
}

fn tail(text: &str, lines: usize) -> String {
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}
