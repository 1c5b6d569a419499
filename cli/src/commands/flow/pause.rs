//! `flow pause`.

use trellara_api::client::Client;
use trellara_api::flow::PauseRequest;

use super::{chosen, show_outcomes};
use crate::args::flow::Pause;
use crate::exit::{Exit, Failure};
use crate::output::Printer;

pub(crate) async fn run(args: Pause, client: &Client, printer: &Printer) -> Result<Exit, Failure> {
    let request = PauseRequest {
        select: chosen(&args.act)?,
        capture: args.capture,
        reason: args.reason,
        for_seconds: args.until.map(|duration| duration.as_secs().max(1)),
    };
    show_outcomes(&client.pause(&request).await?, printer)
}
