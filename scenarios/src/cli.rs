//! Runs `trellara` and printed shell lines as an operator would, and keeps what they said.
//!
//! Lines of a repair plan are run as printed, by a shell; the one addition is a `PATH` on which the shipped binaries
//! come first.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde::de::DeserializeOwned;
use tokio::process::Command;

use crate::binaries;

const COMMAND_LIMIT: Duration = Duration::from_secs(90);

/// What a command left behind.
#[derive(Debug)]
pub struct Output {
    /// None when a signal ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Output {
    /// Both streams, as a terminal would show them.
    pub fn text(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }
}

/// An operator at a shell, with the run's configuration.
#[derive(Clone, Debug)]
pub struct Cli {
    binary: PathBuf,
    configuration: PathBuf,
    home: PathBuf,
    path: OsString,
}

impl Cli {
    /// # Errors
    /// The binaries have not been built.
    pub fn new(configuration: &Path, home: &Path) -> Result<Self> {
        let binary = binaries::shipped("trellara")?;
        let mut path = OsString::from(binary.parent().context("a binary lies in a folder")?);
        for folder in [binaries::postgres()?.into_os_string(), std::env::var_os("PATH").unwrap_or_default()] {
            path.push(":");
            path.push(folder);
        }
        Ok(Self { binary, configuration: configuration.to_owned(), home: home.to_owned(), path })
    }

    /// `trellara ARGUMENTS`.
    ///
    /// # Errors
    /// It could not be started, or took too long.
    pub async fn run(&self, arguments: &[&str]) -> Result<Output> {
        let mut command = Command::new(&self.binary);
        command.args(arguments);
        self.finish(command).await
    }

    /// One line through the shell, exactly as given.
    ///
    /// # Errors
    /// It could not be started, or took too long.
    pub async fn shell(&self, line: &str) -> Result<Output> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", line]);
        self.finish(command).await
    }

    /// `trellara ARGUMENTS -o json`, parsed.
    ///
    /// # Errors
    /// It failed, or its output is not what the type says.
    pub async fn json<T: DeserializeOwned>(&self, arguments: &[&str]) -> Result<T> {
        let mut all = arguments.to_vec();
        all.extend(["-o", "json"]);
        let output = self.run(&all).await?;
        ensure!(output.code == Some(0), "trellara {} failed: {}", arguments.join(" "), output.text());
        serde_json::from_str(&output.stdout).with_context(|| format!("output of trellara {}", all.join(" ")))
    }

    async fn finish(&self, mut command: Command) -> Result<Output> {
        command
            .env("PATH", &self.path)
            .env("HOME", &self.home)
            .env("TMPDIR", &self.home)
            .env("TRELLARA_CONFIG", &self.configuration)
            .env("NO_COLOR", "1")
            .env("COLUMNS", "120")
            .current_dir(&self.home)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        let output = tokio::time::timeout(COMMAND_LIMIT, command.output())
            .await
            .context("the command took too long")?
            .context("starting the command")?;
        Ok(Output {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }
}
