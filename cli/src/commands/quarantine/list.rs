//! `quarantine list`.

use trellara_api::client::Client;

use crate::args::quarantine::List;
use crate::exit::{Exit, Failure};
use crate::output::{Printer, quarantine};

pub(crate) async fn run(args: &List, client: &Client, printer: &Printer) -> Result<Exit, Failure> {
    let list = client.quarantine(&args.select.selector(), args.all).await?;
    printer.answer(&list, |out| quarantine::list(out, &list))?;
    let finding = list.records.iter().any(|record| record.state.is_open());
    Ok(Exit::of_report(args.gate.exit_code, finding, !list.partial.is_empty()))
}
