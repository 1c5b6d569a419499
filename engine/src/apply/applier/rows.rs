//! Inserts, updates and deletes: gathered into runs, or sent one by one.

use std::sync::Arc;

use trellara_actors::failure::{Code, Place};
use trellara_actors::ports::FlowLog;
use trellara_storage::records::Operation;

use super::super::change::Routed;
use super::super::runs;
use super::super::statement::{Form, Statement, is_fixed};
use super::*;
use crate::contract::Lookup;
use crate::settings::RowPolicy;

/// Rows of one statement, waiting.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) mapped: Arc<Mapped>,
    pub(super) statement: Arc<Statement>,
    operation: Operation,
    arrays: Vec<ArrayText>,
    rows: u64,
    /// First change, and its member while all rows are of one.
    first: u64,
    member: Option<usize>,
}

impl Run {
    fn new(mapped: &Arc<Mapped>, routed: &Routed<'_>, member: usize, first: u64) -> Self {
        let arrays = routed.statement.inputs.iter().map(|input| ArrayText::new(input.delimiter)).collect();
        Self {
            mapped: Arc::clone(mapped),
            statement: Arc::clone(&routed.statement),
            operation: routed.operation,
            arrays,
            rows: 0,
            first,
            member: Some(member),
        }
    }

    fn push(&mut self, routed: &Routed<'_>, member: usize) -> Result<(), Misfit> {
        self.rows += 1;
        self.member = self.member.filter(|first| *first == member);
        let arrays = &mut self.arrays;
        routed.values(&self.mapped, |n, value| arrays[n].push(value))
    }

    fn bytes(&self) -> usize {
        self.arrays.iter().map(ArrayText::bytes).sum()
    }
}

