//! `config check` and `config show`.

use clap::Subcommand;

use super::{Common, Exit, Output, answer};
use crate::config::{Invalid, checked, show};

#[derive(Debug, Subcommand)]
pub(super) enum Tool {
    Check(Common),
    Show(Common),
}

pub(super) fn run(tool: &Tool) -> anyhow::Result<Exit> {
    let (common, render): (&Common, fn(&crate::config::Settings) -> String) = match tool {
        Tool::Check(common) => (common, checked),
        Tool::Show(common) => (common, show),
    };
    match common.load() {
        Ok(settings) => {
            answer(&render(&settings));
            Ok(Exit::Done)
        }
        Err(invalid) => {
            report(&invalid, common.output);
            Ok(Exit::Finding)
        }
    }
}

fn report(invalid: &Invalid, output: Output) {
    match output {
        Output::Text => answer(&invalid.to_string()),
        Output::Json => {
            let findings = invalid.findings.iter().map(|finding| {
                serde_json::json!({
                    "place": finding.place,
                    "path": finding.path,
                    "what": finding.what,
                    "instead": finding.instead,
                })
            });
            answer(&serde_json::json!({ "findings": findings.collect::<Vec<_>>() }).to_string());
        }
    }
}
