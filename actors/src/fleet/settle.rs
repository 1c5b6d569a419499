//! Records a transition of a flow that has no actor: parked, detached, removed, or paused while it waits
//! for its next start. Only while no generation of the flow lives, and behind its last write, so the part
//! keeps its one writer.

use trellara_storage::records::EventRecord;
use trellara_storage::{Batch, FlowName, Timestamp};

use crate::flow::State;
use crate::flow::core::cause;
use crate::flow::event::Event;
use crate::flow::machine;
use crate::flow::order::OrderError;
use crate::flow::phase::reasons;
use crate::flow::record::{self, PhaseRecord};
use crate::ports::{FlowFactory, FlowLog};

/// The state after the event, durable.
pub(super) async fn settle<F: FlowFactory>(
    factory: &F,
    flow: &FlowName,
    event: &Event,
    at: Timestamp,
) -> Result<State, OrderError> {
    let (id, log) = factory.log_of(flow).await?.ok_or(OrderError::UnknownFlow)?;
    log.submit(Batch::new()).await?.await?;
    let stored = log.read(move |store| record::load(store, id)).await?;
    let step = machine::on(&stored.state, event)?;
    let before = reasons(&stored.state, false).swap_remove(0);
    let after = reasons(&step.next, false).swap_remove(0);
    let record = EventRecord {
        at,
        kind: event.kind().to_owned(),
        from: before.phase.name().to_owned(),
        to: after.phase.name().to_owned(),
        cause: cause(event).unwrap_or(after.cause),
        code: after.code,
        evidence: after.evidence,
    };
    let mut batch = Batch::new();
    let phase = PhaseRecord::of(&step.next, after.phase, at);
    record::put(&mut batch, id, stored.newest_event + 1, &record, &phase);
    log.submit(batch).await?.await?;
    Ok(step.next)
}
