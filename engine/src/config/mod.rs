//! The configuration: file, environment and flags in; settings without layers or defaults out.
//!
//! Owns `trellara.yml`, the CSV that enrols thousands, and every rule about them. All mistakes are
//! reported at once, each with file, line and what to write instead. Never holds a secret: it names where
//! secrets are. The one danger: two flows that share a slot or a name, so that is checked here, before
//! anything connects.

mod diff;
mod enrol;
mod finding;
mod fleet;
mod flow;
mod ident;
mod layers;
mod section;
mod server;
mod show;
mod template;
mod tree;
mod units;
mod yaml;

#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

pub use diff::{Diff, diff};
pub use finding::{Finding, Invalid};
pub use layers::Overrides;
pub use show::{checked, show};
pub use template::template;

use crate::settings::FlowSettings;

/// Everything that an engine is started with.
#[derive(Clone, Debug)]
pub struct Settings {
    pub instance: String,
    pub data_dir: PathBuf,
    pub admin_socket: PathBuf,
    pub metrics: MetricsSettings,
    pub storage: StorageSettings,
    pub flows: Vec<FlowSettings>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricsSettings {
    /// None: no listener.
    pub listen: Option<SocketAddr>,
    /// The core set of series for every flow.
    pub per_flow: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageSettings {
    /// Block cache and write buffers together, bytes.
    pub memory: u64,
    /// Over all flows.
    pub log_total: LogBudget,
    /// Free bytes below which no capture runs; none: max(5 % of the file system, 2 GiB).
    pub log_reserve_bytes: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogBudget {
    Bytes(u64),
    /// Of the file system that holds `data_dir`.
    Percent(u8),
}

/// Reads and checks a configuration file. Relative paths in it start at its folder.
///
/// # Errors
/// Everything that is wrong, at once.
pub fn load(path: &Path, overrides: &Overrides) -> Result<Settings, Invalid> {
    let findings = finding::Findings::default();
    let shown = path.display().to_string();
    let base = path.parent().unwrap_or(Path::new(""));
    let base = std::path::absolute(base).unwrap_or_else(|_| base.to_owned());
    let root = layers::read(path, &shown, overrides, &findings);
    let settings = root.and_then(|root| fleet::read(root, &base, &findings));
    findings.conclude(settings)
}

/// A path from the configuration, without `.` components.
fn resolve(base: &Path, text: &str) -> PathBuf {
    base.join(text).components().collect()
}
