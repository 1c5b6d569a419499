//! Scenarios: the whole product, black box, against real PostgreSQL.
//!
//! Starts clusters from installed binaries, runs the shipped `trellara` and `trellara-engine` as an operator would,
//! breaks things, and judges by reading the databases. Knows the product by its command line, its admin API and its
//! effects only; it must never link the engine. The danger is an oracle that cannot fail: each has tests in which it
//! does.

pub mod binaries;
pub mod cli;
pub mod cluster;
mod disk;
pub mod engine;
pub mod fleet;
pub mod latency;
pub mod leftovers;
pub mod oracle;
mod process;
pub mod report;
pub mod run;
pub mod sandbox;
pub mod session;
pub mod spec;
pub mod wait;
pub mod workload;
