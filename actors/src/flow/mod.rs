//! One flow: its machines, its core, and the thin actor around them.

mod link;
mod sequence;

pub use link::{FlowLink, TargetView};
pub use sequence::EventSequence;
