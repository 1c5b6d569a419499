//! Whether the slot of the flow's name is one that this flow may read from.

use trellara_storage::Lsn;

use super::{Early, LineageSettings, Verdict, lost, refused};
use crate::capture::defect;
use crate::failure::{Class, Code, Place};
use crate::ports::{SlotFacts, SlotKind, SourceFacts, WalStatus};

const PLUGIN: &str = "pgoutput";

/// A slot that can be streamed from, if its position is covered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Usable {
    pub(super) confirmed: Lsn,
}

/// None when there is no slot of this name.
pub(super) fn usable(facts: &SourceFacts, settings: &LineageSettings) -> Result<Option<Usable>, Early> {
    let Some(slot) = &facts.slot else { return Ok(None) };
    if let Some(what) = mismatch(slot) {
        return Err(mismatched(settings, what));
    }
    if let Some(reason) = &slot.invalidation {
        return Err(invalidated(settings, reason));
    }
    match slot.wal_status {
        Some(WalStatus::Lost) => return Err(invalidated(settings, "its WAL was removed")),
        Some(WalStatus::Reserved | WalStatus::Extended | WalStatus::Unreserved) | None => {}
    }
    let confirmed = slot.confirmed.filter(|&confirmed| confirmed > Lsn::ZERO);
    let confirmed = confirmed.ok_or_else(|| unfinished(settings))?;
    Ok(Some(Usable { confirmed }))
}

pub(super) fn missing(settings: &LineageSettings) -> Early {
    lost(Code::SlotMissing, format!("slot \"{}\" is gone from the source", settings.slot))
}

/// A slot that neither this store nor the target knows of may have been confirmed to anywhere.
pub(super) fn unknown(settings: &LineageSettings) -> Early {
    let what = format!(
        "slot \"{}\" exists, but neither this engine nor the target has a record of it",
        settings.slot
    );
    let hint = format!("if nothing else reads from it: {}", drop_statement(settings));
    refused(Code::SlotMismatch, what, Some(hint))
}

fn mismatch(slot: &SlotFacts) -> Option<String> {
    if slot.kind == SlotKind::Physical {
        return Some("is a physical slot".to_owned());
    }
    if slot.plugin != PLUGIN {
        return Some(format!("uses the output plugin \"{}\", not {PLUGIN}", slot.plugin));
    }
    if !slot.same_database {
        return Some("belongs to another database".to_owned());
    }
    if slot.temporary {
        return Some("is a temporary slot of another connection".to_owned());
    }
    slot.two_phase.then(|| "was made with two_phase, which would send prepared transactions early".to_owned())
}

fn mismatched(settings: &LineageSettings, what: String) -> Early {
    let hint = format!(
        "to replace it, once nothing else reads from it: {} SELECT pg_create_logical_replication_slot({}, \
         '{PLUGIN}'); what was committed between the two is not sent",
        drop_statement(settings),
        literal(&settings.slot),
    );
    refused(Code::SlotMismatch, format!("slot \"{}\" {what}", settings.slot), Some(hint))
}

fn invalidated(settings: &LineageSettings, reason: &str) -> Early {
    lost(Code::SlotInvalidated, format!("slot \"{}\" was invalidated: {reason}", settings.slot))
}

/// Without a confirmed position the slot is still being made; it says neither "everything" nor "nothing".
fn unfinished(settings: &LineageSettings) -> Early {
    let what = format!("slot \"{}\" is still being made and has no position yet", settings.slot);
    let hint = "it waits for transactions that were open when it was begun".to_owned();
    Early::new(Verdict::Refused(defect::failure(
        Place::SourceConnect,
        Class::Transient,
        Code::SlotInUse,
        what,
        Some(hint),
    )))
}

fn drop_statement(settings: &LineageSettings) -> String {
    format!("SELECT pg_drop_replication_slot({});", literal(&settings.slot))
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
