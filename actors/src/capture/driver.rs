//! The capture task: one connection from the lineage check to its end, over the ports.
//!
//! ```text
//! barrier -> stored state -> inspect -> judge -> (wait for the checkpoint) -> settle -> sweep -> stream
//! ```
//! It carries out what the cores decide and decides nothing of its own: `lineage` whether the stream may
//! start, `assembler` what a transaction is, `redelivery` whether it is new, `ledger` what may be confirmed.
//! It must never make a slot except where an incarnation starts.

mod ground;
mod look;
mod settle;
mod streaming;

use std::future::Future;

use tokio::sync::watch;

use super::context::CaptureContext;
use super::report::{CaptureExit, CaptureReport};
use crate::ports::{Clock, FlowLog, SourcePort};

/// Runs one connection until it is told to stop or something ends it. `stop` is raised by `true`, or by the
/// end of its sender; the connection is then closed in an orderly way.
#[expect(clippy::manual_async_fn, reason = "Send is proven here, where the ports are still abstract")]
pub fn run<S, L, C>(
    context: CaptureContext<S, L, C>,
    mut stop: watch::Receiver<bool>,
    report: impl Fn(CaptureReport) + Send + Sync,
) -> impl Future<Output = CaptureExit> + Send
where
    S: SourcePort,
    L: FlowLog,
    C: Clock,
{
    async move {
        match connect(&context, &mut stop, &report).await {
            Ok(mut streaming) => {
                report(CaptureReport::Capturing);
                let exit = tokio::select! {
                    biased;
                    exit = streaming.run(&mut stop) => exit,
                    exit = look::keep_looking(&context, &report) => exit,
                };
                streaming.close(exit).await
            }
            Err(exit) => exit,
        }
    }
}

async fn connect<'a, S, L, C, R>(
    context: &'a CaptureContext<S, L, C>,
    stop: &mut watch::Receiver<bool>,
    report: &'a R,
) -> Result<streaming::Streaming<'a, S, L, C, R>, CaptureExit>
where
    S: SourcePort,
    L: FlowLog,
    C: Clock,
    R: Fn(CaptureReport) + Send + Sync,
{
    let stored = ground::load(context).await?;
    let (verdict, facts) = ground::judged(context, &stored, stop).await?;
    let settled = settle::settle(context, stored, verdict, &facts, stop, report).await?;
    if settled.is_full(context.settings.log_max_bytes) {
        return Err(CaptureExit::LogFull);
    }
    let stream = unless_stopped(stop, context.source.open()).await??;
    Ok(streaming::Streaming::new(context, report, stream, settled))
}

/// Waits for the future, or ends with `Stopped`.
async fn unless_stopped<T>(
    stop: &mut watch::Receiver<bool>,
    future: impl Future<Output = T>,
) -> Result<T, CaptureExit> {
    tokio::select! {
        biased;
        () = stopped(stop) => Err(CaptureExit::Stopped),
        value = future => Ok(value),
    }
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    // An error means that nobody is left to raise it: the flow is gone.
    let _ = stop.wait_for(|raised| *raised).await;
}
