//! Where a commit LSN stands, in words.

use trellara_actors::flow::FlowStatus;
use trellara_api::Known;
use trellara_api::stream::{Location, LogPlace};
use trellara_storage::log::locate::{self, Place, Standing};
use trellara_storage::records::{Outcome, PruneRule};
use trellara_storage::{Lsn, TransactionId};

use super::quarantine;
use crate::admin::time;

/// `found` is the store's answer for this LSN.
pub(in crate::admin) fn location(status: &FlowStatus, lsn: Lsn, found: &locate::Location) -> Location {
    let text = |lsn: Lsn| lsn.to_string();
    let mut location = Location {
        flow: status.flow.to_string(),
        incarnation: found.incarnation.get(),
        lsn: text(lsn),
        place: LogPlace::NoTransaction,
        text: String::new(),
        outcome: None,
        xid: None,
        end_lsn: None,
        commit_time: None,
        start_lsn: Known::from_option(
            found.parts.lineage.as_ref().map(|lineage| text(lineage.start)),
            "no history is durable here",
        ),
        durable_lsn: text(found.parts.durable.progress.position),
        applied_lsn: Known::from_option(
            found.parts.applied.map(|applied| text(applied.commit_lsn)),
            "nothing was applied yet",
        ),
        first_lsn: found.first.map(text),
        last_lsn: found.last.map(text),
        after_lsn: None,
    };
    match found.found.first() {
        Some(located) => place(&mut location, lsn, located),
        None => location.text = "not in the log".to_owned(),
    }
    location
}

fn place(location: &mut Location, lsn: Lsn, located: &locate::Located) {
    match &located.place {
        Place::InLog { transaction, end_lsn, commit_time, .. } if transaction.commit_lsn == lsn => {
            let outcome = located.standing.map(standing);
            location.place = LogPlace::InLog;
            location.text = format!("in the log, {}", outcome.as_deref().unwrap_or("not applied yet"));
            location.outcome = outcome;
            location.xid = Some(transaction.xid.get());
            location.end_lsn = Some(end_lsn.to_string());
            location.commit_time = Some(time(*commit_time));
        }
        Place::InLog { transaction, .. } | Place::PartDamaged { transaction, .. }
            if transaction.commit_lsn != lsn =>
        {
            no_transaction(location, *transaction);
        }
        Place::InLog { .. } => {}
        Place::PartDamaged { part, what, .. } => {
            damaged(location, format!("in the log, but part {part} is damaged: {what}"));
        }
        Place::Damaged { commit_lsn, .. } if *commit_lsn != lsn => {
            location.text = "no transaction has this commit LSN".to_owned();
            location.after_lsn = Some(commit_lsn.to_string());
        }
        Place::Damaged { what, .. } => damaged(location, format!("in the log, but damaged: {what}")),
        Place::Pruned { floor, .. } => {
            let rule = match floor.rule {
                PruneRule::RetainApplied => "applied and older than log.retain_applied",
                PruneRule::Released => "released on purpose",
                PruneRule::FlowRemoved => "the flow was removed",
            };
            location.place = LogPlace::Pruned;
            location.outcome = located.standing.map(standing);
            location.text = format!("no longer in the log: pruned at {} because {rule}", time(floor.at));
        }
        Place::NotReceived { position } => {
            location.place = LogPlace::NotReceived;
            location.text = format!("not received: nothing at or behind it came in, durable is {position}");
        }
    }
}

fn no_transaction(location: &mut Location, next: TransactionId) {
    location.text = "no transaction has this commit LSN".to_owned();
    location.after_lsn = Some(next.commit_lsn.to_string());
}

fn damaged(location: &mut Location, text: String) {
    location.place = LogPlace::Damaged;
    location.text = text;
}

fn standing(standing: Standing) -> String {
    match standing {
        Standing::Applied => "applied".to_owned(),
        Standing::Waiting => "not applied yet".to_owned(),
        Standing::Quarantined(state) => format!("quarantined, {}", quarantine::state(state).name()),
        Standing::Decided(Outcome::Discarded) => "discarded by a recorded decision".to_owned(),
        Standing::Decided(Outcome::ReplayedInPart) => "replayed in part".to_owned(),
        Standing::Decided(Outcome::Superseded) => "superseded by a copy".to_owned(),
        Standing::Decided(Outcome::Released) => "released by a recorded rule".to_owned(),
    }
}
