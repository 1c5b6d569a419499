//! A flow as a line, and in full.

use trellara_actors::failure::{Class, Endpoint};
use trellara_actors::flow::{self, FlowStatus, state};
use trellara_api::flow::{
    Beginning, Condition, Event, FlowDetail, FlowLine, LogUse, Pause, Phase, Positions, Side,
};
use trellara_api::{Known, Time};
use trellara_storage::records::{EventRecord, Lineage, StartMode};
use trellara_storage::{Lsn, Timestamp};

use super::quarantine;
use crate::admin::observe::Observed;
use crate::admin::time;
use crate::repair::{self, Desk};
use crate::settings::{FlowSettings, Server};

const NOT_OPENED: &str = "the flow was not opened yet";

pub(in crate::admin) fn phase(phase: flow::Phase) -> Phase {
    match phase {
        flow::Phase::Failed => Phase::Failed,
        flow::Phase::Fenced => Phase::Fenced,
        flow::Phase::Removing => Phase::Removing,
        flow::Phase::Detached => Phase::Detached,
        flow::Phase::LineageLost => Phase::LineageLost,
        flow::Phase::Quarantined => Phase::Quarantined,
        flow::Phase::Unavailable => Phase::Unavailable,
        flow::Phase::LogFull => Phase::LogFull,
        flow::Phase::Paused => Phase::Paused,
        flow::Phase::Retrying => Phase::Retrying,
        flow::Phase::NotSeeded => Phase::NotSeeded,
        flow::Phase::Connecting => Phase::Connecting,
        flow::Phase::CatchingUp => Phase::CatchingUp,
        flow::Phase::Streaming => Phase::Streaming,
    }
}

pub(in crate::admin) fn line(
    status: &FlowStatus,
    settings: Option<&FlowSettings>,
    desk: Desk<'_>,
    now: Time,
) -> FlowLine {
    let condition = status.condition();
    let phase = phase(status.phase());
    FlowLine {
        flow: status.flow.to_string(),
        labels: settings.map(|settings| settings.labels.iter().cloned().collect()).unwrap_or_default(),
        phase,
        since: time(condition.since),
        code: condition.reason.code.clone(),
        cause: (phase != Phase::Streaming).then(|| condition.reason.cause.clone()),
        lag_bytes: lag_bytes(status),
        lag_seconds: lag_seconds(status, now),
        open_quarantine: u64::from(status.quarantine.is_some()),
        next: repair::next(&status.flow, phase, desk),
    }
}

fn lag_bytes(status: &FlowStatus) -> Known<u64> {
    if status.id.is_none() {
        return Known::unknown(NOT_OPENED);
    }
    // Waiting for a flow's first history is not lag.
    if status.lineage.is_none() {
        return Known::unknown("no history is durable here yet");
    }
    if is_caught_up(status) {
        return Known::Value(0);
    }
    let applied = status.applied.position.max(status.lineage.as_ref().map_or(Lsn::ZERO, |known| known.start));
    Known::Value(status.durable.position.bytes_since(applied))
}

/// Age of the newest applied transaction while there are newer ones: what a reader of the target misses.
fn lag_seconds(status: &FlowStatus, now: Time) -> Known<f64> {
    if lag_bytes(status) == Known::Value(0) {
        return Known::Value(0.0);
    }
    let seconds = |at: Timestamp| now.since(time(at)).as_secs_f64();
    Known::from_option(status.applied_commit_time.map(seconds), "nothing was applied since the flow started")
}

pub(super) fn is_caught_up(status: &FlowStatus) -> bool {
    status.applied.commit_lsn >= status.durable.commit_lsn
}

/// Everything that holds. PostgreSQL's own line comes from the evidence.
pub(in crate::admin) fn conditions(observed: &Observed, desk: Desk<'_>) -> Vec<Condition> {
    let condition = |held: &flow::Condition| {
        let reason = &held.reason;
        let phase = phase(reason.phase);
        let record = observed.records().iter().find(|record| Some(&record.id) == reason.evidence.as_ref());
        Condition {
            phase,
            since: time(held.since),
            cause: reason.cause.clone(),
            side: reason.class.and_then(side),
            class: reason
                .class
                .map(|class| class.name().to_owned())
                .or_else(|| record.map(|record| record.failure.class.clone())),
            code: reason.code.clone(),
            sqlstate: reason.sqlstate.clone(),
            constraint: reason.constraint.clone(),
            message: record.map(|record| record.failure.message.clone()),
            evidence: reason.evidence.clone(),
            next: repair::next(&observed.status.flow, phase, desk),
        }
    };
    observed.status.conditions.iter().map(condition).collect()
}

