//! Blockages by what holds for a flow as a whole: lost lineage, full log, servers away, and the switches.

use std::time::Duration;

use trellara_actors::failure::Code;
use trellara_api::Time;
use trellara_api::flow::{Condition, Phase};
use trellara_api::repair::{Blockage, BlockageKind, Step};

use super::commands::Commands;
use super::{View, row};
use crate::settings::{FlowSettings, Server};

/// A pause that is older than this is asked about.
const LONG_PAUSE: Duration = Duration::from_secs(3_600);

/// The blockage that a condition is, if it is one.
pub(super) fn blockage(
    condition: &Condition,
    view: View<'_>,
    commands: &Commands<'_>,
    at: Time,
) -> Option<Blockage> {
    let kind = kind(condition, view, at)?;
    let mut parts = Parts { steps: Vec::new(), notes: Vec::new() };
    let (what, unblocks) = match kind {
        BlockageKind::LineageLost => lineage_lost(&mut parts, view, commands),
        BlockageKind::LogFull => log_full(&mut parts, view, commands),
        BlockageKind::Failed => failed(&mut parts, view, commands),
        BlockageKind::Fenced => fenced(&mut parts, commands),
        BlockageKind::SlotInUse => slot_in_use(&mut parts, view, commands),
        BlockageKind::Unavailable => unavailable(&mut parts, condition, view, commands),
        BlockageKind::Detached => detached(&mut parts, commands),
        BlockageKind::PausedLong => paused(&mut parts, commands),
        BlockageKind::Unclassified => evidence(&mut parts, condition, commands),
        BlockageKind::Integrity
        | BlockageKind::ConstraintViolation
        | BlockageKind::RowMissing
        | BlockageKind::RowDuplicate
        | BlockageKind::RowData
        | BlockageKind::SchemaContract
        | BlockageKind::Unknown => return None,
    };
    Some(Blockage {
        flow: commands.flow(),
        kind,
        since: condition.since,
        what: what.to_owned(),
        why: condition.cause.clone(),
        code: condition.code.clone(),
        evidence: condition.evidence.iter().cloned().collect(),
        unblocks: unblocks.to_owned(),
        notes: parts.notes,
        steps: parts.steps,
    })
}

fn kind(condition: &Condition, view: View<'_>, at: Time) -> Option<BlockageKind> {
    let slot_in_use = condition.code.as_deref() == Some(Code::SlotInUse.to_string().as_str());
    match condition.phase {
        Phase::LineageLost => Some(BlockageKind::LineageLost),
        Phase::LogFull => Some(BlockageKind::LogFull),
        Phase::Failed => Some(BlockageKind::Failed),
        Phase::Fenced => Some(BlockageKind::Fenced),
        Phase::Unavailable | Phase::Retrying if slot_in_use => Some(BlockageKind::SlotInUse),
        Phase::Unavailable => Some(BlockageKind::Unavailable),
        Phase::Detached => Some(BlockageKind::Detached),
        Phase::Paused => (at.since(condition.since) >= LONG_PAUSE).then_some(BlockageKind::PausedLong),
        // With its record at hand the record says more.
        Phase::Quarantined => view.open.is_empty().then_some(BlockageKind::Unclassified),
        Phase::Removing
        | Phase::Retrying
        | Phase::NotSeeded
        | Phase::Connecting
        | Phase::CatchingUp
        | Phase::Streaming
        | Phase::Unknown => None,
    }
}

struct Parts {
    steps: Vec<Step>,
    notes: Vec<String>,
}

/// What is blocked, and what would unblock it.
type Words = (&'static str, &'static str);

fn lineage_lost(parts: &mut Parts, view: View<'_>, commands: &Commands<'_>) -> Words {
    if let Some(settings) = view.settings {
        parts.steps.push(see_slot(settings, commands));
    }
    if let Some(lsn) = view.durable_lsn {
        let flow = commands.flow();
        let words = ["stream", "locate-local", &flow, "--lsn", lsn];
        parts.steps.push(commands.command("see how far this engine received and applied", &words));
    }
    manual_road(commands, view.settings, &mut parts.steps, &mut parts.notes);
    (
        "capture: what the source committed since may be missing here",
        "a new start from a copy: the gap cannot be disproved",
    )
}

