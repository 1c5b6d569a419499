//! The fleet: which flows run, which are started again, and what all of them show.

mod diff;
mod handle;
mod observe;
mod restart;
mod settle;
mod stall;
mod supervisor;

pub use diff::{FleetDiff, WantedFlow, diff};
pub use handle::FleetHandle;
pub use observe::{FleetView, FlowCell};
pub use restart::{Deaths, Decision, RestartPolicy};
pub use stall::StallPolicy;
pub use supervisor::{FleetSettings, FleetSetup, Supervisor};
