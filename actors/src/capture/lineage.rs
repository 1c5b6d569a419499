//! The lineage decision (I8): does this source, with this slot, continue what is durable here or applied at
//! the target?
//!
//! Pure. The safe point is max(durable here, applied at the target in the same lineage). A slot confirmed at
//! or below it goes on; a gap that cannot be disproved ends the incarnation. It must never let a stream
//! start of which a transaction could be missing: every doubt is a loss, a refusal or a wait.

mod slot;

use trellara_storage::records::{Lineage, PublicationIdentity, StartMode};
use trellara_storage::{Incarnation, Lsn, Progress, TransactionDigest};

use self::slot::Usable;
use super::defect;
use crate::failure::{Class, Code, Failure, Place};
use crate::flow::TargetView;
use crate::flow::state::Loss;
use crate::ports::{Checkpoint, SourceFacts};

/// What the flow is set up to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineageSettings {
    pub slot: String,
    pub publications: Vec<String>,
    /// Content before the start is not this flow's business.
    pub from_now: bool,
}

/// What is known here before the source is asked.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    pub lineage: Option<&'a Lineage>,
    pub durable: Progress,
    /// The store was opened at an earlier point by explicit recovery, and this flow was not judged since.
    pub recovered: bool,
    pub target: &'a TargetView,
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The slot continues what is durable here. `lineage` is brought up to date with the source's timeline
    /// and publications; `changed` names publications whose definition is another than at the last connect.
    Continue { lineage: Lineage, confirmed: Lsn, changed: Vec<String> },
    /// There is no record of this flow anywhere: make the slot and begin.
    Start { incarnation: Incarnation, mode: StartMode, publications: Vec<PublicationIdentity> },
    /// The target's checkpoint covers the slot's position, this store does not: go on from the checkpoint.
    Adopt { lineage: Lineage, confirmed: Lsn, applied: Progress, digest: Option<TransactionDigest> },
    /// Terminal for this incarnation.
    Lost { code: Code, what: String },
    /// Not now, or not this way; the failure's class says which.
    Refused(Failure),
    /// Only the target's checkpoint can tell, and it was not read yet.
    NeedCheckpoint,
}

/// The name of a lineage in the target's checkpoint: positions of two sources, or of two slots, are never
/// mixed up there.
pub fn lineage_name(system_identifier: u64, slot: &str) -> String {
    format!("{system_identifier}/{slot}")
}

/// The decision.
pub fn judge(known: Known<'_>, facts: &SourceFacts, settings: &LineageSettings) -> Verdict {
    let judgement = match known.lineage {
        Some(lineage) => continued(lineage, known, facts, settings),
        None => without_record(known, facts, settings),
    };
    judgement.unwrap_or_else(|ended| *ended)
}

/// What a look at the source beside a running stream found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Looked {
    Same,
    /// As `Verdict::Continue` has it.
    Changed {
        lineage: Lineage,
        changed: Vec<String>,
    },
    Lost(Loss),
    /// Another server answered than the one that streams, or the slot did not show: a new connection judges.
    Elsewhere,
}

/// The part of the decision that may change under a running stream without ending it. No position is
/// compared: what was read beside the stream is older than what has come through it meanwhile.
pub(super) fn look(lineage: &Lineage, facts: &SourceFacts, settings: &LineageSettings) -> Looked {
    if lineage.system_identifier != facts.system_identifier || facts.slot.is_none() {
        return Looked::Elsewhere;
    }
    match same_publications(lineage, facts, settings) {
        Ok(changed) if changed.is_empty() => Looked::Same,
        Ok(changed) => {
            let lineage = Lineage { publications: identities(facts), ..lineage.clone() };
            Looked::Changed { lineage, changed }
        }
        Err(loss) => Looked::Lost(loss),
    }
}

/// A verdict that ends the judgement early; it travels as an error, so that every check is one line.
type Early = Box<Verdict>;

type Judgement = Result<Verdict, Early>;