/// This build has no reseed, and says so.
pub(super) fn manual_road(
    commands: &Commands<'_>,
    settings: Option<&FlowSettings>,
    steps: &mut Vec<Step>,
    notes: &mut Vec<String>,
) {
    notes.push("this version cannot reseed a flow by itself; the road by hand:".to_owned());
    notes.push("1. stop writes to these tables at the source until step 3 is done".to_owned());
    if let Some(settings) = settings {
        let tables: Vec<String> =
            settings.source.tables.iter().map(|table| format!("{}.{}", table.schema, table.name)).collect();
        let schema = settings.target.schema.as_deref().unwrap_or("the same schema");
        notes.push(format!(
            "2. remove the flow, then empty and copy {} from {} to {schema} at {}",
            tables.join(", "),
            settings.source.server.host,
            settings.target.server.host
        ));
    }
    notes.push("3. write start: from_now for the flow, and reload: it starts at a new slot".to_owned());
    let flow = commands.flow();
    steps.push(commands.command("see what removal takes away", &["flow", "remove", &flow, "--dry-run"]));
    steps.push(Step {
        precondition: Some("writes at the source are stopped".to_owned()),
        changes: Some("drops slot, checkpoint and log of the flow; keeps evidence and audit".to_owned()),
        undo: Some("none".to_owned()),
        ..commands.command("remove the flow", &["flow", "remove", &flow])
    });
    steps.push(Step {
        precondition: Some("the tables are copied, and the flow has start: from_now".to_owned()),
        changes: Some("enrols the flow at a new slot".to_owned()),
        proof: Some(commands.proof()),
        ..commands.command("enrol it again", &["config", "reload"])
    });
}

fn log_full(parts: &mut Parts, view: View<'_>, commands: &Commands<'_>) -> Words {
    let blocked = view.conditions.iter().any(|held| match held.phase {
        Phase::Quarantined | Phase::Unavailable | Phase::Paused => true,
        Phase::Failed
        | Phase::Fenced
        | Phase::Removing
        | Phase::Detached
        | Phase::LineageLost
        | Phase::LogFull
        | Phase::Retrying
        | Phase::NotSeeded
        | Phase::Connecting
        | Phase::CatchingUp
        | Phase::Streaming
        | Phase::Unknown => false,
    });
    // More room alone ends in a full log again; only what blocks apply makes it drain.
    let more_room = if blocked { "or: give the log more room" } else { "give the log more room" };
    if blocked {
        parts
            .notes
            .push("first clear what blocks apply, below: capture goes on by itself once it drains".into());
    }
    if let Some(settings) = view.settings {
        parts.steps.push(see_slot(settings, commands));
    }
    parts.steps.push(Step {
        precondition: Some("raise log: { max_bytes: ... } of the flow, with room on the disk".to_owned()),
        changes: Some("capture goes on and the source may drop its WAL".to_owned()),
        undo: Some("lower it again once the log has drained".to_owned()),
        proof: Some(commands.proof()),
        ..commands.command(more_room, &["config", "reload"])
    });
    ("capture; the source's slot holds its WAL meanwhile", "apply drains the log, or the log gets more room")
}

fn failed(parts: &mut Parts, view: View<'_>, commands: &Commands<'_>) -> Words {
    let flow = commands.flow();
    parts.steps.push(commands.command("see why", &["flow", "show", &flow]));
    parts.steps.push(Step {
        changes: Some("starts the flow again from its durable state".to_owned()),
        proof: Some(commands.proof()),
        ..commands.command("start it again", &["flow", "restart", &flow])
    });
    parts
        .notes
        .push("if it fails again with the same code, only a new start from a copy is left:".to_owned());
    let mut road = Vec::new();
    manual_road(commands, view.settings, &mut road, &mut parts.notes);
    if let Some(first) = road.first_mut() {
        first.title = format!("or: {}", first.title);
    }
    parts.steps.extend(road);
    ("the whole flow; it is not tried again by itself", "a restart, once the cause is gone")
}

fn fenced(parts: &mut Parts, commands: &Commands<'_>) -> Words {
    let flow = commands.flow();
    parts.steps.push(commands.command("see who holds it", &["flow", "show", &flow]));
    parts.steps.push(Step {
        precondition: Some("the other engine is stopped, or no longer configured for this flow".to_owned()),
        changes: Some("this engine applies the flow; the other one is fenced".to_owned()),
        undo: Some("the same command at the other engine".to_owned()),
        proof: Some(commands.proof()),
        ..commands.command("take the flow over", &["flow", "restart", &flow, "--take-over"])
    });
    ("this engine's part in the flow; another engine applies it", "the right engine holds the flow")
}

