//! One flow: its machines, its core, and the thin actor around them.

mod actor;
pub mod core;
mod decide;
pub mod effect;
pub mod event;
mod hands;
mod link;
pub mod machine;
pub mod order;
pub mod phase;
mod progress;
pub mod record;
mod sequence;
mod setup;
pub mod state;
mod status;

pub use actor::{FlowActor, Ring, Tick};
pub use link::{FlowLink, Stumble, TargetView};
pub use phase::Phase;
pub use progress::{Counters, PROOF_WINDOW};
pub use sequence::EventSequence;
pub use setup::FlowSetup;
pub use state::State;
pub use status::{Condition, FlowStatus, Work};
