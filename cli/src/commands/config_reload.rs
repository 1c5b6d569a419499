//! `config reload`: the difference, and whether it was carried out.

use trellara_api::client::Client;
use trellara_api::config::ReloadRequest;

use crate::args::config::Reload;
use crate::exit::{Exit, Failure};
use crate::output::{Printer, reload};

pub(crate) async fn run(args: &Reload, client: &Client, printer: &Printer) -> Result<Exit, Failure> {
    let request = ReloadRequest { dry_run: args.dry_run, yes: args.yes };
    let report = client.reload(&request).await?;
    printer.answer(&report, |out| reload::write(out, &report))?;
    let refused = report.is_refused() || (report.needs_yes && !args.yes);
    Ok(if refused && !args.dry_run { Exit::Failed } else { Exit::Done })
}
