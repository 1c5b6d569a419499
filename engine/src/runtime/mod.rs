//! Composition root: start, serve, staged shutdown. The only place that knows every part.

mod clock;

pub use clock::SystemClock;
