//! Scenario files are read strictly, and those that are shipped can be read.

use std::path::{Path, PathBuf};

use trellara_scenarios::sandbox::Sandbox;
use trellara_scenarios::spec::{Spec, Step};

fn shipped() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|extension| extension == "yml")).collect()
}

fn refused(text: &str) -> String {
    let sandbox = Sandbox::create().unwrap();
    let file = sandbox.path().join("scenario.yml");
    std::fs::write(&file, text).unwrap();
    format!("{:#}", Spec::read(&file).unwrap_err())
}

const HEAD: &str = "name: x\nabout: y\nfleet: { clusters: 1, stores: 1, transactions_per_second: 5 }\n";

#[test]
fn every_shipped_scenario_is_read_and_named_like_its_file() {
    let files = shipped();
    assert!(files.len() >= 3, "{files:?}");
    for file in files {
        let spec = Spec::read(&file).unwrap();
        assert_eq!(Some(spec.name.as_str()), file.file_stem().and_then(|stem| stem.to_str()));
    }
}

#[test]
fn an_unknown_key_is_refused_by_its_name() {
    let text = format!("{HEAD}steps: []\nsteeps: []\n");
    assert!(refused(&text).contains("steeps"));
    let text = format!("{HEAD}steps:\n  - compare: {{ within_seconds: 5, exept: [] }}\n");
    assert!(refused(&text).contains("exept"));
}

#[test]
fn kills_without_a_victim_are_refused() {
    let kills = "{ count: 1, of: [], shortest_pause_millis: 1, longest_pause_millis: 2 }";
    assert!(refused(&format!("{HEAD}steps:\n  - kills: {kills}\n")).contains("victim"));
}

#[test]
fn the_number_of_kills_can_be_given_from_outside() {
    let file = shipped().into_iter().find(|path| path.ends_with("crash.yml")).unwrap();
    let spec = Spec::read(&file).unwrap().with_kills(3);
    assert!(spec.steps.iter().any(|step| matches!(step, Step::Kills(kills) if kills.count == 3)));
}
