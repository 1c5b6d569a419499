//! The one folder that a run may write to, and the account that its PostgreSQL servers run under.
//!
//! The folder goes away in every case: with `Drop` when the run ends or panics, and through a small shell (the
//! sweeper) that outlives a killed runner. The danger is removing files under a server that still runs; the
//! sweeper waits until none does.

use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result};
use tempfile::TempDir;

/// Every user can enter it, and socket paths (107 bytes at most) stay short.
const PARENT: &str = "/tmp";

/// Waits for its input to end, which it does when the runner is gone in whatever way, then for the servers.
const SWEEPER: &str = r#"
trap '' INT TERM HUP
cat >/dev/null
tries=0
while [ $tries -lt 300 ]; do
    alive=0
    for file in "$1"/*/data/postmaster.pid; do
        [ -f "$file" ] && kill -0 "$(head -n 1 "$file")" 2>/dev/null && alive=1
    done
    [ $alive -eq 0 ] && break
    tries=$((tries + 1))
    sleep 0.1
done
[ -d "$1/disk" ] && umount "$1/disk" 2>/dev/null
rm -rf "$1"
"#;

/// PostgreSQL refuses to run as root, so root runs it as the packaged user; anyone else runs it as themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Account {
    Own,
    Other { user: u32, group: u32 },
}

impl Account {
    fn find() -> Result<Self> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self::Own);
        }
        let accounts = std::fs::read_to_string("/etc/passwd").context("reading the accounts")?;
        let fields = accounts
            .lines()
            .map(|line| line.split(':').collect::<Vec<_>>())
            .find(|fields| fields.first() == Some(&"postgres"))
            .context("no user `postgres` to run servers under: install postgresql")?;
        let number = |index: usize| -> Result<u32> {
            fields.get(index).context("account line too short")?.parse().context("account number")
        };
        Ok(Self::Other { user: number(2)?, group: number(3)? })
    }

    /// A command that runs under this account and gets `signal` when the thread that started it ends.
    pub(crate) fn command(self, program: &Path, signal: &str) -> Command {
        let mut command = Command::new("setpriv");
        if let Self::Other { user, group } = self {
            command.arg(format!("--reuid={user}")).arg(format!("--regid={group}")).arg("--init-groups");
        }
        command.arg(format!("--pdeathsig={signal}")).arg("--").arg(program);
        command
    }

    pub(crate) fn own(self, path: &Path) -> Result<()> {
        match self {
            Self::Own => Ok(()),
            Self::Other { user, group } => chown(path, Some(user), Some(group))
                .with_context(|| format!("handing {} to its account", path.display())),
        }
    }
}

/// A temporary folder with its sweeper.
#[derive(Debug)]
pub struct Sandbox {
    account: Account,
    // Dropped before the sweeper, so that in the ordinary case nothing is left to sweep.
    folder: Option<TempDir>,
    path: PathBuf,
    sweeper: Child,
}

impl Sandbox {
    /// # Errors
    /// The folder could not be made, or the machine has no account to run servers under.
    pub fn create() -> Result<Self> {
        let account = Account::find()?;
        let folder = tempfile::Builder::new().prefix("trellara-").tempdir_in(PARENT)?;
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755))?;
        let path = folder.path().to_owned();
        let sweeper = Command::new("/bin/sh")
            .args(["-c", SWEEPER, "trellara-sweeper"])
            .arg(&path)
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("starting the sweeper")?;
        Ok(Self { account, folder: Some(folder), path, sweeper })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn account(&self) -> Account {
        self.account
    }

    pub(crate) fn sweeper_pid(&self) -> u32 {
        self.sweeper.id()
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        drop(self.folder.take());
        drop(self.sweeper.stdin.take());
        // Its only work left is to see that nothing is there.
        let _ = self.sweeper.wait();
    }
}
