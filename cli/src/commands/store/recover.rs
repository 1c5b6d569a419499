//! `store recover`: done by the engine's binary, while no engine runs.

use crate::args::Global;
use crate::args::store::Recover;
use crate::exit::{Exit, Failure};

pub(crate) fn run(global: &Global, args: &Recover) -> Result<Exit, Failure> {
    crate::tool::run(global, &["store", "recover"], &["--reason".into(), (&args.reason).into()])
}
