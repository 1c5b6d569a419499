//! Arguments of `status`.

use clap::{Args, ValueEnum};

use super::select::{ExitCodeFlag, Select};

#[derive(Debug, Args)]
pub struct Status {
    #[command(flatten)]
    pub select: Select,
    /// What to show
    #[arg(long, value_enum, default_value_t = View::Summary)]
    pub view: View,
    /// Show again every two seconds until interrupted
    #[arg(long)]
    pub watch: bool,
    #[command(flatten)]
    pub gate: ExitCodeFlag,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum View {
    /// Counts, worst flows, lag, oldest quarantine
    Summary,
    /// For each flow that is not streaming: everything that holds, and the next command
    Diagnostics,
    /// What is proven, at risk, or without evidence, per flow
    Report,
}
