//! `flow remove`: one step per side; what could not be removed is listed with the SQL that does it.

use trellara_api::client::Client;
use trellara_api::flow::{RemovalState, RemoveRequest};

use crate::args::flow::Remove;
use crate::exit::{Exit, Failure};
use crate::output::{Printer, flow};

pub(crate) async fn run(args: &Remove, client: &Client, printer: &Printer) -> Result<Exit, Failure> {
    let request = RemoveRequest { dry_run: args.dry_run, keep_slot: args.keep_slot };
    let removal = client.remove(args.flow.name(), &request).await?;
    printer.answer(&removal, |out| flow::removal(out, &removal))?;
    let left = removal.steps.iter().any(|step| step.state == RemovalState::Left);
    Ok(if left { Exit::Finding } else { Exit::Done })
}
