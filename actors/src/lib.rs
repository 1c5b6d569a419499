//! What Trellara decides. Every decision that could lose, double or reorder a transaction is made in this
//! crate, by code without I/O, and is exercised by property tests and by the deterministic simulation.
//!
//! Ports (`ports`) are what the cores need of the world; the engine implements them against PostgreSQL and
//! RocksDB, the simulation against scripted ones. Nothing here may read a clock, draw a random number,
//! spawn a task or open a socket except through a port.

pub mod apply;
pub mod capture;
pub mod failure;
pub mod fleet;
pub mod flow;
pub mod ports;
pub mod quarantine;
pub mod runtime;
#[cfg(feature = "testing")]
pub mod testing;