/// This store has a record of the flow.
fn continued(
    lineage: &Lineage,
    known: Known<'_>,
    facts: &SourceFacts,
    settings: &LineageSettings,
) -> Judgement {
    same_source(lineage, facts)?;
    on_timeline(lineage.timeline, known.durable.position, facts)?;
    not_behind(known.durable.position, facts)?;
    let slot = slot::usable(facts, settings)?.ok_or_else(|| slot::missing(settings))?;
    let changed = same_publications(lineage, facts, settings)?;
    let lineage = Lineage { timeline: facts.timeline, publications: identities(facts), ..lineage.clone() };
    if slot.confirmed <= known.durable.position {
        return Ok(Verdict::Continue { lineage, confirmed: slot.confirmed, changed });
    }
    if !known.target.read {
        return Err(Early::new(Verdict::NeedCheckpoint));
    }
    let checkpoint = known.target.checkpoint.as_ref();
    let applied = applied_in(&lineage, checkpoint);
    covered_by_target(&slot, known, applied.map(|applied| applied.applied), settings)?;
    adopt(lineage, slot, applied)
}

/// This store has none: the target may.
fn without_record(known: Known<'_>, facts: &SourceFacts, settings: &LineageSettings) -> Judgement {
    if !known.target.read {
        return Err(Early::new(Verdict::NeedCheckpoint));
    }
    let slot = slot::usable(facts, settings)?;
    match &known.target.checkpoint {
        Some(checkpoint) => from_checkpoint(checkpoint, slot, known, facts, settings),
        None => from_nothing(slot.is_some(), facts, settings),
    }
}

fn from_nothing(slot_exists: bool, facts: &SourceFacts, settings: &LineageSettings) -> Judgement {
    if slot_exists {
        return Err(slot::unknown(settings));
    }
    present(facts, settings).map_err(|name| {
        let what = format!("publication \"{name}\" does not exist at the source");
        refused(Code::PublicationMissing, what, None)
    })?;
    let mode = if settings.from_now { StartMode::FromNow } else { StartMode::Empty };
    if mode == StartMode::Empty && !facts.tables_with_rows.is_empty() {
        let what = format!("tables hold rows before the start: {}", facts.tables_with_rows.join(", "));
        let hint = "start: from_now declares that content before the start is not this flow's business";
        return Err(refused(Code::TablesNotEmpty, what, Some(hint.to_owned())));
    }
    Ok(Verdict::Start { incarnation: Incarnation::FIRST, mode, publications: identities(facts) })
}

fn from_checkpoint(
    checkpoint: &Checkpoint,
    slot: Option<Usable>,
    known: Known<'_>,
    facts: &SourceFacts,
    settings: &LineageSettings,
) -> Judgement {
    let name = lineage_name(facts.system_identifier, &settings.slot);
    if checkpoint.lineage != name {
        let what = format!("the target was applied from {}, this source is {name}", checkpoint.lineage);
        let same_cluster = checkpoint.lineage.starts_with(&format!("{}/", facts.system_identifier));
        return Err(match same_cluster {
            true => refused(Code::SlotMismatch, what, None),
            false => lost(Code::SystemIdentifierChanged, what),
        });
    }
    not_behind(checkpoint.applied.position, facts)?;
    let slot = slot.ok_or_else(|| slot::missing(settings))?;
    present(facts, settings).map_err(publication_missing)?;
    covered_by_target(&slot, known, Some(checkpoint.applied), settings)?;
    let lineage = Lineage {
        incarnation: checkpoint.incarnation,
        system_identifier: facts.system_identifier,
        timeline: facts.timeline,
        slot: settings.slot.clone(),
        publications: identities(facts),
        start: checkpoint.applied.position,
        start_mode: StartMode::Adopted,
        started: facts.now,
    };
    adopt(lineage, slot, Some(checkpoint))
}

/// The slot was confirmed at or below what the target has: nothing is missing between the two.
fn covered_by_target(
    slot: &Usable,
    known: Known<'_>,
    applied: Option<Progress>,
    settings: &LineageSettings,
) -> Result<(), Early> {
    if applied.is_some_and(|applied| slot.confirmed <= applied.position) {
        return Ok(());
    }
    let applied = applied.map_or("not applied at the target".to_owned(), |applied| {
        format!("applied at the target to {}", applied.position)
    });
    let what = format!(
        "slot \"{}\" was confirmed to {}; durable here to {}, {applied}",
        settings.slot, slot.confirmed, known.durable.position
    );
    let code = if known.recovered { Code::StoreRecovered } else { Code::SlotBeyondSafePoint };
    Err(lost(code, what))
}

