//! Apply: from the durable log into the target, whole transactions in commit order.
//!
//! The one danger: a COMMIT whose answer was lost being repeated or believed (I4). Only the checkpoint row
//! decides.

mod check;
mod context;
mod driver;
mod fence;
mod grouping;
mod isolate;
mod outcome;
mod pause;
mod read;
mod report;

pub use check::{Checked, check};
pub use context::{ApplyContext, EngineIdentity};
pub use driver::run;
pub use fence::{LEASE, may_claim};
pub use grouping::GroupLimits;
pub use report::{ApplyExit, ApplyProgress, ApplyReport};
