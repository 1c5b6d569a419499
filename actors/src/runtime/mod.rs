//! Threads, exits and shutdown: what keeps actors and tasks supervised.

mod exit;

pub use exit::{ExitGuard, FlowExit};
