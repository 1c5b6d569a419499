//! The admin API as types: what the engine answers and what the CLI and the scenario runner ask.
//!
//! Owns the shapes, the paths and the typed client (feature `client`), and nothing else: no rendering, no
//! decision. Positions travel as text, as PostgreSQL writes them; times as RFC 3339. A reader tolerates
//! fields that it does not know, so that a newer engine can be asked by an older client. The one danger: a
//! field whose meaning changes under an old name. New meaning, new name.

#[cfg(feature = "client")]
pub mod client;
pub mod config;
pub mod engine;
pub mod flow;
mod known;
pub mod path;
mod problem;
pub mod quarantine;
pub mod repair;
mod select;
pub mod status;
pub mod store;
pub mod stream;
mod time;

pub use known::Known;
pub use problem::{Problem, RequestCode};
pub use select::{Selector, SelectorQuery};
pub use time::Time;
