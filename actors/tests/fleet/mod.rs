//! The fleet on synthetic ports: real actors, threads, log writer; scripted capture and apply.

#![expect(clippy::unwrap_used, reason = "tests state what must hold")]

mod ends;
mod isolation;
mod orders;
mod reload;
mod shutdown;
mod synthetic;
mod world;
