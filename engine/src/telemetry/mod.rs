//! Logs and metrics.

mod log;
mod metrics;

pub use log::install as install_log;
pub use metrics::{follow as follow_metrics, listen as listen_metrics};
