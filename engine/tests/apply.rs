//! The target adapter against real PostgreSQL: changes as a real source's pgoutput sends them, applied
//! through the port.

mod contract;
mod encoding;
mod fencing;
mod isolation;
mod rows;
mod stage;
mod types;
