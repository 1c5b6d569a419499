//! From a verdict to durable ground: the incarnation, the position and the connection's number in one batch,
//! together with the sweep of what dead connections left behind.

use tokio::sync::watch;
use trellara_storage::families::{chunks, dedup, default, flows, relations};
use trellara_storage::records::{DedupRecord, Durable, FlowPart, Lineage, RelationRecord};
use trellara_storage::{Batch, CaptureSession, Error, Lsn, Progress, TransactionDigest};

use super::super::context::CaptureContext;
use super::super::lineage::Verdict;
use super::super::report::{CaptureExit, CaptureReport};
use super::ground::Stored;
use super::unless_stopped;
use crate::ports::{Clock, FlowLog, SourceFacts, SourcePort};

/// What a connection starts from; durable.
#[derive(Debug)]
pub(super) struct Settled {
    pub(super) lineage: Lineage,
    pub(super) durable: Durable,
    pub(super) pruned_bytes: u64,
    /// The slot's position as it was read.
    pub(super) confirmed: Lsn,
    pub(super) relations: Vec<RelationRecord>,
    pub(super) encoding: String,
}

impl Settled {
    pub(super) fn is_full(&self, max_bytes: u64) -> bool {
        self.durable.appended.bytes.saturating_sub(self.pruned_bytes) > max_bytes
    }
}

/// What a verdict comes to, before it is durable.
struct Ground {
    lineage: Lineage,
    progress: Progress,
    confirmed: Lsn,
    adopted: bool,
    /// Of the last applied transaction, where the position was adopted.
    digest: Option<TransactionDigest>,
}

/// Acts on the verdict. A lost lineage and a refusal end here.
pub(super) async fn settle<S: SourcePort, L: FlowLog, C: Clock>(
    context: &CaptureContext<S, L, C>,
    stored: Stored,
    verdict: Verdict,
    facts: &SourceFacts,
    stop: &mut watch::Receiver<bool>,
    report: &(impl Fn(CaptureReport) + Sync),
) -> Result<Settled, CaptureExit> {
    let ground = match verdict {
        Verdict::Continue { lineage, confirmed, changed } => {
            if !changed.is_empty() {
                report(CaptureReport::PublicationsChanged(changed));
            }
            let progress = stored.durable.progress;
            Ground { lineage, progress, confirmed, adopted: false, digest: None }
        }
        Verdict::Start { incarnation, mode, publications } => {
            let slot = unless_stopped(stop, context.source.create_slot()).await??;
            let lineage = Lineage {
                incarnation,
                system_identifier: facts.system_identifier,
                timeline: facts.timeline,
                slot: context.settings.lineage.slot.clone(),
                publications,
                start: slot.consistent_point,
                start_mode: mode,
                started: facts.now,
            };
            let progress = Progress { commit_lsn: Lsn::ZERO, position: slot.consistent_point };
            Ground { lineage, progress, confirmed: slot.consistent_point, adopted: false, digest: None }
        }
        Verdict::Adopt { lineage, confirmed, applied, digest } => {
            Ground { lineage, progress: applied, confirmed, adopted: true, digest }
        }
        Verdict::Lost { code, what } => return Err(CaptureExit::LineageLost { code, what }),
        Verdict::Refused(failure) => return Err(CaptureExit::Failed(failure)),
        Verdict::NeedCheckpoint => unreachable!("judged until there is something to act on"),
    };
    let adopted = ground.adopted;
    let settled = persist(context, stored, ground, facts).await?;
    let restart = facts.slot.as_ref().and_then(|slot| slot.restart);
    context.link.restart.send_replace(restart);
    // Position first: apply waits for the lineage.
    context.link.durable.send_replace(settled.durable.progress);
    context.link.lineage.send_replace(Some(settled.lineage.clone()));
    report(CaptureReport::Lineage { lineage: settled.lineage.clone(), adopted });
    Ok(settled)
}

/// One synced batch; from here on the source can be told nothing that a crash would take back.
async fn persist<S, L: FlowLog, C: Clock>(
    context: &CaptureContext<S, L, C>,
    stored: Stored,
    ground: Ground,
    facts: &SourceFacts,
) -> Result<Settled, CaptureExit> {
    let Ground { lineage, progress, confirmed, digest, adopted: _ } = ground;
    let (flow, incarnation) = (context.flow, lineage.incarnation);
    let session = CaptureSession::new(stored.durable.session.get().wrapping_add(1).max(1));
    let durable = Durable { progress, session, appended: stored.durable.appended };
    let mut batch = Batch::new();
    if stored.lineage.as_ref() != Some(&lineage) {
        flows::put(&mut batch, flow, FlowPart::Lineage, &lineage);
    }
    flows::put(&mut batch, flow, FlowPart::Durable, &durable);
    if stored.recovered {
        default::clear_mark(&mut batch, flow);
    }
    if let Some(digest) = digest {
        let received = context.clock.now().unix_micros();
        let record = DedupRecord { xid: 0, digest: *digest.bytes(), bytes: 0, received, outcome: None };
        dedup::put(&mut batch, flow, incarnation, progress.commit_lsn, &record);
    }
    let (sweep, relations) = context
        .log
        .read(move |store| {
            let mut sweep = Batch::new();
            for left in chunks::open(store, flow, incarnation)? {
                chunks::sweep(&mut sweep, store, left)?;
            }
            Ok::<_, Error>((sweep, relations::of_history(store, flow, incarnation)?))
        })
        .await?;
    batch.append(sweep);
    context.log.submit(batch).await?.await?;
    let (pruned_bytes, encoding) = (stored.pruned_bytes, facts.encoding.clone());
    Ok(Settled { lineage, durable, pruned_bytes, confirmed, relations, encoding })
}