fn adopt(lineage: Lineage, slot: Usable, checkpoint: Option<&Checkpoint>) -> Judgement {
    let checkpoint = checkpoint.ok_or_else(|| Early::new(Verdict::NeedCheckpoint))?;
    let lineage = Lineage { start: checkpoint.applied.position, start_mode: StartMode::Adopted, ..lineage };
    Ok(Verdict::Adopt {
        lineage,
        confirmed: slot.confirmed,
        applied: checkpoint.applied,
        digest: checkpoint.digest,
    })
}

/// The checkpoint, when its positions belong to this lineage and incarnation.
fn applied_in<'a>(lineage: &Lineage, checkpoint: Option<&'a Checkpoint>) -> Option<&'a Checkpoint> {
    let name = lineage_name(lineage.system_identifier, &lineage.slot);
    checkpoint.filter(|found| found.incarnation == lineage.incarnation && found.lineage == name)
}

fn same_source(lineage: &Lineage, facts: &SourceFacts) -> Result<(), Early> {
    if lineage.system_identifier == facts.system_identifier {
        return Ok(());
    }
    let (ours, found) = (lineage.system_identifier, facts.system_identifier);
    Err(lost(Code::SystemIdentifierChanged, format!("source is cluster {found}, the log came from {ours}")))
}

/// The timeline that `position` was received on is the current one, or ended at or beyond it.
fn on_timeline(timeline: u32, position: Lsn, facts: &SourceFacts) -> Result<(), Early> {
    if timeline == facts.timeline {
        return Ok(());
    }
    let end = facts.timeline_history.iter().find(|(number, _)| *number == timeline).map(|(_, end)| *end);
    match end {
        Some(end) if position <= end => Ok(()),
        Some(end) => {
            let what = format!("timeline {timeline} ended at {end}, received here to {position}");
            Err(lost(Code::TimelineDiverged, what))
        }
        None => {
            let what =
                format!("source is on timeline {}, which does not come from {timeline}", facts.timeline);
            Err(lost(Code::TimelineDiverged, what))
        }
    }
}

fn not_behind(position: Lsn, facts: &SourceFacts) -> Result<(), Early> {
    if facts.position >= position {
        return Ok(());
    }
    Err(lost(Code::ServerBehind, format!("source stands at {}, received to {position}", facts.position)))
}

/// Every publication is there and the same object; names those whose definition changed.
fn same_publications(
    lineage: &Lineage,
    facts: &SourceFacts,
    settings: &LineageSettings,
) -> Result<Vec<String>, Loss> {
    present(facts, settings).map_err(publication_missing)?;
    let mut changed = Vec::new();
    for found in &facts.publications {
        match lineage.publications.iter().find(|known| known.name == found.name) {
            Some(known) if known.oid != found.oid => {
                let what = format!("publication \"{}\" was dropped and made again", found.name);
                return Err(Loss { code: Code::PublicationReplaced, what });
            }
            Some(known) if known.digest == found.digest => {}
            Some(_) | None => changed.push(found.name.clone()),
        }
    }
    Ok(changed)
}

/// The first wanted publication that is not there.
fn present<'a>(facts: &SourceFacts, settings: &'a LineageSettings) -> Result<(), &'a str> {
    let found = |name: &String| facts.publications.iter().any(|publication| publication.name == *name);
    settings.publications.iter().find(|name| !found(name)).map_or(Ok(()), |name| Err(name))
}

fn publication_missing(name: &str) -> Loss {
    Loss { code: Code::PublicationMissing, what: format!("publication \"{name}\" is gone from the source") }
}

impl From<Loss> for Early {
    fn from(Loss { code, what }: Loss) -> Self {
        lost(code, what)
    }
}

fn identities(facts: &SourceFacts) -> Vec<PublicationIdentity> {
    let identity = |found: &crate::ports::PublicationFacts| PublicationIdentity {
        name: found.name.clone(),
        oid: found.oid,
        digest: found.digest.clone(),
    };
    facts.publications.iter().map(identity).collect()
}

fn lost(code: Code, what: String) -> Early {
    Early::new(Verdict::Lost { code, what })
}

fn refused(code: Code, what: String, hint: Option<String>) -> Early {
    Early::new(Verdict::Refused(defect::failure(Place::SourceConnect, Class::Defect, code, what, hint)))
}

#[cfg(test)]
mod tests;
