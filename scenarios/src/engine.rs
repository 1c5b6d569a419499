//! The shipped engine as a child: configured, started, killed, started again.
//!
//! Black box: it is started by `trellara run` and asked over its admin socket, like anybody's. It dies with the
//! runner.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::Signal;
use trellara_api::Selector;
use trellara_api::client::Client;
use trellara_api::flow::{FlowLine, Phase};

use crate::fleet::DATASET;
use crate::sandbox::{Account, Sandbox};
use crate::{binaries, process, wait};

const ADMIN: &str = "admin: { socket: ./admin.sock }\n";
const ANSWER_LIMIT: Duration = Duration::from_secs(10);
const START_LIMIT: Duration = Duration::from_secs(60);
const STOP_LIMIT: Duration = Duration::from_secs(60);

/// One engine with its folder, running or not.
#[derive(Debug)]
pub struct Engine {
    name: String,
    folder: PathBuf,
    configuration: PathBuf,
    child: Option<Child>,
    client: Client,
}

impl Engine {
    /// Makes its folder below the sandbox and writes its configuration there; starts nothing.
    ///
    /// # Errors
    /// The folder or the file could not be written.
    pub fn configure(sandbox: &Sandbox, name: &str, sections: &str) -> Result<Self> {
        let folder = sandbox.path().join(name);
        std::fs::create_dir(&folder)?;
        let configuration = folder.join("trellara.yml");
        let text = format!("config_version: 1\ninstance: {name}\ndata_dir: ./data\n{ADMIN}{sections}");
        std::fs::write(&configuration, text).context("writing the configuration")?;
        let client = Client::new(folder.join("admin.sock"), ANSWER_LIMIT);
        Ok(Self { name: name.to_owned(), folder, configuration, child: None, client })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Asks the running engine.
    pub fn client(&self) -> &Client {
        &self.client
    }

    pub fn configuration(&self) -> &Path {
        &self.configuration
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Starts it and waits until it answers.
    ///
    /// # Errors
    /// It ended, or did not answer in time; the message carries the end of its log.
    pub async fn start(&mut self) -> Result<()> {
        ensure!(self.child.is_none(), "the engine runs already");
        self.child = Some(self.spawn()?);
        let up = wait::until("the engine answering", START_LIMIT, async || {
            // One that ended says why in its log; waiting on would only hide that.
            if self.has_ended() {
                return Ok(Some(false));
            }
            self.client.version().await?;
            Ok(Some(true))
        })
        .await;
        if up.is_ok_and(|up| up) {
            return Ok(());
        }
        self.kill()?;
        bail!("the engine did not start; its log ends with:\n{}", self.log_tail())
    }

    fn spawn(&self) -> Result<Child> {
        let log = std::fs::File::options().create(true).append(true).open(self.log_path())?;
        Account::Own
            .command(&binaries::shipped("trellara")?, "KILL")
            .arg("--config")
            .arg(&self.configuration)
            .arg("run")
            .env("HOME", &self.folder)
            .env("TMPDIR", &self.folder)
            .env("NO_COLOR", "1")
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .context("starting trellara run")
    }

    /// `kill -9`, whatever it is doing.
    ///
    /// # Errors
    /// It was not running.
    pub fn kill(&mut self) -> Result<()> {
        let mut child = self.child.take().context("the engine is not running")?;
        for process in process::tree(child.id()) {
            // What ended by itself meanwhile is what was wanted.
            let _ = process::signal(process, Signal::KILL);
        }
        child.wait()?;
        Ok(())
    }

    /// Asks it to end, as a service manager would, and waits.
    ///
    /// # Errors
    /// It did not end in time, or with a failure.
    pub async fn stop(&mut self) -> Result<()> {
        let child = self.child.as_ref().context("the engine is not running")?;
        for process in process::tree(child.id()) {
            process::signal(process, Signal::TERM)?;
        }
        wait::until("the engine's end", STOP_LIMIT, async || Ok(self.has_ended().then_some(()))).await?;
        let status = self.child.take().map(|mut child| child.wait()).transpose()?;
        ensure!(status.is_some_and(|status| status.success()), "the engine ended with {status:?}");
        Ok(())
    }

    /// Removes what it keeps on disk.
    ///
    /// # Errors
    /// It runs, or there is nothing to remove.
    pub fn lose_data(&self) -> Result<()> {
        ensure!(self.child.is_none(), "the engine runs");
        std::fs::remove_dir_all(self.folder.join("data")).context("removing the data folder")
    }

    /// Waits until every one of these stores shows a phase; all stores when none is named.
    ///
    /// # Errors
    /// Not within the time; the message says what they showed last.
    pub async fn wait_for(&self, stores: &[String], phase: Phase, within: Duration) -> Result<()> {
        let mut last = String::new();
        let what = format!("{} flows in phase {phase}", if stores.is_empty() { "all" } else { "named" });
        let outcome = wait::until(&what, within, async || {
            let others = self.flows_not_in(stores, phase).await?;
            last = others.iter().map(describe).collect::<Vec<_>>().join("; ");
            Ok(others.is_empty().then_some(()))
        })
        .await;
        outcome.with_context(|| format!("otherwise: {last}"))
    }

    async fn flows_not_in(&self, stores: &[String], phase: Phase) -> Result<Vec<FlowLine>> {
        let all = self.client.flows(&Selector::default()).await?.flows;
        ensure!(!all.is_empty(), "the engine knows no flow");
        let wanted =
            |line: &FlowLine| stores.is_empty() || stores.iter().any(|store| line.flow == flow(store));
        Ok(all.into_iter().filter(|line| wanted(line) && line.phase != phase).collect())
    }

    /// Processes of the engine, the runner's own child first.
    pub fn processes(&self) -> Vec<u32> {
        self.child.as_ref().map(|child| process::tree(child.id())).unwrap_or_default()
    }

    fn has_ended(&mut self) -> bool {
        self.child.as_mut().is_none_or(|child| !matches!(child.try_wait(), Ok(None)))
    }

    fn log_path(&self) -> PathBuf {
        self.folder.join("engine.log")
    }

    /// The engine's whole log so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    pub fn log_tail(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(30)..].join("\n")
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if self.child.is_some() && self.kill().is_err() {
            tracing::warn!("engine could not be ended");
        }
    }
}

/// Name of a store's flow.
pub fn flow(store: &str) -> String {
    format!("{store}:{DATASET}")
}

fn describe(line: &FlowLine) -> String {
    format!("{} {} {}", line.flow, line.phase, line.cause.as_deref().unwrap_or_default())
}
