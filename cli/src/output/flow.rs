//! Text of the `flow` commands.

use std::io;

use trellara_api::Time;
use trellara_api::flow::{Condition, Event, FlowDetail, FlowLine, FlowList, Removal, RemovalState, Side};

use super::{Out, human, quarantine, table};

pub(crate) fn list(out: Out<'_>, list: &FlowList) -> io::Result<()> {
    if list.flows.is_empty() {
        writeln!(out, "no flows")?;
    }
    lines(out, &list.flows, list.at)?;
    partial(out, &list.partial)
}

/// One line per flow, and what to do under the table.
pub(super) fn lines(out: Out<'_>, flows: &[FlowLine], now: Time) -> io::Result<()> {
    let row = |line: &FlowLine| {
        vec![
            line.flow.clone(),
            line.phase.to_string(),
            human::age(now, line.since),
            human::known_short(&line.lag_bytes, |bytes| human::bytes(*bytes)),
            human::known_short(&line.lag_seconds, |seconds| human::seconds(*seconds)),
            line.code.clone().unwrap_or_default(),
            line.cause.clone().unwrap_or_default(),
        ]
    };
    let header = ["FLOW", "PHASE", "SINCE", "LAG", "BEHIND", "CODE", "CAUSE"];
    table::write(out, &header, flows.iter().map(row).collect())
}

/// Phase, why, next command, positions, both sides, log, quarantine, events: in this order, because that
/// is the order of the questions.
pub(crate) fn detail(out: Out<'_>, detail: &FlowDetail) -> io::Result<()> {
    let line = &detail.line;
    writeln!(out, "{}  {} for {}", line.flow, line.phase, human::age(detail.at, line.since))?;
    conditions(out, &detail.conditions, detail.at)?;
    if let Some(next) = &line.next {
        writeln!(out, "\nnext: {next}")?;
    }
    writeln!(out)?;
    table::pairs(out, &facts(detail))?;
    if !detail.quarantine.is_empty() {
        writeln!(out)?;
        quarantine::lines(out, &detail.quarantine, detail.at)?;
    }
    if !detail.events.is_empty() {
        writeln!(out)?;
        events(out, &detail.events)?;
    }
    Ok(())
}

/// Everything that holds, with PostgreSQL's own line under each.
pub(super) fn conditions(out: Out<'_>, conditions: &[Condition], now: Time) -> io::Result<()> {
    for condition in conditions {
        let class = condition.class.as_deref().map(|class| format!("class {class}"));
        let sqlstate = condition.sqlstate.as_deref().map(|state| format!("SQLSTATE {state}"));
        let constraint = condition.constraint.as_deref().map(|name| format!("constraint {name}"));
        let known = [condition.code.clone(), class, sqlstate, constraint, condition.evidence.clone()];
        let known: Vec<String> = known.into_iter().flatten().collect();
        let (phase, age) = (condition.phase, human::age(now, condition.since));
        writeln!(out, "  {phase:13} {age:9} {}", condition.cause)?;
        if !known.is_empty() {
            writeln!(out, "  {:13} {:9} {}", "", "", known.join(", "))?;
        }
        if let Some(message) = &condition.message {
            writeln!(out, "  {:13} {:9} {}", "", "", message.replace('\n', " "))?;
        }
    }
    Ok(())
}

fn facts(detail: &FlowDetail) -> Vec<(&'static str, String)> {
    let now = detail.at;
    let ago = |time: &Time| format!("{} ago", human::age(now, *time));
    let side = |side: &Side| format!("{}, seen {}", side.address, human::known(&side.seen, ago));
    let positions = &detail.positions;
    let labels = detail.line.labels.iter().map(|(name, value)| format!("{name}={value}"));
    let beginning = human::known(&detail.beginning, |beginning| {
        format!(
            "incarnation {} from {} ({}), {}",
            beginning.incarnation,
            beginning.start_lsn,
            beginning.start_mode,
            ago(&beginning.started)
        )
    });
    let lag = format!(
        "{}, {}",
        human::known(&detail.line.lag_bytes, |bytes| human::bytes(*bytes)),
        human::known(&detail.line.lag_seconds, |seconds| human::seconds(*seconds))
    );
    let paused = detail.paused.as_ref().map(|pause| {
        let what = if pause.capture_too { "capture and apply" } else { "apply" };
        let until = pause.until.map_or_else(String::new, |until| format!(", until {until}"));
        format!("{what} by {}, {}: {}{until}", pause.who, ago(&pause.since), pause.reason)
    });
    vec![
        ("paused", paused.unwrap_or_default()),
        ("held by", detail.holder.clone().unwrap_or_default()),
        ("captured", human::known(&positions.captured_lsn, Clone::clone)),
        ("durable", human::known(&positions.durable_lsn, Clone::clone)),
        ("applied", human::known(&positions.applied_lsn, Clone::clone)),
        ("lag", lag),
        ("heartbeat", human::known(&detail.heartbeat, ago)),
        ("source", human::known(&detail.source, side)),
        ("target", human::known(&detail.target, side)),
        ("slot", human::known(&detail.slot, Clone::clone)),
        (
            "log",
            human::known(&detail.log, |log| {
                let percent = log.bytes.saturating_mul(100) / log.max_bytes.max(1);
                let (used, max) = (human::bytes(log.bytes), human::bytes(log.max_bytes));
                format!("{used} of {max} ({percent} %)")
            }),
        ),
        ("history", beginning),
        ("labels", labels.collect::<Vec<_>>().join(", ")),
    ]
}

pub(crate) fn events(out: Out<'_>, events: &[Event]) -> io::Result<()> {
    let row = |event: &Event| {
        let change = if event.from.is_empty() && event.to.is_empty() {
            String::new()
        } else {
            format!("{} -> {}", event.from, event.to)
        };
        let known: Vec<&str> =
            [&event.code, &event.evidence].into_iter().flatten().map(String::as_str).collect();
        vec![event.at.to_string(), event.kind.clone(), change, known.join(" "), event.cause.clone()]
    };
    table::write(out, &["TIME", "EVENT", "CHANGE", "CODE", "CAUSE"], events.iter().map(row).collect())
}

pub(crate) fn removal(out: Out<'_>, removal: &Removal) -> io::Result<()> {
    let when = if removal.dry_run { "would be removed" } else { "removed" };
    writeln!(out, "{}  {when}", removal.flow)?;
    for step in &removal.steps {
        let state = match step.state {
            RemovalState::Planned => "would go",
            RemovalState::Done => "gone",
            RemovalState::Kept => "kept",
            RemovalState::Left => "LEFT",
        };
        writeln!(out, "  {state:9} {}", step.what)?;
        if let Some(why) = &step.why {
            writeln!(out, "  {:9} {why}", "")?;
        }
        if let Some(sql) = &step.sql {
            writeln!(out, "  {:9} {sql}", "")?;
        }
    }
    Ok(())
}

/// What is missing in an answer.
pub(super) fn partial(out: Out<'_>, partial: &[String]) -> io::Result<()> {
    partial.iter().try_for_each(|what| writeln!(out, "partial answer: {what}"))
}
