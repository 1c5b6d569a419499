//! `flow events`.

use trellara_api::client::Client;

use crate::args::flow::Events;
use crate::exit::{Exit, Failure};
use crate::output::{Printer, flow};

pub(crate) async fn run(args: &Events, client: &Client, printer: &Printer) -> Result<Exit, Failure> {
    let list = client.events(args.flow.name(), args.limit).await?;
    printer.answer(&list, |out| flow::events(out, &list.events))?;
    Ok(Exit::Done)
}
