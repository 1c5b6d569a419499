//! Integration tests of the store, one binary.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

mod conformance;
mod disk_format;
mod key_order;
#[cfg(feature = "rocks")]
mod rocks;
