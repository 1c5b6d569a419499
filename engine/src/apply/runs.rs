//! Which changes may share a set-based statement, and in which order the statements go.
//!
//! Several runs are open at once; each is one statement in the making. The rule that keeps the result that
//! of source order: a change may only join, or open a run beside, runs that it commutes with. Changes
//! commute when they belong to different tables, or to different rows of a table that no other unique
//! index ties together, and nothing at the target fires on them. Whatever is in doubt is applied alone,
//! behind everything open that it could meet. The row order inside one statement is the plan's, never ours.
//!
//! Pure: no rows and no SQL here, only what a change touches.

use std::collections::HashSet;

/// A run holds at most this many rows; longer ones gain nothing more.
pub(super) const MAX_ROWS: usize = 2_000;

/// What the planner needs to know of one change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Footprint {
    /// The target table.
    pub(super) table: u32,
    /// Relation version and lookup: rows are named alike only inside one.
    pub(super) mapping: usize,
    /// Operation and set of columns: what one statement can do.
    pub(super) form: usize,
    /// Name of the row by its lookup columns (a hash), where it has one.
    pub(super) row: Option<u64>,
    /// Cannot share a statement: a key change, a whole-row lookup, a touched unique column.
    pub(super) alone: bool,
    /// Nothing fires on the table and no constraint is checked there but its own indexes.
    pub(super) free: bool,
    /// Other unique indexes than the one that rows are found by tie rows of the table together.
    pub(super) tied: bool,
}

/// Where a change goes, after the flushed runs were sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Into this open run.
    Join(usize),
    /// Into a new run of this number.
    Open(usize),
    /// A statement of its own, sent at once.
    Alone,
}

#[derive(Debug)]
struct Open {
    number: usize,
    table: u32,
    mapping: usize,
    form: usize,
    free: bool,
    rows: HashSet<u64>,
    length: usize,
}

/// The open runs of one target transaction, in the order in which they were opened.
#[derive(Debug, Default)]
pub(super) struct Planner {
    open: Vec<Open>,
    next: usize,
}

impl Planner {
    /// Decides where a change goes. Runs in `flushed` must be sent before it, in that order.
    pub(super) fn place(&mut self, change: &Footprint, flushed: &mut Vec<usize>) -> Place {
        if change.free {
            self.close(flushed, |run| !run.free || (run.table == change.table && run.clashes(change)));
        } else {
            self.close(flushed, |run| run.form != change.form || run.clashes(change));
        }
        if change.alone {
            self.close(flushed, |run| run.table == change.table || !change.free);
            return Place::Alone;
        }
        let same = self.open.iter_mut().find(|run| run.form == change.form);
        if let Some(run) = same {
            run.add(change);
            return Place::Join(run.number);
        }
        let number = self.next;
        self.next += 1;
        let mut run = Open {
            number,
            table: change.table,
            mapping: change.mapping,
            form: change.form,
            free: change.free,
            rows: HashSet::new(),
            length: 0,
        };
        run.add(change);
        self.open.push(run);
        Place::Open(number)
    }

    /// Whether the run has reached its length; if so it is closed, and is to be sent now.
    pub(super) fn filled(&mut self, number: usize) -> bool {
        let full = |run: &Open| run.number == number && run.length >= MAX_ROWS;
        let before = self.open.len();
        self.open.retain(|run| !full(run));
        self.open.len() < before
    }

    /// Closes everything, in order.
    pub(super) fn flush(&mut self, flushed: &mut Vec<usize>) {
        self.close(flushed, |_| true);
    }

    /// Closing a run closes every run of its table, so that their order among themselves stays.
    fn close(&mut self, flushed: &mut Vec<usize>, closing: impl Fn(&Open) -> bool) {
        let tables: Vec<u32> = self.open.iter().filter(|run| closing(run)).map(|run| run.table).collect();
        self.open.retain(|run| {
            let closes = tables.contains(&run.table);
            if closes {
                flushed.push(run.number);
            }
            !closes
        });
    }
}

impl Open {
    /// Same table: whether the change may not be moved past this run's rows.
    fn clashes(&self, change: &Footprint) -> bool {
        let same_row = change.row.is_none_or(|row| self.rows.contains(&row));
        let same_form = self.form == change.form;
        // Rows without a name are only ever inserted, and inserts of one statement do not meet.
        let unnamed_together = change.row.is_none() && same_form && !change.alone;
        self.mapping != change.mapping || (change.tied && !same_form) || (same_row && !unnamed_together)
    }

    fn add(&mut self, change: &Footprint) {
        self.length += 1;
        self.rows.extend(change.row);
    }
}

#[cfg(test)]
mod tests;
