//! `quarantine replay`, and `--check`, which is a gate.

use trellara_api::client::Client;
use trellara_api::quarantine::ReplayRequest;

use crate::args::quarantine::Replay;
use crate::exit::{Exit, Failure};
use crate::output::{Printer, quarantine};

pub(crate) async fn run(args: &Replay, client: &Client, printer: &Printer) -> Result<Exit, Failure> {
    let replay = client.replay(&args.id, &ReplayRequest { check: args.check }).await?;
    printer.answer(&replay, |out| quarantine::replay(out, &replay))?;
    Ok(match (replay.applied, args.check) {
        (true, _) => Exit::Done,
        (false, true) => Exit::Finding,
        (false, false) => Exit::Failed,
    })
}
