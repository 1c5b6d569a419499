//! `quarantine discard`.

use trellara_api::client::Client;
use trellara_api::quarantine::DiscardRequest;

use crate::args::quarantine::Discard;
use crate::exit::{Exit, Failure};
use crate::output::Printer;

pub(crate) async fn run(args: Discard, client: &Client, printer: &Printer) -> Result<Exit, Failure> {
    let request = DiscardRequest { reason: args.reason, digest: args.digest };
    let discard = client.discard(&args.id, &request).await?;
    printer.answer(&discard, |out| writeln!(out, "{}  {}", discard.id, discard.text))?;
    Ok(Exit::Done)
}
