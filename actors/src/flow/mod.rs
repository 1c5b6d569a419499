//! One flow: its machines, its core, and the thin actor around them.

pub mod effect;
pub mod event;
mod link;
pub mod machine;
pub mod phase;
pub mod record;
mod sequence;
pub mod state;

pub use link::{FlowLink, Stumble, TargetView};
pub use phase::Phase;
pub use sequence::EventSequence;
pub use state::State;
