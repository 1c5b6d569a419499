//! The source side of a flow: facts, slot, stream, heartbeat.
//!
//! ```text
//! inspect ──> SourceFacts (lineage decides) ──> create_slot, once per incarnation
//!                                          └──> open ──> stream + heartbeat
//! ```
//! Nothing here makes a slot but [`Source`]'s `create_slot`, which only the start of an incarnation calls
//! (I8), and nothing drops one but [`Source::drop_slot`].

mod creation;
mod finding;
mod heartbeat;
mod inspect;
mod port;
mod preflight;
mod publication;
mod setup;
mod slot;
mod stream;

pub use finding::{Finding, Severity};
pub use heartbeat::Heartbeats;
pub use port::Source;
pub use stream::SourceStream;
