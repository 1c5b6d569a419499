//! Resident memory of the engine, as the kernel counts it.
//!
//! The peak is the kernel's own high-water mark and misses nothing between two looks. It is set back before the part
//! of a scenario that is to be judged, so that an earlier peak cannot hide a later one.

use std::fs;

use anyhow::{Context as _, Result, ensure};

use super::Scene;
use crate::report::Report;
use crate::spec::CheckMemory;

/// What `/proc/PID/clear_refs` takes for "set the high-water mark back to what is resident now".
const RESET_PEAK: &str = "5";
const KIBIBYTES_PER_MEBIBYTE: u64 = 1_024;

/// The engine's processes and what they held together.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    processes: Vec<u32>,
    before: u64,
}

impl Scene {
    pub(super) fn note_memory(&mut self, report: &Report) -> Result<()> {
        let processes = self.engine.processes();
        ensure!(!processes.is_empty(), "the engine does not run");
        for process in &processes {
            fs::write(format!("/proc/{process}/clear_refs"), RESET_PEAK).context("setting back the peak")?;
        }
        let before = total(&processes, "VmRSS:")?;
        report.say(format!("the engine's resident memory before: {} MiB", before / KIBIBYTES_PER_MEBIBYTE));
        self.memory = Some(Memory { processes, before });
        Ok(())
    }

    pub(super) fn check_memory(&mut self, check: &CheckMemory, report: &mut Report) -> Result<()> {
        let Memory { processes, before } = self.memory.take().context("no memory noted to compare with")?;
        ensure!(processes == self.engine.processes(), "the engine is another process than before");
        let (now, peak) = (total(&processes, "VmRSS:")?, total(&processes, "VmHWM:")?);
        let growth = peak.saturating_sub(before) / KIBIBYTES_PER_MEBIBYTE;
        let [before, peak, now] = [before, peak, now].map(|size| size / KIBIBYTES_PER_MEBIBYTE);
        report.check(
            &format!("resident memory grows by less than {} MiB", check.max_growth_mebibytes),
            growth < check.max_growth_mebibytes,
            format!("{before} MiB before, peak {peak} MiB, growth {growth} MiB, {now} MiB now"),
        );
        Ok(())
    }
}

/// In KiB, over all of them.
fn total(processes: &[u32], field: &str) -> Result<u64> {
    processes.iter().map(|process| read(*process, field)).sum()
}

fn read(process: u32, field: &str) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let size = line.and_then(|line| line.split_whitespace().next());
    size.with_context(|| format!("{field} of process {process}"))?.parse().context("a size in kB")
}
