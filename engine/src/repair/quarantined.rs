//! Blockages by a quarantined transaction: look, mend, try, replay; or policy; or discard.

use trellara_actors::failure::Code;
use trellara_api::Time;
use trellara_api::repair::{Blockage, BlockageKind, Step};
use trellara_storage::records::{ChangeImage, ColumnValue, QuarantineRecord};

use super::commands::Commands;
use super::{View, row};
use crate::postgres::ident::identifier;
use crate::settings::FlowSettings;

/// How many digits of the digest a discard has to name.
const DIGEST_DIGITS: usize = 8;

pub(super) fn blockage(record: &QuarantineRecord, view: View<'_>, commands: &Commands<'_>) -> Blockage {
    let kind = kind(record);
    let mut steps = vec![commands.command("see the evidence", &["quarantine", "show", &record.id])];
    let mut notes = Vec::new();
    if let Some(settings) = view.settings {
        let bench = Bench { record, settings, commands };
        bench.first_way(kind, &mut steps, &mut notes);
        bench.other_ways(kind, &mut steps);
    } else {
        notes.push("the flow is not configured any more: enrol it again before a replay".to_owned());
    }
    Blockage {
        flow: commands.flow(),
        kind,
        since: Time::from_unix_micros(record.at.unix_micros()),
        what: format!(
            "transaction {} (xid {}) and everything after it in this flow",
            record.transaction.commit_lsn, record.transaction.xid
        ),
        why: why(record),
        code: Some(record.failure.code.clone()),
        evidence: vec![record.id.clone()],
        unblocks: unblocks(kind).to_owned(),
        notes,
        steps,
    }
}

/// Class and code name the kind; a class of another version is not guessed at.
fn kind(record: &QuarantineRecord) -> BlockageKind {
    let is = |code: Code| record.failure.code == code.to_string();
    match record.failure.class.as_str() {
        "schema_contract" => BlockageKind::SchemaContract,
        "integrity" => BlockageKind::Integrity,
        "row_data" if is(Code::ConstraintViolation) => BlockageKind::ConstraintViolation,
        "row_data" if is(Code::RowMissing) => BlockageKind::RowMissing,
        "row_data" if is(Code::RowDuplicate) => BlockageKind::RowDuplicate,
        "row_data" => BlockageKind::RowData,
        _ => BlockageKind::Unclassified,
    }
}

/// Title, SQLSTATE and names: nothing of the row.
fn why(record: &QuarantineRecord) -> String {
    let failure = &record.failure;
    let title = Code::ALL.iter().find(|code| code.to_string() == failure.code).map(|code| code.title());
    let parts = [
        Some(title.unwrap_or("failed").to_owned()),
        failure.sqlstate.as_ref().map(|state| format!("SQLSTATE {state}")),
        failure.constraint.as_ref().map(|name| format!("constraint {name}")),
        failure.table.as_ref().map(|table| format!("table {table}")),
        failure.column.as_ref().map(|column| format!("column {column}")),
        record.change.map(|change| format!("change {change} of {}", record.changes)),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn unblocks(kind: BlockageKind) -> &'static str {
    match kind {
        BlockageKind::ConstraintViolation => "the target holds nothing that contradicts the transaction",
        BlockageKind::RowMissing => "the row that the transaction changes is at the target",
        BlockageKind::RowDuplicate => "the row that the transaction inserts is not at the target yet",
        BlockageKind::RowData => "the target takes the value",
        BlockageKind::SchemaContract => "the target's tables have what the source sends",
        BlockageKind::Integrity => "the flow starts again from a copy: the log record cannot be trusted",
        BlockageKind::Unclassified
        | BlockageKind::LineageLost
        | BlockageKind::LogFull
        | BlockageKind::Failed
        | BlockageKind::Fenced
        | BlockageKind::SlotInUse
        | BlockageKind::Unavailable
        | BlockageKind::Detached
        | BlockageKind::PausedLong
        | BlockageKind::Unknown => "the transaction applies, or is passed over by a recorded decision",
    }
}

/// What the steps for one record are made from.
struct Bench<'b> {
    record: &'b QuarantineRecord,
    settings: &'b FlowSettings,
    commands: &'b Commands<'b>,
}