fn side(class: Class) -> Option<String> {
    match class {
        Class::Endpoint(Endpoint::Source) => Some("source".to_owned()),
        Class::Endpoint(Endpoint::Target) => Some("target".to_owned()),
        Class::Transient
        | Class::RowData
        | Class::SchemaContract
        | Class::Integrity
        | Class::Lineage
        | Class::Fence
        | Class::Defect
        | Class::Unknown => None,
    }
}

pub(in crate::admin) fn detail(
    observed: &Observed,
    events: Vec<Event>,
    settings: Option<&FlowSettings>,
    desk: Desk<'_>,
    now: Time,
) -> FlowDetail {
    let status = &observed.status;
    let both = |side: fn(&FlowSettings) -> &Server, seen: Option<Timestamp>| {
        let side = settings.map(|settings| Side {
            address: address(side(settings)),
            seen: Known::from_option(seen.map(time), "no answer since the flow started"),
        });
        Known::from_option(side, "the flow is not configured any more")
    };
    let lineage = status.lineage.as_ref();
    FlowDetail {
        at: now,
        line: line(status, settings, desk, now),
        conditions: conditions(observed, desk),
        generation: status.generation,
        paused: status.pause.as_ref().map(pause),
        holder: status.holder.as_ref().map(|holder| holder.name.clone()),
        source: both(|settings| &settings.source.server, status.source_seen),
        target: both(|settings| &settings.target.server, status.target_seen),
        slot: Known::from_option(
            lineage
                .map(|lineage| lineage.slot.clone())
                .or_else(|| settings.map(|settings| settings.source.slot.clone())),
            "no history is durable here",
        ),
        publications: lineage
            .map(|lineage| lineage.publications.iter().map(|publication| publication.name.clone()).collect())
            .unwrap_or_default(),
        beginning: Known::from_option(lineage.map(beginning), "no history is durable here yet"),
        positions: positions(status),
        heartbeat: Known::from_option(status.heartbeat.map(time), "none came back since the flow started"),
        log: log_use(status),
        applied_transactions: status.counters.applied_transactions,
        quarantine: observed.open().map(|record| quarantine::line(record, &status.flow, desk)).collect(),
        events,
    }
}

/// `host:port/database`.
pub(in crate::admin) fn address(server: &Server) -> String {
    format!("{}:{}/{}", server.host, server.port, server.database)
}

fn pause(pause: &state::Pause) -> Pause {
    Pause {
        capture_too: match pause.scope {
            state::PauseScope::Apply => false,
            state::PauseScope::All => true,
        },
        who: pause.who.clone(),
        reason: pause.why.clone(),
        since: time(pause.since),
        until: pause.until.map(time),
    }
}

fn beginning(lineage: &Lineage) -> Beginning {
    Beginning {
        incarnation: lineage.incarnation.get(),
        start_lsn: lineage.start.to_string(),
        start_mode: match lineage.start_mode {
            StartMode::Empty => "empty",
            StartMode::FromNow => "from_now",
            StartMode::Adopted => "adopted",
        }
        .to_owned(),
        started: time(lineage.started),
        system_identifier: lineage.system_identifier.to_string(),
        timeline: lineage.timeline,
    }
}

fn positions(status: &FlowStatus) -> Positions {
    let known = |lsn: Lsn| {
        let known = (status.id.is_some() && lsn != Lsn::ZERO).then(|| lsn.to_string());
        Known::from_option(known, if status.id.is_some() { "nothing yet" } else { NOT_OPENED })
    };
    Positions {
        captured_lsn: known(status.captured.position),
        durable_lsn: known(status.durable.position),
        applied_lsn: known(status.applied.commit_lsn),
        applied_commit_time: Known::from_option(
            status.applied_commit_time.map(time),
            "nothing was applied since the flow started",
        ),
    }
}

pub(super) fn log_use(status: &FlowStatus) -> Known<LogUse> {
    let used = LogUse { bytes: status.log.used, max_bytes: status.log.max };
    Known::from_option((status.log.max > 0).then_some(used), "not measured yet")
}

pub(in crate::admin) fn event((sequence, record): (u64, EventRecord)) -> Event {
    Event {
        sequence,
        at: time(record.at),
        kind: record.kind,
        from: record.from,
        to: record.to,
        cause: record.cause,
        code: record.code,
        evidence: record.evidence,
    }
}
