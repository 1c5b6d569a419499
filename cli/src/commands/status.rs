//! `status`: the fleet on one screen, in three views.

use std::time::Duration;

use trellara_api::client::Client;
use trellara_api::status::Verdict;

use crate::args::status::{Status, View};
use crate::exit::{Exit, Failure};
use crate::output::{Printer, status};

const BETWEEN_LOOKS: Duration = Duration::from_secs(2);

pub(crate) async fn run(args: &Status, client: &Client, printer: &Printer) -> Result<Exit, Failure> {
    if !args.watch {
        return once(args, client, printer).await;
    }
    loop {
        printer.clear()?;
        once(args, client, printer).await?;
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
}

async fn once(args: &Status, client: &Client, printer: &Printer) -> Result<Exit, Failure> {
    let select = args.select.selector();
    let (finding, partial) = match args.view {
        View::Summary => {
            let summary = client.summary(&select).await?;
            printer.answer(&summary, |out| status::summary(out, &summary))?;
            let finding = summary.phases.keys().any(|phase| phase.is_finding());
            (finding || summary.open_quarantine > 0, !summary.partial.is_empty())
        }
        View::Diagnostics => {
            let found = client.diagnostics(&select).await?;
            printer.answer(&found, |out| status::diagnostics(out, &found))?;
            let finding = found.flows.iter().any(|flow| flow.line.phase.is_finding());
            (finding, !found.partial.is_empty())
        }
        View::Report => {
            let report = client.report(&select).await?;
            printer.answer(&report, |out| status::report(out, &report))?;
            let checks = report.flows.iter().flat_map(|flow| &flow.checks);
            let finding = checks.into_iter().any(|check| check.verdict != Verdict::Verified);
            (finding, !report.partial.is_empty())
        }
    };
    Ok(Exit::of_report(args.gate.exit_code, finding, partial))
}
