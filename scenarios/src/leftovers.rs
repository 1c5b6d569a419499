//! Says what a run left behind: processes that still run, files that lie outside its folder.
//!
//! While it runs, the open files of its own processes are looked at; afterwards every process of the machine that
//! names the folder. Never removes anything: what is found is a finding.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::process;

/// Places that are no files of ours: devices, kernel interfaces.
const NOT_FILES: [&str; 3] = ["/dev/", "/proc/", "/sys/"];

/// What was seen in the folder that the run was started from, to be compared at its end.
#[derive(Debug)]
pub struct Surroundings {
    sandbox: PathBuf,
    here: BTreeSet<PathBuf>,
}

impl Surroundings {
    pub fn look(sandbox: &Path) -> Self {
        Self { sandbox: sandbox.to_owned(), here: entries() }
    }

    /// Files outside the folder that these processes have open for writing.
    pub fn written_outside(&self, processes: &[u32]) -> Vec<PathBuf> {
        let open: BTreeSet<PathBuf> =
            processes.iter().flat_map(|process| open_for_writing(*process)).collect();
        open.into_iter()
            .filter(|path| path.is_absolute() && !path.starts_with(&self.sandbox))
            .filter(|path| !NOT_FILES.iter().any(|place| path.starts_with(place)))
            .filter(|path| path.is_file())
            .collect()
    }

    /// Entries that appeared beside the place the run was started from.
    pub fn appeared(&self) -> Vec<PathBuf> {
        entries().difference(&self.here).cloned().collect()
    }

    /// Processes that name the folder in their arguments, other than this one and `except`.
    pub fn processes(&self, except: u32) -> Vec<u32> {
        let folder = self.sandbox.to_string_lossy().into_owned();
        let own = std::process::id();
        process::all()
            .into_iter()
            .filter(|process| *process != own && *process != except)
            .filter(|process| arguments(*process).contains(&folder))
            .collect()
    }

    pub fn sandbox_exists(&self) -> bool {
        self.sandbox.exists()
    }
}

fn entries() -> BTreeSet<PathBuf> {
    std::fs::read_dir(".")
        .map(|found| found.filter_map(|entry| Some(entry.ok()?.path())).collect())
        .unwrap_or_default()
}

fn arguments(process: u32) -> String {
    std::fs::read(format!("/proc/{process}/cmdline"))
        .map(|raw| String::from_utf8_lossy(&raw).replace('\0', " "))
        .unwrap_or_default()
}

fn open_for_writing(process: u32) -> Vec<PathBuf> {
    let Ok(descriptors) = std::fs::read_dir(format!("/proc/{process}/fd")) else { return Vec::new() };
    descriptors
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let info = Path::new("/proc").join(process.to_string()).join("fdinfo").join(entry.file_name());
            let info = std::fs::read_to_string(info).ok()?;
            let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?.trim();
            // O_WRONLY is 1 and O_RDWR is 2, in octal text.
            let writes = flags.ends_with(['1', '2']);
            writes.then(|| std::fs::read_link(entry.path()).ok()).flatten()
        })
        .collect()
}
