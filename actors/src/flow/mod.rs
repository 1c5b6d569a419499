//! One flow: its machines, its core, and the thin actor around them.

mod link;

pub use link::{FlowLink, TargetView};
