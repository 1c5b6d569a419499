//! Composition root: start, serve, staged shutdown. The only place that knows every part.

mod clock;
#[cfg(feature = "rocks")]
mod engine;
mod factory;
mod probe;
mod removal;
#[cfg(feature = "rocks")]
mod store;
mod tasks;
mod wanted;

pub use clock::SystemClock;
#[cfg(feature = "rocks")]
pub use engine::{Ended, Engine};
pub use factory::EngineFactory;
pub use probe::Probe;
#[cfg(feature = "rocks")]
pub use store::rocks_settings;
