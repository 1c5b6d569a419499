//! `store inspect`: read by the engine's binary, while no engine runs.

use std::ffi::OsString;

use crate::args::Global;
use crate::args::store::Inspect;
use crate::exit::{Exit, Failure};

pub(crate) fn run(global: &Global, args: &Inspect) -> Result<Exit, Failure> {
    let flow = args.flow.iter().flat_map(|flow| [OsString::from("--flow"), flow.into()]);
    crate::tool::run(global, &["store", "inspect"], &flow.collect::<Vec<_>>())
}
