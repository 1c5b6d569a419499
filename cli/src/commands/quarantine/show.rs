//! `quarantine show`.

use trellara_api::client::Client;

use crate::args::quarantine::Show;
use crate::exit::{Exit, Failure};
use crate::output::{Printer, quarantine};

pub(crate) async fn run(args: &Show, client: &Client, printer: &Printer) -> Result<Exit, Failure> {
    let record = client.quarantine_record(&args.id).await?;
    printer.answer(&record, |out| quarantine::detail(out, &record))?;
    Ok(Exit::of_report(args.gate.exit_code, record.line.state.is_open(), false))
}
