//! Finds the programs that scenarios run: PostgreSQL's server binaries and the shipped Trellara ones.
//!
//! Never skips: a program that is not there is an error with what to do about it.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

/// Names the folder of `initdb` and `postgres` where Debian's layout does not hold.
pub const POSTGRES_BIN_VARIABLE: &str = "TRELLARA_POSTGRES_BIN";

const DEBIAN_VERSIONS: &str = "/usr/lib/postgresql";
const OLDEST_POSTGRES: u32 = 15;

/// The folder that holds `initdb` and `postgres`.
///
/// # Errors
/// No such folder; the message names the package.
pub fn postgres() -> Result<PathBuf> {
    if let Some(named) = std::env::var_os(POSTGRES_BIN_VARIABLE) {
        let folder = PathBuf::from(named);
        if folder.join("initdb").is_file() {
            return Ok(folder);
        }
        bail!("{POSTGRES_BIN_VARIABLE} names {}, which has no initdb", folder.display());
    }
    oldest_fitting_version()
        .context("no PostgreSQL server binaries found: install postgresql, or set TRELLARA_POSTGRES_BIN")
}

fn oldest_fitting_version() -> Option<PathBuf> {
    let mut versions: Vec<u32> = std::fs::read_dir(DEBIAN_VERSIONS)
        .ok()?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|version| *version >= OLDEST_POSTGRES)
        .collect();
    versions.sort_unstable();
    versions
        .into_iter()
        .map(|version| Path::new(DEBIAN_VERSIONS).join(version.to_string()).join("bin"))
        .find(|folder| folder.join("initdb").is_file())
}

/// A shipped binary: it lies beside the runner, or one folder up from a test.
///
/// # Errors
/// It has not been built.
pub fn shipped(name: &str) -> Result<PathBuf> {
    let own = std::env::current_exe().context("where this program lies")?;
    own.ancestors()
        .skip(1)
        .take(2)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
        .with_context(|| format!("{name} is not built: run `cargo build --workspace`"))
}
