//! Composition root: start, serve, staged shutdown. The only place that knows every part.

mod clock;
#[cfg(feature = "rocks")]
mod descriptors;
#[cfg(feature = "rocks")]
mod engine;
mod factory;
mod generations;
mod leases;
mod probe;
mod removal;
mod retention;
#[cfg(feature = "rocks")]
mod store;
#[cfg(feature = "rocks")]
mod surfaces;
mod tasks;
mod wanted;

pub use clock::SystemClock;
#[cfg(feature = "rocks")]
pub use engine::{Ended, Engine};
pub use factory::EngineFactory;
pub use probe::Probe;
#[cfg(feature = "rocks")]
pub use store::rocks_settings;
