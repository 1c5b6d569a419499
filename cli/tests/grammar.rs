use clap::{CommandFactory, Parser};
use trellara_api::repair::{Plan, StepKind};
use trellara_cli::args::Cli;

/// The engine's own snapshot of a plan with every kind of blockage.
const SAMPLES: &str =
    include_str!("../../engine/src/repair/snapshots/trellara_engine__repair__tests__every_kind.snap");

/// The words of a line that the plan printed, as a POSIX shell splits them.
fn words(line: &str) -> Vec<String> {
    let output = std::process::Command::new("/bin/sh")
        .args(["-c", &format!("printf '%s\\0' {line}")])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_terminator('\0').map(str::to_owned).collect()
}

#[test]
fn the_grammar_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn every_command_that_a_plan_prints_is_one_that_this_build_has() {
    let plan = SAMPLES.splitn(3, "---\n").nth(2).unwrap();
    let plan: Plan = serde_json::from_str(plan).unwrap();
    let steps = plan.blockages.iter().flat_map(|blockage| &blockage.steps);
    let mut parsed = 0;
    for step in steps {
        let lines = [Some(&step.text), step.proof.as_ref(), step.undo.as_ref()];
        for line in lines.into_iter().flatten().filter(|line| line.starts_with("trellara ")) {
            let result = Cli::try_parse_from(words(line));
            assert!(result.is_ok(), "{line}\n{}", result.unwrap_err());
            parsed += 1;
        }
        if step.kind == StepKind::Command {
            assert_eq!(words(&step.text)[0], "trellara");
        }
    }
    assert!(parsed > 50, "only {parsed} commands were in the samples");
}

#[test]
fn every_command_is_in_the_help_of_its_group() {
    fn check(command: &clap::Command, path: &str) {
        for inner in command.get_subcommands() {
            let path = format!("{path} {}", inner.get_name());
            assert!(inner.get_about().is_some(), "{path} says nothing about itself");
            assert!(!inner.is_hide_set(), "{path} is hidden");
            check(inner, &path);
        }
    }
    let mut command = Cli::command();
    command.build();
    check(&command, "trellara");
}

#[test]
fn commands_are_understood_with_their_options_in_any_place() {
    for line in [
        "trellara status --view diagnostics --flow 'store-00*' -l region=west -o json --exit-code",
        "trellara --config /etc/t.yml flow show store-0001 --wait catching-up --timeout 2m",
        "trellara flow pause --all --reason 'night shift' --for 2h --as anna",
        "trellara flow pause a b -l region=west --capture --reason x",
        "trellara repair-plan store-0001 --format json",
        "trellara stream locate-local --flow store-0001 --lsn 0/16B3748",
        "trellara quarantine replay Q-7F3K --check --admin /run/t.sock",
        "trellara config reload --dry-run",
        "trellara completions bash",
    ] {
        let result = Cli::try_parse_from(words(line));
        assert!(result.is_ok(), "{line}\n{}", result.unwrap_err());
    }
}

#[test]
fn lines_that_mean_nothing_are_refused() {
    for line in [
        "trellara flow show",
        "trellara flow show a --flow b",
        "trellara flow pause a",
        "trellara flow show a --wait asleep",
        "trellara quarantine discard Q-7F3K --reason x",
        "trellara status -l region",
        "trellara status --timeout 30",
        "trellara repair apply",
    ] {
        assert!(Cli::try_parse_from(words(line)).is_err(), "{line}");
    }
}
