//! `init`: has the engine's binary write a configuration to start from.

use crate::args::{Global, Init};
use crate::exit::{Exit, Failure};

pub(crate) fn run(global: &Global, args: &Init) -> Result<Exit, Failure> {
    crate::tool::run(global, &["init"], &["--instance".into(), (&args.instance).into()])
}