fn slot_in_use(parts: &mut Parts, view: View<'_>, commands: &Commands<'_>) -> Words {
    if let Some(settings) = view.settings {
        let slot = row::quoted(&settings.source.slot);
        let server = &settings.source.server;
        let query = format!(
            "SELECT a.pid, a.application_name, a.client_addr, a.backend_start FROM pg_replication_slots s \
             JOIN pg_stat_activity a ON a.pid = s.active_pid WHERE s.slot_name = {slot}"
        );
        parts.steps.push(commands.sql("see who uses the slot", server, &query));
        let end = format!(
            "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots \
             WHERE slot_name = {slot} AND active_pid IS NOT NULL"
        );
        parts.steps.push(Step {
            precondition: Some("it is not another engine that rightly holds this flow".to_owned()),
            changes: Some("ends that connection; this engine connects next".to_owned()),
            undo: Some("none needed: the other one may connect again".to_owned()),
            proof: Some(commands.proof()),
            ..commands.sql("end that connection", server, &end)
        });
    }
    parts.notes.push("a dead connection frees the slot by itself after its wal_sender_timeout".to_owned());
    ("capture; the slot holds the source's WAL", "nobody else is connected to the slot")
}

fn unavailable(parts: &mut Parts, condition: &Condition, view: View<'_>, commands: &Commands<'_>) -> Words {
    let flow = commands.flow();
    let side = condition.side.as_deref().unwrap_or("source");
    if let Some(settings) = view.settings {
        let server: &Server =
            if side == "target" { &settings.target.server } else { &settings.source.server };
        parts.steps.push(commands.sql(format!("try the {side} by hand"), server, "SELECT now(), version()"));
    }
    parts.steps.push(Step {
        proof: Some(commands.proof()),
        ..commands.command("have the engine try both sides", &["preflight", "--flow", &flow])
    });
    parts.notes.push(hint(condition.code.as_deref()).to_owned());
    parts
        .notes
        .push("nothing is to be replayed: the flow goes on by itself once the server answers".to_owned());
    ("both halves wait for a server", "the server answers again")
}

/// What to look at, by code.
fn hint(code: Option<&str>) -> &'static str {
    let is = |wanted: Code| code == Some(wanted.to_string().as_str());
    if is(Code::AuthenticationFailed) {
        "check the password's file or variable, and pg_hba.conf; files are read at every connect"
    } else if is(Code::PermissionDenied) {
        "check the role's privileges; preflight prints the GRANT"
    } else if is(Code::DatabaseMissing) {
        "check the database's name in the url"
    } else if is(Code::ReadOnly) {
        "the server is a standby or default_transaction_read_only is on: check which one is the primary"
    } else if is(Code::ResourcesExhausted) {
        "check disk, memory and max_connections at the server"
    } else if is(Code::TlsFailed) {
        "check the certificate's names and dates, sslrootcert, and tls"
    } else if is(Code::NameResolution) {
        "check the host name in the url, and DNS on the engine's machine"
    } else {
        "check that the server runs and can be reached from the engine's machine"
    }
}

fn detached(parts: &mut Parts, commands: &Commands<'_>) -> Words {
    let flow = commands.flow();
    parts
        .steps
        .push(commands.command("see what removal takes away", &["flow", "remove", &flow, "--dry-run"]));
    parts.steps.push(Step {
        precondition: Some("the flow is not wanted any more".to_owned()),
        changes: Some("drops slot, checkpoint and log; the source may drop its WAL".to_owned()),
        undo: Some("none".to_owned()),
        ..commands.command("remove it", &["flow", "remove", &flow])
    });
    parts.steps.push(Step {
        precondition: Some("the flow is in the configuration again".to_owned()),
        changes: Some("the flow goes on where it stopped".to_owned()),
        proof: Some(commands.proof()),
        ..commands.command("or: enrol it again", &["config", "reload"])
    });
    ("the flow is not configured; its slot holds the source's WAL", "it is removed, or configured again")
}

fn paused(parts: &mut Parts, commands: &Commands<'_>) -> Words {
    parts.steps.push(Step {
        precondition: Some("the reason for the pause is gone".to_owned()),
        changes: Some("the flow goes on".to_owned()),
        undo: Some("flow pause, with a reason".to_owned()),
        proof: Some(commands.proof()),
        ..commands.command("resume it", &["flow", "resume", &commands.flow()])
    });
    ("the flow is held back by an operator", "someone resumes it")
}

/// Quarantined by a record that could not be read just now.
fn evidence(parts: &mut Parts, condition: &Condition, commands: &Commands<'_>) -> Words {
    if let Some(id) = &condition.evidence {
        parts.steps.push(commands.command("see the evidence", &["quarantine", "show", id]));
    }
    parts.notes.push("the record could not be read for this plan; ask again".to_owned());
    ("a transaction and everything after it in this flow", "the transaction applies, or is discarded")
}

fn see_slot(settings: &FlowSettings, commands: &Commands<'_>) -> Step {
    let query = format!(
        "SELECT slot_name, plugin, database, active_pid, restart_lsn, confirmed_flush_lsn, wal_status \
         FROM pg_replication_slots WHERE slot_name = {}",
        row::quoted(&settings.source.slot)
    );
    commands.sql("see the slot at the source", &settings.source.server, &query)
}
