//! PostgreSQL clusters for tests: made with `initdb`, run from the installed binaries, gone afterwards.
//!
//! A cluster never outlives the test binary, however that ends: a janitor process waits on a pipe that only
//! this process holds, then stops the server and removes its folder. `initdb` runs per cluster, since a
//! copied one would have the same system identifier.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tokio_postgres::{Client, NoTls};
use trellara_engine::settings::{Password, Server, TlsMode, TlsSettings};

/// How long a server may take to start or to stop.
const PATIENCE: Duration = Duration::from_secs(60);

/// Small, and with room for many slots; no fsync, since tests kill servers but never the machine.
const SETTINGS: &[(&str, &str)] = &[
    ("listen_addresses", "127.0.0.1"),
    ("wal_level", "logical"),
    ("max_connections", "150"),
    ("max_wal_senders", "50"),
    ("max_replication_slots", "100"),
    ("max_prepared_transactions", "20"),
    ("shared_buffers", "32MB"),
    ("fsync", "off"),
    ("log_min_messages", "log"),
];

/// `pg_ctl`'s stop modes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stop {
    Fast,
    Immediate,
    Kill,
}

#[derive(Debug)]
pub(crate) struct Cluster {
    folder: PathBuf,
    port: u16,
    settings: Vec<(String, String)>,
    server: Option<Child>,
    janitor: Child,
}

