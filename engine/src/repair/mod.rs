//! The repair plan: from what holds for each flow, and from evidence, to exact commands.
//!
//! A pure function; nothing here asks a server or changes anything, and there is no command that carries a
//! plan out. It prints only commands that this build has: each is parsed in a test by the real argument
//! parser. The one danger: a step that makes things worse when it is run as printed. So looking comes
//! before mending, mending before replay, and what cannot be undone says so.

mod commands;
mod conditions;
mod quarantined;
mod row;

#[cfg(test)]
mod tests;

use std::path::Path;

use sha2::{Digest, Sha256};
use trellara_api::Time;
use trellara_api::flow::{Condition, Phase};
use trellara_api::repair::{Blockage, Plan};
use trellara_storage::FlowName;
use trellara_storage::records::QuarantineRecord;

use self::commands::Commands;
use crate::settings::FlowSettings;

/// One flow as the plan sees it.
#[derive(Clone, Copy, Debug)]
pub struct View<'v> {
    pub flow: &'v FlowName,
    /// Everything that holds.
    pub conditions: &'v [Condition],
    /// Open records, oldest first.
    pub open: &'v [QuarantineRecord],
    /// None for a flow that left the configuration.
    pub settings: Option<&'v FlowSettings>,
    /// Commit LSN of the newest durable transaction.
    pub durable_lsn: Option<&'v str>,
}

/// Where printed commands run, and with which configuration.
#[derive(Clone, Copy, Debug)]
pub struct Desk<'d> {
    pub config: &'d Path,
    /// The engine's machine.
    pub host: &'d str,
}

/// The plan for these flows at this moment.
pub fn plan(views: &[View<'_>], desk: Desk<'_>, at: Time) -> Plan {
    let mut blockages: Vec<Blockage> = views.iter().flat_map(|view| of_flow(*view, desk, at)).collect();
    blockages
        .sort_by(|one, other| (one.kind, one.since, &one.flow).cmp(&(other.kind, other.since, &other.flow)));
    let digest = digest(&blockages);
    Plan {
        id: format!("P-{}", digest[..8].to_uppercase()),
        digest,
        at,
        flows: views.len() as u64,
        blockages,
        partial: Vec::new(),
    }
}

/// The command that prints this flow's plan.
pub fn plan_command(flow: &FlowName, desk: Desk<'_>) -> String {
    Commands::new(flow, desk).of_flow(&["repair", "plan", "--flow"])
}

/// The next command for a flow in this phase, complete; none where nothing is to be done.
pub fn next(flow: &FlowName, phase: Phase, desk: Desk<'_>) -> Option<String> {
    let commands = Commands::new(flow, desk);
    match phase {
        Phase::Failed
        | Phase::Fenced
        | Phase::LineageLost
        | Phase::Quarantined
        | Phase::LogFull
        | Phase::Unavailable => Some(plan_command(flow, desk)),
        Phase::Detached => Some(commands.line(&["flow", "remove", &commands.flow(), "--dry-run"])),
        Phase::Paused => Some(commands.of_flow(&["flow", "resume"])),
        Phase::Removing
        | Phase::Retrying
        | Phase::NotSeeded
        | Phase::Connecting
        | Phase::CatchingUp
        | Phase::Streaming
        | Phase::Unknown => None,
    }
}

fn of_flow(view: View<'_>, desk: Desk<'_>, at: Time) -> Vec<Blockage> {
    let commands = Commands::new(view.flow, desk);
    let records = view.open.iter().map(|record| quarantined::blockage(record, view, &commands));
    let conditions =
        view.conditions.iter().filter_map(|condition| conditions::blockage(condition, view, &commands, at));
    records.chain(conditions).collect()
}

/// Over what the plan says, not over when it was asked for.
fn digest(blockages: &[Blockage]) -> String {
    let text = serde_json::to_vec(blockages).expect("a plan is plain data");
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}
