//! `flow show`, and `--wait PHASE`: the proof command of every repair plan.

use std::time::{Duration, Instant};

use tokio::time::sleep;
use trellara_api::client::Client;
use trellara_api::flow::{FlowDetail, Phase};

use crate::args::Global;
use crate::args::flow::Show;
use crate::exit::{Exit, Failure};
use crate::output::{Printer, flow};

const BETWEEN_LOOKS: Duration = Duration::from_millis(200);

pub(crate) async fn run(
    args: &Show,
    client: &Client,
    global: &Global,
    printer: &Printer,
) -> Result<Exit, Failure> {
    let detail = match args.wait {
        Some(phase) => wait(args.flow.name(), phase, client, global.timeout).await?,
        None => client.flow(args.flow.name()).await?,
    };
    printer.answer(&detail, |out| flow::detail(out, &detail))?;
    match args.wait {
        Some(phase) if detail.line.phase != phase => {
            let seconds = global.timeout.as_secs_f64();
            printer.note(&format!(
                "{} is {}, not {phase}, after {seconds} s",
                detail.line.flow, detail.line.phase
            ));
            Ok(Exit::Finding)
        }
        Some(_) => Ok(Exit::Done),
        None => Ok(Exit::of_report(args.gate.exit_code, detail.line.phase.is_finding(), is_partial(&detail))),
    }
}

/// The flow as it stood when it reached the phase, or when the time was up.
async fn wait(name: &str, phase: Phase, client: &Client, limit: Duration) -> Result<FlowDetail, Failure> {
    let start = Instant::now();
    loop {
        let detail = client.flow(name).await?;
        if detail.line.phase == phase || start.elapsed() >= limit {
            return Ok(detail);
        }
        sleep(BETWEEN_LOOKS).await;
    }
}

fn is_partial(detail: &FlowDetail) -> bool {
    detail.source.is_unknown()
        || detail.target.is_unknown()
        || detail.positions.applied_lsn.is_unknown()
        || detail.line.lag_bytes.is_unknown()
}