impl<L: FlowLog> Applier<'_, L> {
    /// Set-based: into a run, behind the runs that must go first.
    pub(super) async fn place(
        &mut self,
        mapped: &Arc<Mapped>,
        operation: Operation,
        body: &[u8],
    ) -> Result<(), Stop> {
        let routed = self.routed(mapped, operation, body, false)?;
        let mut flushed = Vec::new();
        let place = self.planner.place(&routed.footprint, &mut flushed);
        for number in flushed {
            self.send_run(number).await?;
        }
        match place {
            runs::Place::Alone => {
                let run = self.run_of_one(mapped, &routed)?;
                self.send(run, None).await
            }
            runs::Place::Open(number) => {
                let run = self.run_of_one(mapped, &routed)?;
                self.buffered += run.bytes();
                self.runs.insert(number, run);
                self.send_if_full(number).await
            }
            runs::Place::Join(number) => {
                self.join(number, &routed)?;
                self.send_if_full(number).await
            }
        }
    }

    /// Change by change: what the target says to this one statement counts.
    pub(super) async fn single(
        &mut self,
        mapped: &Arc<Mapped>,
        operation: Operation,
        body: &[u8],
    ) -> Result<(), Stop> {
        let overwrites = operation == Operation::Insert
            && self.means.settings.on_duplicate == RowPolicy::Record
            && matches!(mapped.mapping.lookup, Lookup::Key(_));
        let routed = self.routed(mapped, operation, body, overwrites)?;
        let copy = self.copy(mapped, operation, body);
        let run = self.run_of_one(mapped, &routed)?;
        if overwrites {
            return self.insert_or_overwrite(mapped, routed, run, copy).await;
        }
        self.send(run, copy).await
    }

    pub(super) async fn flush(&mut self) -> Result<(), Stop> {
        let mut flushed = Vec::new();
        self.planner.flush(&mut flushed);
        for number in flushed {
            self.send_run(number).await?;
        }
        Ok(())
    }

    /// An insert that finds its row there already becomes an update of it, and is recorded.
    async fn insert_or_overwrite(
        &mut self,
        mapped: &Arc<Mapped>,
        routed: Routed<'_>,
        run: Run,
        copy: Option<Box<ChangeCopy>>,
    ) -> Result<(), Stop> {
        if self.rows_met(run, copy.clone()).await? == 1 {
            return Ok(());
        }
        let keys = |at: &usize| matches!(&mapped.mapping.lookup, Lookup::Key(keys) if keys.contains(at));
        let set = (0..mapped.mapping.columns.len()).filter(|at| !keys(at) && !is_fixed(mapped.target(*at)));
        let update = mapped.statement(&Form::Update { set: set.collect() });
        let update = self.run_of_one(mapped, &routed.with(update))?;
        if self.rows_met(update, copy.clone()).await? == 1 {
            let note = self.note(Expects::Anything, copy);
            self.overwritten.push(note);
            return Ok(());
        }
        // Another unique index stands in the way, or a trigger does: the plain insert says which.
        let plain = self.run_of_one(mapped, &routed.with(mapped.insert(false)))?;
        self.send(plain, copy).await
    }

    async fn rows_met(&mut self, run: Run, copy: Option<Box<ChangeCopy>>) -> Result<u64, Stop> {
        let note = self.note(Expects::Anything, copy);
        self.execute(note, &run.mapped, &run.statement, run.arrays).await?;
        self.flight.settle_last().await
    }

    fn routed<'b>(
        &mut self,
        mapped: &Arc<Mapped>,
        operation: Operation,
        body: &'b [u8],
        tolerant: bool,
    ) -> Result<Routed<'b>, Stop> {
        let routed = route(mapped, operation, body, tolerant)
            .and_then(|routed| {
                if mapped.recheck {
                    recheck::note(&mut self.written, mapped, &routed)?;
                }
                Ok(routed)
            })
            .map_err(|misfit| self.misfit(misfit, mapped, operation, body))?;
        Ok(routed)
    }

    fn misfit(&self, misfit: Misfit, mapped: &Arc<Mapped>, operation: Operation, body: &[u8]) -> Stop {
        let note = self.note(Expects::Anything, self.copy(mapped, operation, body));
        Stop::new(note, Cause::Misfit(misfit))
    }

    fn run_of_one(&self, mapped: &Arc<Mapped>, routed: &Routed<'_>) -> Result<Run, Stop> {
        let mut run = Run::new(mapped, routed, self.member, self.change);
        run.push(routed, self.member).map_err(|misfit| self.stop(Cause::Misfit(misfit)))?;
        Ok(run)
    }

    fn join(&mut self, number: usize, routed: &Routed<'_>) -> Result<(), Stop> {
        let run = self.runs.get_mut(&number).expect("the planner joins open runs");
        let before = run.bytes();
        let pushed = run.push(routed, self.member);
        self.buffered += run.bytes() - before;
        pushed.map_err(|misfit| self.stop(Cause::Misfit(misfit)))
    }

    async fn send_if_full(&mut self, number: usize) -> Result<(), Stop> {
        if self.planner.filled(number) {
            self.send_run(number).await?;
        }
        if self.buffered > MAX_BUFFERED {
            self.flush().await?;
        }
        Ok(())
    }

    async fn send_run(&mut self, number: usize) -> Result<(), Stop> {
        let run = self.runs.remove(&number).expect("the planner flushes open runs once");
        self.buffered -= run.bytes();
        self.send(run, None).await
    }

    async fn send(&mut self, run: Run, change: Option<Box<ChangeCopy>>) -> Result<(), Stop> {
        let (otherwise, tolerated) = match run.operation {
            Operation::Insert => (Code::RowSuppressed, false),
            Operation::Update | Operation::Delete | Operation::Truncate | Operation::Message => {
                (Code::RowMissing, self.means.settings.on_missing_row == RowPolicy::Record)
            }
        };
        let named = change.is_some();
        let expects = Expects::Rows { count: run.rows, otherwise, tolerated: tolerated && named };
        let note = Note { place: Place::Change(run.first), member: run.member, expects, change };
        self.execute(note, &run.mapped, &run.statement, run.arrays).await
    }

    async fn execute(
        &mut self,
        note: Note,
        mapped: &Mapped,
        statement: &Statement,
        arrays: Vec<ArrayText>,
    ) -> Result<(), Stop> {
        let prepared = match self.means.prepared.get(&statement.sql) {
            Some(prepared) => prepared,
            None => {
                self.switch_encoding(UTF8).await?;
                match within(self.means.prepared.prepare(self.means.client, &statement.sql)).await {
                    Ok(prepared) => prepared,
                    Err(cause) => {
                        let stop = Stop::new(note, cause);
                        return Err(self.flight.first_failure(stop).await);
                    }
                }
            }
        };
        self.switch_encoding(&mapped.mapping.relation.encoding).await?;
        self.flight.execute(note, prepared, arrays).await
    }
}
