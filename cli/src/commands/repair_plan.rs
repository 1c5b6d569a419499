//! `repair plan`: what is blocked and how to unblock it. There is no command that carries a plan out.

use trellara_api::client::Client;

use crate::args::Plan;
use crate::exit::{Exit, Failure};
use crate::output::{Printer, plan};

pub(crate) async fn run(args: &Plan, client: &Client, printer: &Printer) -> Result<Exit, Failure> {
    let found = client.plan(&args.select.selector()).await?;
    printer.answer(&found, |out| plan::write(out, &found))?;
    let (finding, partial) = (!found.blockages.is_empty(), !found.partial.is_empty());
    Ok(Exit::of_report(args.gate.exit_code, finding, partial))
}
