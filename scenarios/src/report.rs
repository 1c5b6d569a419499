//! What a run tells: a readable narration, the verdict of every oracle, and one last line that machines read.
//!
//! Output of commands is shown as it came. The danger is a run that ends well because nothing was checked; the last
//! line counts what was.

use std::fmt::Display;
use std::io::Write as _;
use std::time::Instant;

use anyhow::Result;

/// Collects verdicts and writes to standard output.
#[derive(Debug)]
pub struct Report {
    started: Instant,
    passed: usize,
    failed: usize,
}

impl Report {
    pub fn new() -> Self {
        Self { started: Instant::now(), passed: 0, failed: 0 }
    }

    /// Opens a part of the story.
    pub fn heading(&self, text: &str) {
        print(&format!("\n== [{:5.1} s] {text}", self.started.elapsed().as_secs_f32()));
    }

    pub fn say(&self, text: impl Display) {
        print(&format!("   {text}"));
    }

    /// A command and what it printed.
    pub fn command(&self, line: &str, output: &str) {
        print(&format!("\n   $ {line}"));
        for line in output.trim_end().lines() {
            print(&format!("   | {line}"));
        }
    }

    pub fn check(&mut self, what: &str, holds: bool, found: impl Display) {
        let verdict = if holds { "pass" } else { "FAIL" };
        *(if holds { &mut self.passed } else { &mut self.failed }) += 1;
        print(&format!("   [{verdict}] {what}: {found}"));
    }

    /// Counts an outcome; an error is a failed check, and the story goes on.
    pub fn outcome<T>(&mut self, what: &str, outcome: Result<T>) -> Option<T> {
        match outcome {
            Ok(value) => {
                self.check(what, true, "ok");
                Some(value)
            }
            Err(error) => {
                self.check(what, false, format!("{error:#}"));
                None
            }
        }
    }

    /// The last line. True when something was checked and nothing failed.
    #[must_use]
    pub fn close(self) -> bool {
        let seconds = self.started.elapsed().as_secs_f32();
        print(&format!("\nended after {seconds:.1} s\n{} passed, {} failed", self.passed, self.failed));
        self.passed > 0 && self.failed == 0
    }
}

impl Default for Report {
    fn default() -> Self {
        Self::new()
    }
}

fn print(line: &str) {
    // A reader that went away is no reason to leave servers running.
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}
