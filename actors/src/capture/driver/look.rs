//! Looks at the source's catalog beside the stream: a publication that was replaced or redefined, and the
//! slot's restart position, never come through it.
//!
//! The one danger: ending a stream that is sound. A source that does not answer here says nothing.

use trellara_storage::Batch;
use trellara_storage::families::flows;
use trellara_storage::records::{FlowPart, Lineage};

use super::super::context::CaptureContext;
use super::super::lineage::{Looked, look};
use super::super::report::{CaptureExit, CaptureReport};
use crate::flow::state::Loss;
use crate::ports::{Clock, FlowLog, SourcePort};

/// Resolves once the lineage is lost.
pub(super) async fn keep_looking<S: SourcePort, L: FlowLog, C: Clock>(
    context: &CaptureContext<S, L, C>,
    report: &(impl Fn(CaptureReport) + Sync),
) -> CaptureExit {
    loop {
        context.clock.sleep(context.settings.look_interval).await;
        let Ok(facts) = context.source.inspect().await else { continue };
        let Some(lineage) = context.link.lineage.borrow().clone() else { continue };
        match look(&lineage, &facts, &context.settings.lineage) {
            Looked::Elsewhere => continue,
            Looked::Lost(Loss { code, what }) => return CaptureExit::LineageLost { code, what },
            Looked::Same => {}
            Looked::Changed { lineage, changed } => {
                if let Err(exit) = renew(context, &lineage).await {
                    return exit;
                }
                report(CaptureReport::PublicationsChanged(changed));
                report(CaptureReport::Lineage { lineage, adopted: false });
            }
        }
        let restart = facts.slot.and_then(|slot| slot.restart);
        context.link.restart.send_replace(restart);
    }
}

/// So that what changed is told once.
async fn renew<S: SourcePort, L: FlowLog, C: Clock>(
    context: &CaptureContext<S, L, C>,
    lineage: &Lineage,
) -> Result<(), CaptureExit> {
    let mut batch = Batch::new();
    flows::put(&mut batch, context.flow, FlowPart::Lineage, lineage);
    context.log.submit(batch).await?.await?;
    context.link.lineage.send_replace(Some(lineage.clone()));
    Ok(())
}
