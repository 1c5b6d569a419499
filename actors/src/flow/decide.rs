//! Replay, discard and check of the transaction that a flow stands before, through the flow's one mailbox.
//!
//! The record is read and the decision built on the data runtime; the decision is durable, together with
//! the phase that it allows, before apply starts again (I7).

use std::sync::{Arc, Mutex};

use super::actor::FlowActor;
use super::core::Moment;
use super::event::Event;
use super::hands::take;
use super::order::{Answer, Decision, OrderError};
use super::state::Parked;
use super::status;
use crate::apply::Checked;
use crate::ports::{Clock, FlowLog};
use crate::quarantine::{self, Refused};

/// A decision being built from the record, and who waits for it.
pub(super) struct Deciding {
    evidence: String,
    built: Arc<Mutex<Option<Result<quarantine::Decision, Refused>>>>,
    answer: Answer<()>,
}

impl<L: FlowLog, C: Clock> FlowActor<L, C> {
    pub(super) fn take_decision(&mut self, now: Moment) {
        let Some(deciding) = self.deciding.take() else { return };
        let Some(built) = take(&deciding.built) else {
            self.deciding = Some(deciding);
            return;
        };
        let event = Event::Decided { evidence: deciding.evidence };
        let result = match built {
            Ok(decision) => self.core.order(&event, Some(decision.batch), now).map_err(OrderError::Refused),
            Err(refused) => Err(OrderError::Quarantine(refused)),
        };
        self.order_done(deciding.answer, result);
    }

    /// The record that the flow stands before, if it is the one that is meant.
    fn standing(&self, evidence: &str) -> Result<Parked, OrderError> {
        self.core.may(&Event::Decided { evidence: evidence.to_owned() })?;
        let standing = status::parked(self.core.state()).filter(|_| self.deciding.is_none());
        standing.ok_or(OrderError::Busy)
    }

    pub(super) fn decide(
        &mut self,
        evidence: String,
        decision: Decision,
        by: quarantine::Actor,
        answer: Answer<()>,
    ) {
        let parked = match self.standing(&evidence) {
            Ok(parked) => parked,
            Err(error) => return self.order_done(answer, Err(error)),
        };
        let (log, events) = (self.hands.tools.log.clone(), self.hands.tools.events.clone());
        let built = self.hands.run(async move {
            log.read(move |store| match decision {
                Decision::Replay => quarantine::request_replay(store, parked.transaction, by, &events),
                Decision::Discard { digest_prefix } => {
                    quarantine::discard(store, parked.transaction, by, &digest_prefix, &events)
                }
            })
            .await
        });
        self.deciding = Some(Deciding { evidence, built, answer });
    }

    pub(super) fn check(&mut self, evidence: &str, answer: Answer<Checked>) {
        match self.standing(evidence) {
            Err(error) => drop(answer.send(Err(error))),
            Ok(parked) => {
                let check = self.hands.tools.tasks.check(&parked);
                self.hands
                    .tools
                    .data
                    .run(async move { drop(answer.send(check.await.map_err(OrderError::Store))) });
            }
        }
    }
}
