//! The fleet on synthetic ports: real actors, threads, log writer; scripted capture and apply.

mod ends;
mod isolation;
mod orders;
mod reload;
mod shutdown;
mod synthetic;
mod world;
