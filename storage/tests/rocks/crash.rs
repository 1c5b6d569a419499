//! A real kill: this test binary runs itself as the process that dies.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use super::{holds, open, write};

/// Set for the process that is to be killed: the store to write to.
const VICTIM: &str = "TRELLARA_TEST_KILLED_STORE";
const ACKNOWLEDGED: u32 = 200;

#[test]
fn a_killed_process_leaves_every_acknowledged_batch() {
    if let Some(path) = std::env::var_os(VICTIM) {
        write_until_killed(Path::new(&path));
    }
    let directory = tempfile::tempdir().unwrap();
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "rocks::crash::a_killed_process_leaves_every_acknowledged_batch", "--nocapture"])
        .env(VICTIM, directory.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut acknowledged = BufReader::new(victim.stdout.take().unwrap())
        .lines()
        .filter_map(|line| line.unwrap().strip_prefix("acknowledged ")?.parse::<u32>().ok());
    assert!(acknowledged.any(|n| n == ACKNOWLEDGED), "the victim wrote until here");
    victim.kill().unwrap();
    let last = acknowledged.last().unwrap_or(ACKNOWLEDGED);
    victim.wait().unwrap();
    let store = open(directory.path());
    assert!((0..=last).all(|n| holds(&store, n)));
    // The batch after the last acknowledged one may be there or not, the one after that cannot.
    holds(&store, last + 1);
    assert!(!holds(&store, last + 2));
}

fn write_until_killed(path: &Path) -> ! {
    let store = open(path);
    let mut out = std::io::stdout();
    for n in 0.. {
        write(&store, n);
        writeln!(out, "acknowledged {n}").unwrap();
        out.flush().unwrap();
    }
    unreachable!("the parent kills this process long before 2^32 writes");
}
