//! The runner's own tests, on real PostgreSQL: what it starts goes away, and its oracles do fire.
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

mod cluster;
mod oracle;
mod sandbox;
mod spec;
