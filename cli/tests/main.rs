//! The command line against a scripted engine: whole commands, whole answers, every exit code.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

mod engine;
mod exit_codes;
mod grammar;
mod text;
