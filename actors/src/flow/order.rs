//! What an operator asks of a flow, and how it may be refused.

use actix::Message;
use tokio::sync::oneshot;

use super::machine;
use super::state::Pause;
use crate::apply::Checked;
use crate::quarantine;
use crate::runtime::FlowExit;

/// Why an order was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    #[error("there is no such flow")]
    UnknownFlow,
    /// It has no actor now: it is starting, waits for a restart, or was parked.
    #[error("the flow does not run now")]
    NotRunning,
    #[error("another order is being carried out")]
    Busy,
    #[error(transparent)]
    Refused(#[from] machine::Refused),
    #[error(transparent)]
    Quarantine(#[from] quarantine::Refused),
    #[error(transparent)]
    Store(#[from] trellara_storage::Error),
    /// Whoever was to carry it out ended meanwhile; whether it took effect shows in the flow's status.
    #[error("the flow ended before it answered")]
    Gone,
}

/// The answer, owed exactly once; a dropped one reads as `Gone`.
pub type Answer<T> = oneshot::Sender<Result<T, OrderError>>;

/// The two ways past a parked transaction.
#[derive(Clone, Debug)]
pub enum Decision {
    Replay,
    Discard { digest_prefix: String },
}

/// One order to a running flow.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub enum FlowOrder {
    Pause {
        pause: Pause,
        answer: Answer<()>,
    },
    Resume {
        answer: Answer<()>,
    },
    /// `evidence` is the short id of the record that the flow stands before.
    Decide {
        evidence: String,
        decision: Decision,
        by: quarantine::Actor,
        answer: Answer<()>,
    },
    Check {
        evidence: String,
        answer: Answer<Checked>,
    },
    /// Stops the tasks, then the actor, which gives this as its reason.
    End(FlowExit),
}
