//! What one flow needs to know to connect, resolved from the configuration: no layers, no defaults left.

use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;
pub use trellara_actors::apply::GroupLimits;
use trellara_storage::FlowName;

/// Where a password comes from; files are read at every connect, so that rotation needs no restart.
#[derive(Clone, Debug)]
pub enum Password {
    None,
    Literal(SecretString),
    Env(String),
    File(PathBuf),
    /// PostgreSQL's password file, searched by host, port, database and role.
    Passfile(PathBuf),
}

/// libpq's `sslmode`, without the opportunistic ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TlsMode {
    Disable,
    /// Encrypted, certificate not checked.
    Require,
    VerifyCa,
    VerifyFull,
}

/// Certificates; system roots where no CA file is named.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TlsSettings {
    pub mode: TlsMode,
    pub ca_file: Option<PathBuf>,
    pub certificate_file: Option<PathBuf>,
    pub key_file: Option<PathBuf>,
}

/// One PostgreSQL database and how to reach it. `host` beginning with `/` is a socket directory.
#[derive(Clone, Debug)]
pub struct Server {
    pub host: String,
    pub port: u16,
    pub database: String,
    pub user: String,
    pub password: Password,
    pub tls: TlsSettings,
    pub connect_timeout: Duration,
}

/// A table name as its parts, unquoted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableName {
    pub schema: String,
    pub name: String,
}

#[derive(Clone, Debug)]
pub struct SourceSettings {
    pub server: Server,
    pub slot: String,
    pub publications: Vec<String>,
    /// Make the publication when it is missing (default name, permitted role).
    pub create_publication: bool,
    pub tables: Vec<TableName>,
    /// pgoutput's `streaming`.
    pub streaming: bool,
    pub binary: bool,
    pub accept_synchronous: bool,
    /// A connection that was silent for this long is dead.
    pub idle_timeout: Duration,
    pub wal_sender_timeout: Duration,
    pub heartbeat_interval: Duration,
    /// Longest wait for other transactions while the slot is made.
    pub boundary_wait: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerPolicy {
    /// `session_replication_role = replica`.
    Skip,
    Enforce,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowPolicy {
    Quarantine,
    /// Go on, with evidence: skip the missing row, or overwrite the duplicate.
    Record,
}

#[derive(Clone, Debug)]
pub struct TargetSettings {
    pub server: Server,
    /// Every source schema maps to this one; none keeps the source's names.
    pub schema: Option<String>,
    pub triggers_and_foreign_keys: TriggerPolicy,
    pub synchronous_commit: bool,
    pub on_missing_row: RowPolicy,
    pub on_duplicate: RowPolicy,
    pub lock_timeout: Duration,
    pub lease: Duration,
    /// Tables outside the dataset that the publication sends: true quarantines, false ignores.
    pub quarantine_unlisted_tables: bool,
    pub pool_max: usize,
}

/// One flow, whole.
#[derive(Clone, Debug)]
pub struct FlowSettings {
    pub name: FlowName,
    /// Configured instance name: in `application_name`, and shown to whom this engine fences.
    pub instance: String,
    pub labels: Vec<(String, String)>,
    pub source: SourceSettings,
    pub target: TargetSettings,
    pub from_now: bool,
    pub group: GroupLimits,
    /// Budget of the flow's durable log in bytes.
    pub log_max_bytes: u64,
    /// How long, and how much of, applied transactions stay in the log.
    pub log_retain_applied: Duration,
    pub log_retain_applied_bytes: u64,
    pub dedup_retain: Duration,
    /// Hexadecimal digest over everything that may not change while the flow lives.
    pub spec_digest: String,
}
