//! `flow list`.

use trellara_api::client::Client;

use crate::args::flow::List;
use crate::exit::{Exit, Failure};
use crate::output::{Printer, flow};

pub(crate) async fn run(args: &List, client: &Client, printer: &Printer) -> Result<Exit, Failure> {
    let list = client.flows(&args.select.selector()).await?;
    printer.answer(&list, |out| flow::list(out, &list))?;
    let finding = list.flows.iter().any(|line| line.phase.is_finding());
    Ok(Exit::of_report(args.gate.exit_code, finding, !list.partial.is_empty()))
}
