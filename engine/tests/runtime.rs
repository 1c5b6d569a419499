//! Whole flows between real databases, over a store in memory.

mod fleet;
mod leases;
mod look;
mod recovered;
