//! `flow restart`.

use trellara_api::client::Client;
use trellara_api::flow::RestartRequest;

use super::{chosen, show_outcomes};
use crate::args::flow::Restart;
use crate::exit::{Exit, Failure};
use crate::output::Printer;

pub(crate) async fn run(args: &Restart, client: &Client, printer: &Printer) -> Result<Exit, Failure> {
    let request = RestartRequest { select: chosen(&args.act)?, take_over: args.take_over };
    show_outcomes(&client.restart(&request).await?, printer)
}
