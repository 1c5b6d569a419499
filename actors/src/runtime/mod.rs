//! Threads, tasks, exits and shutdown: what keeps actors and tasks supervised.

mod arbiters;
mod doorbell;
mod exit;
mod shutdown;
mod task;
mod wheel;

pub use arbiters::{Control, Placement};
pub use doorbell::{Doorbell, Report, Reports};
pub use exit::{ExitGuard, FlowExit};
pub use shutdown::{ShutdownDeadlines, ShutdownReport, shut_down};
pub use task::{DataRuntime, StopSignal, Task, TaskExit, TaskScope};
pub use wheel::Wheel;
