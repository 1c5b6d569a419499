//! Arguments of `flow`.

use std::time::Duration;

use clap::{Args, Subcommand};
use trellara_api::flow::Phase;

use super::duration;
use super::select::{Act, ExitCodeFlag, OneFlow, Select};

#[derive(Debug, Subcommand)]
pub enum Flow {
    /// One line per flow, worst first
    List(List),
    /// One flow in full: phase, why, next command, positions, log, quarantine, events
    Show(Show),
    /// State changes of a flow, newest first
    Events(Events),
    /// Hold flows back until resumed; outlives restarts
    Pause(Pause),
    /// End a pause
    Resume(Resume),
    /// Start again, and the only way out of failed and fenced
    Restart(Restart),
    /// Remove a flow: slot, checkpoint and log; evidence and audit stay
    Remove(Remove),
}

#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    pub select: Select,
    #[command(flatten)]
    pub gate: ExitCodeFlag,
}

#[derive(Debug, Args)]
pub struct Show {
    #[command(flatten)]
    pub flow: OneFlow,
    /// Wait until the flow is in this phase, at most for --timeout
    #[arg(long, value_name = "PHASE")]
    pub wait: Option<Phase>,
    #[command(flatten)]
    pub gate: ExitCodeFlag,
}

#[derive(Debug, Args)]
pub struct Events {
    #[command(flatten)]
    pub flow: OneFlow,
    /// How many
    #[arg(short = 'n', long, default_value_t = 50, value_name = "COUNT")]
    pub limit: usize,
}

#[derive(Debug, Args)]
pub struct Pause {
    #[command(flatten)]
    pub act: Act,
    /// Capture as well: its connection closes, and the slot holds the source's WAL
    #[arg(long)]
    pub capture: bool,
    /// Shown with the pause
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
    /// Resume by itself after this long
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    pub until: Option<Duration>,
}

#[derive(Debug, Args)]
pub struct Resume {
    #[command(flatten)]
    pub act: Act,
}

#[derive(Debug, Args)]
pub struct Restart {
    #[command(flatten)]
    pub act: Act,
    /// Claim the target although another engine holds it
    #[arg(long)]
    pub take_over: bool,
}

#[derive(Debug, Args)]
pub struct Remove {
    #[command(flatten)]
    pub flow: OneFlow,
    /// Say what would go, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Leave the slot at the source
    #[arg(long)]
    pub keep_slot: bool,
}
