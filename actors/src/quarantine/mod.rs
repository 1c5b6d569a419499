//! Quarantine: a transaction that could not be applied, set aside with its evidence, and the two recorded
//! decisions that let its flow pass it.
//!
//! Evidence and the state change that it explains are one batch (I7). Nothing here is ever deleted. The one
//! danger: a decision that passes a transaction which the operator did not mean; a discard therefore needs
//! the beginning of its transaction digest.

mod command;
mod evidence;
mod id;
mod machine;

pub use command::{Decision, discard, find, request_replay};
pub(crate) use evidence::{Subject, event, open};
pub(crate) use id::short_id;
pub use machine::{Actor, Refused};
pub(crate) use machine::{failed_again, passed};