impl Bench<'_> {
    fn first_way(&self, kind: BlockageKind, steps: &mut Vec<Step>, notes: &mut Vec<String>) {
        match kind {
            BlockageKind::ConstraintViolation => self.constraint(steps, notes),
            BlockageKind::RowMissing => self.row_missing(steps, notes),
            BlockageKind::RowDuplicate => self.row_duplicate(steps, notes),
            BlockageKind::RowData => {
                self.look_at_row(steps);
                self.remedy(steps);
            }
            BlockageKind::SchemaContract => {
                self.remedy(steps);
                if self.record.failure.remedy.is_empty() {
                    notes.push("the evidence says what does not fit; no statement alone mends it".to_owned());
                }
            }
            BlockageKind::Integrity => return self.integrity(steps, notes),
            BlockageKind::Unclassified
            | BlockageKind::LineageLost
            | BlockageKind::LogFull
            | BlockageKind::Failed
            | BlockageKind::Fenced
            | BlockageKind::SlotInUse
            | BlockageKind::Unavailable
            | BlockageKind::Detached
            | BlockageKind::PausedLong
            | BlockageKind::Unknown => {}
        }
        steps.push(self.check());
        steps.push(self.replay("replay the transaction"));
    }

    fn other_ways(&self, kind: BlockageKind, steps: &mut Vec<Step>) {
        let policy = match kind {
            BlockageKind::RowMissing => Some("on_missing_row: skip_and_record"),
            BlockageKind::RowDuplicate => Some("on_duplicate: overwrite_and_record"),
            BlockageKind::ConstraintViolation
            | BlockageKind::RowData
            | BlockageKind::SchemaContract
            | BlockageKind::Integrity
            | BlockageKind::Unclassified
            | BlockageKind::LineageLost
            | BlockageKind::LogFull
            | BlockageKind::Failed
            | BlockageKind::Fenced
            | BlockageKind::SlotInUse
            | BlockageKind::Unavailable
            | BlockageKind::Detached
            | BlockageKind::PausedLong
            | BlockageKind::Unknown => None,
        };
        if let Some(policy) = policy {
            steps.push(Step {
                precondition: Some(format!("write {policy} for this flow into the configuration")),
                changes: Some("such rows no longer stop the flow; each leaves evidence".to_owned()),
                ..self.commands.command("or: let such rows pass from now on", &["config", "reload"])
            });
            steps.push(self.replay("and replay under the new rule"));
        }
        steps.push(self.discard());
    }

    fn constraint(&self, steps: &mut Vec<Step>, notes: &mut Vec<String>) {
        let failure = &self.record.failure;
        if let Some(constraint) = &failure.constraint {
            let query = format!(
                "SELECT conrelid::regclass, pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = {}",
                row::quoted(constraint)
            );
            steps.push(self.commands.sql("see the constraint", &self.settings.target.server, &query));
        }
        match failure.sqlstate.as_deref() {
            Some("23505" | "23P01") => self.clear_the_way(steps, notes),
            Some("23502") => self.alter(steps, failure.column.as_deref(), |column| {
                (
                    format!("ALTER COLUMN {column} DROP NOT NULL"),
                    format!("ALTER COLUMN {column} SET NOT NULL"),
                )
            }),
            Some(_) | None => {
                self.look_at_row(steps);
                let constraint = failure.constraint.as_deref();
                self.alter(steps, constraint, |name| {
                    (format!("DROP CONSTRAINT {name}"), format!("ADD CONSTRAINT {name} as step 2 showed it"))
                });
            }
        }
    }

    /// A row of the target holds the value that the transaction brings.
    fn clear_the_way(&self, steps: &mut Vec<Step>, notes: &mut Vec<String>) {
        let Some(image) = &self.record.image else { return };
        let Some(conflicting) = &self.record.conflicting_row else {
            self.look_at_row(steps);
            notes.push(
                "the evidence does not hold the conflicting row: mend it at the target by hand".to_owned(),
            );
            return;
        };
        let key = key_of(conflicting, image);
        self.take_away(&key, conflicting, "take the conflicting row away", image, steps);
    }

    fn row_duplicate(&self, steps: &mut Vec<Step>, notes: &mut Vec<String>) {
        let Some(image) = &self.record.image else { return };
        let whole = self.record.conflicting_row.clone().unwrap_or_default();
        if whole.is_empty() {
            notes.push("note the row that is shown first: the evidence does not hold it".to_owned());
        }
        let key = if image.key.is_empty() { &image.new } else { &image.key };
        self.take_away(key, &whole, "take the target's row away", image, steps);
    }

    /// Shows a row, then removes it; the undo puts back what the evidence holds.
    fn take_away(
        &self,
        key: &[(String, ColumnValue)],
        whole: &[(String, ColumnValue)],
        title: &str,
        image: &ChangeImage,
        steps: &mut Vec<Step>,
    ) {
        let server = &self.settings.target.server;
        let table = row::table(image, self.settings);
        let (Some(select), Some(delete)) = (row::select(&table, key), row::delete(&table, key)) else {
            return;
        };
        let undo = row::insert(&table, whole).map(|sql| self.commands.sql("", server, &sql).text);
        steps.push(self.commands.sql("see the row that stands in the way", server, &select));
        steps.push(Step {
            precondition: Some("nobody owns this row at the target; the source brings its own".to_owned()),
            changes: Some(format!("removes that row from {table}")),
            undo: Some(undo.unwrap_or_else(|| "insert the row again as it was shown".to_owned())),
            ..self.commands.sql(title, server, &delete)
        });
    }

    fn row_missing(&self, steps: &mut Vec<Step>, notes: &mut Vec<String>) {
        self.look_at_row(steps);
        let Some(image) = &self.record.image else { return };
        let table = row::table(image, self.settings);
        let full = if image.old.is_empty() { &image.new } else { &image.old };
        let known = if full.is_empty() { &image.key } else { full };
        let Some(insert) = row::insert(&table, known) else { return };
        let not_sent = row::not_sent(known);
        if !not_sent.is_empty() {
            notes.push(format!("the source did not send {}: take them from there", not_sent.join(", ")));
        }
        let undo = row::delete(&table, &image.key);
        let server = &self.settings.target.server;
        steps.push(Step {
            precondition: Some(
                "the row is missing by mistake, not removed at the target on purpose".to_owned(),
            ),
            changes: Some(format!("adds the row to {table}, as the evidence has it")),
            undo: undo.map(|sql| self.commands.sql("", server, &sql).text),
            ..self.commands.sql("put the missing row there", server, &insert)
        });
    }

    fn look_at_row(&self, steps: &mut Vec<Step>) {
        let Some(image) = &self.record.image else { return };
        let key = if image.key.is_empty() { &image.new } else { &image.key };
        if let Some(select) = row::select(&row::table(image, self.settings), key) {
            steps.push(self.commands.sql("see the row at the target", &self.settings.target.server, &select));
        }
    }

    /// `change` makes the statement and its undo from the quoted name.
    fn alter(&self, steps: &mut Vec<Step>, name: Option<&str>, change: impl Fn(&str) -> (String, String)) {
        if !self.record.failure.remedy.is_empty() {
            return self.remedy(steps);
        }
        let (Some(image), Some(name)) = (&self.record.image, name) else { return };
        let table = row::table(image, self.settings);
        let (statement, undo) = change(&identifier(name));
        let sql = format!("ALTER TABLE {table} {statement}");
        steps.push(Step {
            precondition: Some("the rule is the target's alone; the source does not have it".to_owned()),
            changes: Some(format!("{table} takes what the source sends")),
            undo: Some(format!("ALTER TABLE {table} {undo}")),
            ..self.commands.sql("drop the target's rule", &self.settings.target.server, &sql)
        });
    }

    /// Exact statements from the evidence.
    fn remedy(&self, steps: &mut Vec<Step>) {
        let preflight = self.commands.line(&["preflight", "--flow", &self.commands.flow()]);
        for statement in &self.record.failure.remedy {
            steps.push(Step {
                precondition: Some("the role may alter the table; it may wait for a lock".to_owned()),
                changes: Some("the target's schema".to_owned()),
                proof: Some(preflight.clone()),
                ..self.commands.sql("make the target fit", &self.settings.target.server, statement)
            });
        }
    }

    fn integrity(&self, steps: &mut Vec<Step>, notes: &mut Vec<String>) {
        let lsn = self.record.transaction.commit_lsn.to_string();
        let flow = self.commands.flow();
        steps.push(
            self.commands
                .command("see what the log holds", &["stream", "locate-local", &flow, "--lsn", &lsn]),
        );
        super::conditions::manual_road(self.commands, Some(self.settings), steps, notes);
    }

    fn check(&self) -> Step {
        let words = ["quarantine", "replay", &self.record.id, "--check"];
        self.commands.command("would it apply now? (rolls back)", &words)
    }

    fn replay(&self, title: &str) -> Step {
        Step {
            changes: Some("applies the transaction; the flow goes on behind it".to_owned()),
            undo: None,
            proof: Some(self.commands.proof()),
            ..self.commands.command(title, &["quarantine", "replay", &self.record.id])
        }
    }

    fn discard(&self) -> Step {
        let digest = self.record.digest.to_string();
        let words = [
            "quarantine",
            "discard",
            &self.record.id,
            "--digest",
            &digest[..DIGEST_DIGITS],
            "--reason",
            "WHY",
        ];
        Step {
            precondition: Some(
                "the target must never get this transaction; put the reason for WHY".to_owned(),
            ),
            changes: Some(format!(
                "all {} changes of the transaction are left out for good; its tables count as diverged",
                self.record.changes
            )),
            undo: Some("none".to_owned()),
            proof: Some(self.commands.proof()),
            ..self.commands.command("or: discard the transaction", &words)
        }
    }
}

/// The columns of the conflicting row that find it: those of the change's key, else all.
fn key_of(conflicting: &[(String, ColumnValue)], image: &ChangeImage) -> Vec<(String, ColumnValue)> {
    let named = |column: &str| image.key.iter().any(|(key, _)| key == column);
    let key: Vec<_> = conflicting.iter().filter(|(column, _)| named(column)).cloned().collect();
    if key.is_empty() { conflicting.to_vec() } else { key }
}
