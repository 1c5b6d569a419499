//! Integration tests of the store, one binary.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

mod audit_trail;
mod conformance;
mod disk_format;
mod inspecting;
mod key_order;
mod retention;
#[cfg(feature = "rocks")]
mod rocks;
