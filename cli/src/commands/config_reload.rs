//! `config reload`: the difference, and whether it was carried out.

use trellara_api::client::Client;
use trellara_api::config::ReloadRequest;
use trellara_api::{Problem, RequestCode};

use crate::args::config::Reload;
use crate::exit::{Exit, Failure};
use crate::output::{Printer, reload};

pub(crate) async fn run(args: &Reload, client: &Client, printer: &Printer) -> Result<Exit, Failure> {
    let request = ReloadRequest { dry_run: args.dry_run, yes: args.yes };
    let report = client.reload(&request).await?;
    printer.answer(&report, |out| reload::write(out, &report))?;
    let Some(problem) = refusal(&report, args).filter(|_| !args.dry_run) else { return Ok(Exit::Done) };
    printer.problem(&problem);
    Ok(Exit::Failed)
}

/// Why nothing of the reload was done.
fn refusal(report: &trellara_api::config::Reload, args: &Reload) -> Option<Problem> {
    if report.is_refused() {
        let problem = Problem::new(RequestCode::ReloadRefused, "nothing was changed");
        return Some(problem.hint("the commands above do it, or take the change back"));
    }
    if report.needs_yes && !args.yes {
        let detail = format!("{} flows would be detached", report.detached.len());
        return Some(
            Problem::new(RequestCode::ConfirmationNeeded, detail).hint("add --yes if that is meant"),
        );
    }
    None
}
