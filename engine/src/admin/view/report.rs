//! What is proven of each flow: one claim per line, each from live state, with its evidence and its age.

use std::time::Duration;

use trellara_actors::flow::{FlowStatus, Phase};
use trellara_api::Time;
use trellara_api::status::{Check, FlowReport, Verdict};
use trellara_storage::records::{Lineage, QuarantineState, StartMode};

use super::flow;
use crate::admin::observe::Observed;
use crate::admin::time;

/// Three heartbeats of the default interval.
const HEARTBEAT_AGE: Duration = Duration::from_secs(90);
/// Above this share of its log budget a flow's capture is about to pause.
const LOG_PERCENT: u64 = 80;

pub(in crate::admin) fn of_flow(observed: &Observed, now: Time) -> FlowReport {
    let status = &observed.status;
    FlowReport {
        flow: status.flow.to_string(),
        phase: flow::phase(status.phase()),
        checks: vec![
            lineage(status),
            content(status.lineage.as_ref()),
            durable(status),
            nothing_skipped(observed),
            decisions(observed),
            applied(status),
            alive(status, now),
            owned(status),
            room(status),
        ],
    }
}

fn check(name: &str, verdict: Verdict, text: impl Into<String>) -> Check {
    Check { check: name.to_owned(), verdict, text: text.into(), evidence: None, at: None }
}

/// I8: positions belong to this source.
fn lineage(status: &FlowStatus) -> Check {
    let lost = status.conditions.iter().find(|held| held.reason.phase == Phase::LineageLost);
    match (lost, &status.lineage, status.source_seen) {
        (Some(lost), _, _) => Check {
            evidence: lost.reason.code.clone(),
            at: Some(time(lost.since)),
            ..check("lineage", Verdict::AtRisk, lost.reason.cause.clone())
        },
        (None, Some(lineage), Some(seen)) => Check {
            evidence: Some(lineage.slot.clone()),
            at: Some(time(seen)),
            ..check(
                "lineage",
                Verdict::Verified,
                format!("source, slot and publications are those of incarnation {}", lineage.incarnation),
            )
        },
        (None, Some(_), None) => {
            check("lineage", Verdict::MissingEvidence, "the source was not reached since the flow started")
        }
        (None, None, _) => check("lineage", Verdict::MissingEvidence, "no history is durable here yet"),
    }
}

/// Whether the stream is the whole content.
fn content(lineage: Option<&Lineage>) -> Check {
    let Some(lineage) = lineage else {
        return check("content", Verdict::MissingEvidence, "no history is durable here yet");
    };
    let start = lineage.start;
    let (verdict, text) = match lineage.start_mode {
        StartMode::Empty => {
            (Verdict::Verified, format!("every table was empty at the source at {start}: the stream is all"))
        }
        StartMode::FromNow => (Verdict::MissingEvidence, format!("content before {start} not proven")),
        StartMode::Adopted => {
            (Verdict::MissingEvidence, format!("adopted at {start}; content before it not proven here"))
        }
    };
    Check {
        evidence: Some(start.to_string()),
        at: Some(time(lineage.started)),
        ..check("content", verdict, text)
    }
}

/// I1: what is confirmed to the slot never lies beyond this.
fn durable(status: &FlowStatus) -> Check {
    if status.lineage.is_none() {
        return check("durability", Verdict::MissingEvidence, "nothing is durable here yet");
    }
    let position = status.durable.position.to_string();
    let text = format!("fsynced here up to {position}; nothing beyond it is confirmed to the slot");
    Check {
        evidence: Some(position),
        at: status.source_seen.map(time),
        ..check("durability", Verdict::Verified, text)
    }
}

/// I5: nothing is passed over without a record.
fn nothing_skipped(observed: &Observed) -> Check {
    if let Some(gap) = observed.gap() {
        return check("quarantine", Verdict::MissingEvidence, gap);
    }
    match observed.open().next() {
        Some(record) => Check {
            evidence: Some(record.id.clone()),
            at: Some(time(record.at)),
            ..check(
                "quarantine",
                Verdict::AtRisk,
                format!("the transaction at {} waits for a decision", record.transaction.commit_lsn),
            )
        },
        None => check("quarantine", Verdict::Verified, "no transaction is set aside"),
    }
}

/// Discards leave the target without what the source has.
fn decisions(observed: &Observed) -> Check {
    let discarded: Vec<_> =
        observed.records().iter().filter(|record| record.state == QuarantineState::Discarded).collect();
    match discarded.last() {
        Some(newest) => Check {
            evidence: Some(newest.id.clone()),
            at: newest.resolution.as_ref().map(|resolution| time(resolution.at)),
            ..check(
                "decisions",
                Verdict::AtRisk,
                format!("{} transactions discarded: their tables count as diverged", discarded.len()),
            )
        },
        None => check("decisions", Verdict::Verified, "no transaction was discarded"),
    }
}

/// I3: what the target holds.
fn applied(status: &FlowStatus) -> Check {
    let position = status.applied.position.to_string();
    let Some(seen) = status.target_seen else {
        return check(
            "target",
            Verdict::MissingEvidence,
            "the target was not reached since the flow started",
        );
    };
    let blocked = status.phase().blocked();
    let (verdict, text) = match (flow::is_caught_up(status), blocked) {
        (true, _) => (Verdict::Verified, format!("holds everything that is durable here, up to {position}")),
        (false, true) => (Verdict::AtRisk, format!("stands at {position} and does not move")),
        (false, false) => (Verdict::MissingEvidence, format!("on its way, at {position}")),
    };
    Check { evidence: Some(position), at: Some(time(seen)), ..check("target", verdict, text) }
}

/// I12: a heartbeat went from the source through log and target.
fn alive(status: &FlowStatus, now: Time) -> Check {
    let Some(heartbeat) = status.heartbeat.map(time) else {
        return check("heartbeat", Verdict::MissingEvidence, "none came back since the flow started");
    };
    let fresh = now.since(heartbeat) <= HEARTBEAT_AGE;
    let (verdict, text) = if fresh {
        (Verdict::Verified, "came from the source into the log")
    } else {
        (Verdict::AtRisk, "the newest one is old")
    };
    Check { at: Some(heartbeat), ..check("heartbeat", verdict, text) }
}

/// I11: nobody else applies this flow.
fn owned(status: &FlowStatus) -> Check {
    match (&status.holder, status.target_seen) {
        (Some(holder), _) => check("ownership", Verdict::AtRisk, format!("applied by {}", holder.name)),
        (None, Some(seen)) => Check {
            at: Some(time(seen)),
            ..check("ownership", Verdict::Verified, "this engine holds the flow's token at the target")
        },
        (None, None) => {
            check("ownership", Verdict::MissingEvidence, "the token was not claimed since the flow started")
        }
    }
}

/// I6: the flow's share of the log.
fn room(status: &FlowStatus) -> Check {
    let Some(log) = flow::log_use(status).value().copied() else {
        return check("log budget", Verdict::MissingEvidence, "not measured yet");
    };
    let percent = log.bytes.saturating_mul(100) / log.max_bytes.max(1);
    let verdict = if percent >= LOG_PERCENT { Verdict::AtRisk } else { Verdict::Verified };
    check("log budget", verdict, format!("{percent} % used"))
}
