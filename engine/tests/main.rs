//! Integration tests of the engine against real PostgreSQL clusters. One binary, a module per subject.
#![expect(clippy::unwrap_used, reason = "a failed expectation in a test is a failed test")]

mod apply;
mod cluster;
mod eventually;
mod harness;
mod repair;
mod runtime;
mod session;
mod settings;
mod source;
mod transport;
