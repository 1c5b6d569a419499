//! What Trellara connects: PostgreSQL on both sides, the configuration, the admin API, metrics.
//!
//! Adapters for the ports of `trellara-actors` live here, and the composition root. Nothing here decides
//! what a core decides: adapters translate, move bytes and report.

pub mod admin;
pub mod apply;
#[cfg(feature = "rocks")]
pub mod command;
pub mod config;
pub mod contract;
pub mod decode;
pub mod postgres;
pub mod repair;
pub mod runtime;
pub mod settings;
pub mod source;
pub mod telemetry;
