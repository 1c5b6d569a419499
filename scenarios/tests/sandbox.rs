//! Whatever becomes of a runner, nothing of it stays.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use trellara_scenarios::cluster::Cluster;
use trellara_scenarios::leftovers::Surroundings;
use trellara_scenarios::sandbox::Sandbox;
use trellara_scenarios::wait;

const CHILD: &str = "TRELLARA_SCENARIOS_TEST_CHILD";
const MARK: &str = "sandbox at ";

async fn gone(folder: &Path) {
    let surroundings = Surroundings::look(folder);
    wait::until("folder and processes gone", Duration::from_secs(40), async || {
        let nothing = !folder.exists() && surroundings.processes(0).is_empty();
        Ok(nothing.then_some(()))
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_killed_runner_leaves_no_process_and_no_file() {
    if std::env::var_os(CHILD).is_some() {
        return hold().await;
    }
    let mut runner = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "sandbox::a_killed_runner_leaves_no_process_and_no_file", "--nocapture"])
        .env(CHILD, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let said = BufReader::new(runner.stdout.take().unwrap()).lines();
    let folder =
        said.map(Result::unwrap).find_map(|line| Some(PathBuf::from(line.split_once(MARK)?.1))).unwrap();
    assert!(folder.join("one/data/postmaster.pid").is_file());

    runner.kill().unwrap();
    runner.wait().unwrap();
    gone(&folder).await;
}

/// The runner of the test above: starts a server, says where, and holds until it is killed.
#[expect(clippy::print_stdout, reason = "the parent process reads it")]
async fn hold() {
    let sandbox = Sandbox::create().unwrap();
    let _cluster = Cluster::create(&sandbox, "one").await.unwrap();
    println!("{MARK}{}", sandbox.path().display());
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

#[tokio::test]
async fn a_panicking_runner_leaves_no_process_and_no_file() {
    let (sender, folder) = std::sync::mpsc::channel();
    let runner = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let sandbox = Sandbox::create().unwrap();
            let _cluster = Cluster::create(&sandbox, "one").await.unwrap();
            sender.send(sandbox.path().to_owned()).unwrap();
            panic!("planted");
        });
    });
    let folder = folder.recv().unwrap();
    assert!(runner.join().is_err());
    gone(&folder).await;
}