impl Cluster {
    /// One cluster for all tests that only need databases of their own.
    pub(crate) fn shared() -> &'static Cluster {
        static SHARED: OnceLock<Cluster> = OnceLock::new();
        SHARED.get_or_init(|| Cluster::start(&[]))
    }

    /// A cluster of its own, with settings on top of the usual ones.
    pub(crate) fn start(settings: &[(&str, &str)]) -> Cluster {
        let folder = make_folder();
        let mut cluster = Cluster {
            janitor: start_janitor(&folder),
            folder,
            port: 0,
            settings: settings.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
            server: None,
        };
        let output = as_postgres("initdb")
            .args(["--no-sync", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "-D"])
            .arg(cluster.data())
            .output()
            .unwrap();
        assert!(output.status.success(), "initdb: {}", String::from_utf8_lossy(&output.stderr));
        cluster.start_on_a_free_port();
        cluster
    }

    /// How to reach a database over TCP as the superuser, without TLS.
    pub(crate) fn server(&self, database: &str) -> Server {
        Server {
            host: "127.0.0.1".into(),
            port: self.port,
            database: database.into(),
            user: "postgres".into(),
            password: Password::None,
            tls: TlsSettings {
                mode: TlsMode::Disable,
                ca_file: None,
                certificate_file: None,
                key_file: None,
            },
            connect_timeout: Duration::from_secs(10),
        }
    }

    /// The same over the Unix socket.
    pub(crate) fn server_on_socket(&self, database: &str) -> Server {
        Server { host: self.sockets().display().to_string(), ..self.server(database) }
    }

    /// Makes an empty database whose name begins with `prefix`, and returns its name.
    pub(crate) async fn database(&self, prefix: &str) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let name = format!("{prefix}_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.client("postgres").await.batch_execute(&format!("CREATE DATABASE {name}")).await.unwrap();
        name
    }

    /// A plain superuser session, for the test's own statements.
    pub(crate) async fn client(&self, database: &str) -> Client {
        let address = format!("host=127.0.0.1 port={} user=postgres dbname={database}", self.port);
        let (client, connection) = tokio_postgres::connect(&address, NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }

    /// Writes a file into the data directory, readable by the server alone.
    pub(crate) fn write_file(&self, name: &str, content: &str) {
        let path = self.data().join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        give_to_postgres(&path);
    }

    /// Has the server read `pg_hba.conf`, certificates and settings again.
    pub(crate) fn reload(&self) {
        self.signal(Signal::HUP);
    }

    /// Ends the server and returns how long that took.
    pub(crate) fn stop(&mut self, mode: Stop) -> Duration {
        let started = Instant::now();
        self.signal(match mode {
            Stop::Fast => Signal::INT,
            Stop::Immediate => Signal::QUIT,
            Stop::Kill => Signal::KILL,
        });
        let mut server = self.server.take().unwrap();
        wait_until("the server has stopped", || server.try_wait().unwrap().is_some());
        started.elapsed()
    }

    /// Starts a stopped server again, on the same port.
    pub(crate) fn restart(&mut self) {
        assert!(self.server.is_none(), "the server is stopped first");
        assert!(self.run(), "the server started: {}", self.log());
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    fn sockets(&self) -> PathBuf {
        self.folder.join("sockets")
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// Another process can take a port between the choice and the start, hence more than one try.
    fn start_on_a_free_port(&mut self) {
        static STARTS: Mutex<()> = Mutex::new(());
        let _one_at_a_time = STARTS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for _ in 0..5 {
            self.port = free_port();
            if self.run() {
                return;
            }
        }
        panic!("the server did not start: {}", self.log());
    }

    /// False when the server ended instead of becoming ready.
    fn run(&mut self) -> bool {
        let log = fs::OpenOptions::new().create(true).append(true).open(self.folder.join("log")).unwrap();
        let mut command = as_postgres("postgres");
        command.arg("-D").arg(self.data()).arg("-k").arg(self.sockets());
        command.args(["-p", &self.port.to_string()]);
        for (name, value) in SETTINGS {
            command.args(["-c", &format!("{name}={value}")]);
        }
        for (name, value) in &self.settings {
            command.args(["-c", &format!("{name}={value}")]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).process_group(0);
        let mut server = command.spawn().unwrap();
        let status = self.data().join("postmaster.pid");
        let mut ended = false;
        wait_until("the server is ready", || {
            ended = server.try_wait().unwrap().is_some();
            let text = fs::read_to_string(&status).unwrap_or_default();
            let ours = text.lines().next() == Some(&server.id().to_string());
            ended || (ours && text.lines().nth(7).is_some_and(|line| line.trim() == "ready"))
        });
        self.server = (!ended).then_some(server);
        !ended
    }

    fn signal(&self, signal: Signal) {
        let id = self.server.as_ref().expect("the server runs").id();
        kill_process(Pid::from_raw(i32::try_from(id).unwrap()).unwrap(), signal).unwrap();
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if self.server.is_some() {
            self.stop(Stop::Immediate);
        }
        drop(self.janitor.stdin.take());
        let _ = self.janitor.wait();
    }
}

/// Waits for this process to end or to let go, then stops whatever server runs in `folder` and removes it.
fn start_janitor(folder: &Path) -> Child {
    const SCRIPT: &str = r#"
        read -r _
        tries=0
        while pid=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null) && kill -QUIT "$pid" 2>/dev/null; do
            tries=$((tries + 1)); [ "$tries" -gt 100 ] && break
            sleep 0.1
        done
        rm -rf "$1""#;
    Command::new("sh")
        .args(["-c", SCRIPT, "janitor"])
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap()
}

/// Under `/tmp`, since user `postgres` must be able to enter and socket paths end at 107 bytes.
fn make_folder() -> PathBuf {
    let folder = tempfile::Builder::new().prefix("trellara-test-").tempdir_in("/tmp").unwrap().keep();
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
    for name in ["data", "sockets"] {
        fs::create_dir(folder.join(name)).unwrap();
        give_to_postgres(&folder.join(name));
    }
    folder
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn give_to_postgres(path: &Path) {
    if is_root() {
        assert!(Command::new("chown").arg("postgres:").arg(path).status().unwrap().success());
    }
}

/// PostgreSQL's programs refuse to run as root.
fn as_postgres(program: &str) -> Command {
    let program = binaries().join(program);
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--init-groups"]).arg(program).current_dir("/");
    command
}

/// `PG_BIN`, or the newest of Debian's folders.
fn binaries() -> PathBuf {
    if let Some(folder) = std::env::var_os("PG_BIN") {
        return folder.into();
    }
    let version = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
    let folders = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = folders
        .map(|entry| entry.path())
        .filter(|path| version(path).is_some() && path.join("bin/initdb").exists())
        .max_by_key(version);
    newest.expect("PostgreSQL's server binaries are installed, or PG_BIN names their folder").join("bin")
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn wait_until(what: &str, mut seen: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !seen() {
        assert!(Instant::now() < deadline, "waited {PATIENCE:?} for: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
