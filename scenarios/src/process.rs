//! Processes by their ids, from `/proc`: signals and children.
//!
//! Only processes that the run itself started are ever signalled, by id, never by name.

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal};

/// # Errors
/// The process is gone, or not ours.
pub(crate) fn signal(process: u32, signal: Signal) -> Result<()> {
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw).context("not a process id")?;
    rustix::process::kill_process(pid, signal).with_context(|| format!("signalling process {process}"))
}

/// Every live process id.
pub(crate) fn all() -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// Direct children of a process.
pub(crate) fn children(parent: u32) -> Vec<u32> {
    all().into_iter().filter(|process| parent_of(*process) == Some(parent)).collect()
}

/// A process and everything below it.
pub(crate) fn tree(root: u32) -> Vec<u32> {
    let mut found = vec![root];
    let mut next = 0;
    while let Some(process) = found.get(next).copied() {
        found.extend(children(process));
        next += 1;
    }
    found
}

fn parent_of(process: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The second field is the program's name in parentheses and may hold anything, so read from its end.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}
