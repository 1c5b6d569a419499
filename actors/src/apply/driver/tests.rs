//! The apply task against a scripted target: what took effect, what was parked, and what is durable here.

#![expect(clippy::unwrap_used, reason = "tests")]

mod decisions;
mod doubt;
mod fencing;
mod integrity;
mod keepalive;
mod property;
mod world;
