//! `preflight`: has the engine's binary try what is configured.

use std::ffi::OsString;

use crate::args::{Global, Preflight};
use crate::exit::{Exit, Failure};

pub(crate) fn run(global: &Global, args: &Preflight) -> Result<Exit, Failure> {
    let selector = args.select.selector();
    let mut arguments: Vec<OsString> = Vec::new();
    for flow in &selector.flows {
        arguments.extend(["--flow".into(), flow.into()]);
    }
    for label in &selector.labels {
        arguments.extend(["--label".into(), label.into()]);
    }
    crate::tool::run(global, &["preflight"], &arguments)
}
