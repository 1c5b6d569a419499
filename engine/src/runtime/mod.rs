//! Composition root: start, signals, staged shutdown.
