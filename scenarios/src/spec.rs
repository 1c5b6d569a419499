//! Scenario files: what a run consists of, read strictly.
//!
//! A key that is not known is refused, with the file's name; a scenario with a misspelt oracle would otherwise pass.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use trellara_api::flow::Phase;

/// One scenario.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    pub name: String,
    pub about: String,
    pub fleet: FleetSpec,
    /// Every run draws a new one and prints it where none stands here or on the command line.
    pub seed: Option<u64>,
    pub steps: Vec<Step>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FleetSpec {
    /// Source clusters; the target is one more.
    pub clusters: usize,
    pub stores: usize,
    /// Per store.
    pub transactions_per_second: f64,
    /// Puts the target's data on a disk of this size. Needs root.
    pub target_disk_megabytes: Option<u64>,
    /// Budget of each flow's durable log, in the place of the engine's default.
    pub log_mebibytes: Option<u64>,
}

/// What a run does next.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Opens a part of the narration.
    Say(String),
    StartEngine,
    StopEngine,
    /// `kill -9`; it stays away.
    KillEngine,
    /// The steps from here on are about another engine with the same flows and a folder of its own. Each scenario
    /// begins with the one called `engine`.
    UseEngine(String),
    /// Takes the stopped engine's `data_dir` away.
    LoseData,
    /// Notes the engine's resident memory, and lets its peak be counted from here.
    NoteMemory,
    CheckMemory(CheckMemory),
    StartLoad,
    StopLoad,
    Wait(Wait),
    /// Runs `trellara` and shows what it prints.
    Run(Run),
    /// SQL as the administrator of a store's database.
    AtSource(AtSource),
    /// SQL as the administrator of the target database.
    AtTarget(String),
    /// Waits until a query at a store's source gives true.
    SourceShows(SourceShows),
    /// The same at the target.
    TargetShows(TargetShows),
    /// Stops a store's server as an administrator would, by `pg_ctl stop -m fast`, and starts it again.
    RestartSource(RestartSource),
    StopTarget,
    StartTarget,
    /// Cuts a store's replication connection again and again.
    KeepCutting(String),
    StopCutting,
    /// Takes what is free on the target's own disk.
    FillDisk,
    FreeDisk,
    StartProbes(StartProbes),
    /// Every probed store has new rows arrive.
    Progress(Progress),
    CheckProbes(CheckProbes),
    /// Runs the printed commands of a flow's repair plan as printed.
    Repair(Repair),
    Kills(Kills),
    /// Waits until everything has arrived, then compares contents.
    Compare(Compare),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wait {
    /// Every store when empty.
    #[serde(default)]
    pub stores: Vec<String>,
    pub phase: Phase,
    pub within_seconds: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    pub command: String,
    #[serde(default)]
    pub exit: i32,
    /// Texts that the output has to hold, each one an oracle.
    #[serde(default)]
    pub shows: Vec<String>,
    /// Texts that the output must not hold.
    #[serde(default)]
    pub lacks: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AtSource {
    pub store: String,
    pub sql: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceShows {
    pub store: String,
    pub sql: String,
    pub within_seconds: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetShows {
    pub sql: String,
    pub within_seconds: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RestartSource {
    /// Its whole cluster is restarted.
    pub store: String,
    /// For the stop alone.
    pub within_seconds: u64,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckMemory {
    pub max_growth_mebibytes: u64,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartProbes {
    #[serde(default)]
    pub except: Vec<String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// In each store.
    pub rows: usize,
    pub within_seconds: u64,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckProbes {
    /// Samples of the first seconds are left out.
    pub skip_seconds: u64,
    pub max_millis: u64,
    /// Fewer would prove nothing: they are waited for.
    pub at_least: usize,
    pub within_seconds: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repair {
    pub store: String,
    pub within_seconds: u64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kills {
    pub count: u32,
    pub of: Vec<Victim>,
    /// Between a victim's return and the next kill.
    pub shortest_pause_millis: u64,
    pub longest_pause_millis: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Victim {
    Engine,
    /// While COMMITs of its are open at the target.
    EngineInCommit,
    /// With its backends at the target stopped until the next engine is there.
    EngineWithFrozenBackend,
    Source,
    Target,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compare {
    /// Stores that are known to be blocked.
    #[serde(default)]
    pub except: Vec<String>,
    pub within_seconds: u64,
}

impl Spec {
    /// # Errors
    /// The file is not there, or says something that no scenario can.
    pub fn read(path: &Path) -> Result<Self> {
        let file = config::File::from(path).format(config::FileFormat::Yaml);
        let spec: Self = config::Config::builder()
            .add_source(file)
            .build()
            .and_then(config::Config::try_deserialize)
            .with_context(|| format!("reading {}", path.display()))?;
        spec.validate().with_context(|| format!("in {}", path.display()))?;
        Ok(spec)
    }

    fn validate(&self) -> Result<()> {
        ensure!(
            self.fleet.clusters > 0 && self.fleet.stores > 0,
            "a fleet has at least one cluster and one store"
        );
        for step in &self.steps {
            if let Step::Kills(kills) = step {
                ensure!(!kills.of.is_empty(), "kills need at least one victim");
                ensure!(
                    kills.shortest_pause_millis <= kills.longest_pause_millis,
                    "pauses are in the wrong order"
                );
            }
        }
        Ok(())
    }

    /// Puts another number of kills in the place of the file's.
    #[must_use]
    pub fn with_kills(mut self, count: u32) -> Self {
        for step in &mut self.steps {
            if let Step::Kills(kills) = step {
                kills.count = count;
            }
        }
        self
    }
}

pub(crate) fn seconds(number: u64) -> Duration {
    Duration::from_secs(number)
}
