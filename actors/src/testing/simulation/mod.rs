//! The deterministic simulation: the real capture and apply drivers on one thread over simulated ports, in
//! schedules that a seed determines, with oracles for the invariants.
//!
//! Crashes, torn and lost tails, failed syncs, cut connections, redelivery, a replaced source, lost answers,
//! late COMMITs, poisoned transactions, two engines on one flow. Nothing in here may excuse a driver: an
//! oracle looks at the world from outside, never at what a driver believes.

mod engine;
mod executor;
mod log;
mod oracle;
mod schedule;
mod source;
mod target;

pub use oracle::Violation;
pub use schedule::{Exercised, Plant, run};
pub use target::Flaws;
