//! What stands before the stream is opened: this store's record of the flow, the source's facts, and the
//! verdict over both.

use tokio::sync::watch;
use trellara_storage::families::{default, flows};
use trellara_storage::records::{Durable, Floor, FlowPart, Lineage};
use trellara_storage::{Batch, Error};

use super::super::context::CaptureContext;
use super::super::lineage::{Known, Verdict, judge};
use super::super::report::CaptureExit;
use super::unless_stopped;
use crate::ports::{FlowLog, SourceFacts, SourcePort};

/// This store's record of the flow.
#[derive(Debug, Default)]
pub(super) struct Stored {
    pub(super) lineage: Option<Lineage>,
    pub(super) durable: Durable,
    pub(super) pruned_bytes: u64,
    /// The store was recovered, and the flow was not judged since.
    pub(super) recovered: bool,
}

/// Reads the record once everything that an earlier connection handed to the log is written.
pub(super) async fn load<S, L: FlowLog, C>(context: &CaptureContext<S, L, C>) -> Result<Stored, CaptureExit> {
    context.log.submit(Batch::new()).await?.await?;
    let flow = context.flow;
    let stored = context.log.read(move |store| {
        let floor: Option<Floor> = flows::get(store, flow, FlowPart::Floor)?;
        Ok::<_, Error>(Stored {
            lineage: flows::get(store, flow, FlowPart::Lineage)?,
            durable: flows::get(store, flow, FlowPart::Durable)?.unwrap_or_default(),
            pruned_bytes: floor.map_or(0, |floor| floor.pruned.bytes),
            recovered: default::mark(store, flow)?.is_some(),
        })
    });
    Ok(stored.await?)
}

/// Asks the source and judges, again whenever the target has something new to say, until there is a verdict
/// to act on.
pub(super) async fn judged<S: SourcePort, L, C>(
    context: &CaptureContext<S, L, C>,
    stored: &Stored,
    stop: &mut watch::Receiver<bool>,
) -> Result<(Verdict, SourceFacts), CaptureExit> {
    let mut target = context.link.target.subscribe();
    loop {
        let facts = unless_stopped(stop, context.source.inspect()).await??;
        let view = target.borrow_and_update().clone();
        let known = Known {
            lineage: stored.lineage.as_ref(),
            durable: stored.durable.progress,
            recovered: stored.recovered,
            target: &view,
        };
        let verdict = judge(known, &facts, &context.settings.lineage);
        if verdict != Verdict::NeedCheckpoint {
            return Ok((verdict, facts));
        }
        // The link outlives its tasks, so the sender is there.
        let read = unless_stopped(stop, target.wait_for(|view| view.read)).await?;
        drop(read);
    }
}
