//! `stream locate-local`: where a commit LSN stands. A gate: exit 3 when no received transaction has it.

use trellara_api::client::Client;

use crate::args::Locate;
use crate::exit::{Exit, Failure};
use crate::output::{Printer, location};

pub(crate) async fn run(args: &Locate, client: &Client, printer: &Printer) -> Result<Exit, Failure> {
    let found = client.locate(args.flow.name(), &args.lsn).await?;
    printer.answer(&found, |out| location::write(out, &found))?;
    Ok(if found.is_accounted_for() { Exit::Done } else { Exit::Finding })
}
