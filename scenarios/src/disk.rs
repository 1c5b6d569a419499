//! A small disk of its own for the target's data, so that it can be full. Needs root: it is a tmpfs mount.
//!
//! Only data lies on it, through a tablespace; a full disk under the write-ahead log would stop the whole server.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::sandbox::Sandbox;

/// The sweeper knows it by this name.
const FOLDER: &str = "disk";

/// Mounted as long as it lives.
#[derive(Debug)]
pub(crate) struct Disk {
    path: PathBuf,
}

impl Disk {
    /// # Errors
    /// Not root, or the mount was refused.
    pub(crate) fn mount(sandbox: &Sandbox, megabytes: u64) -> Result<Self> {
        ensure!(rustix::process::geteuid().is_root(), "a disk of its own needs root: `make test-root`");
        let path = sandbox.path().join(FOLDER);
        std::fs::create_dir(&path)?;
        let size = format!("size={megabytes}m");
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&path).output()?;
        ensure!(mounted.status.success(), "mount: {}", String::from_utf8_lossy(&mounted.stderr));
        let disk = Self { path };
        std::fs::create_dir(disk.tablespace()).context("making the tablespace's folder")?;
        sandbox.account().own(&disk.tablespace())?;
        Ok(disk)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Folder for `CREATE TABLESPACE`.
    pub(crate) fn tablespace(&self) -> PathBuf {
        self.path.join("tablespace")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(&self.path).status();
        if !unmounted.is_ok_and(|status| status.success()) {
            tracing::warn!("the small disk could not be unmounted");
        }
    }
}
