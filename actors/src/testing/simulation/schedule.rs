//! One seeded schedule: a flow under load and faults, healed at the end, with the oracles watching.

use std::time::Duration;

use trellara_storage::Lsn;
use trellara_storage::families::flows;
use trellara_storage::memory::Keep;
use trellara_storage::records::{Durable, FlowPart, QuarantineRecord};

use super::engine::{Engine, FLOW};
use super::executor::{Executor, SimClock};
use super::oracle::{self, Violation};
use super::source::{Committed, SimSource};
use super::target::{Flaws, SimTarget};
use crate::ports::Clock;

const HEALING: Duration = Duration::from_secs(600);

/// Defects planted into the world around the drivers, to show that an oracle fires. None by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Plant {
    /// Syncs report success and sync nothing.
    pub lying_disk: bool,
    /// Evidence is reported written and is not.
    pub lost_evidence: bool,
    /// A source with another history claims that its slot stands where the engine stands.
    pub lying_slot: bool,
    pub target: Flaws,
}

/// What a schedule exercised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exercised {
    pub transactions: usize,
    pub effects: usize,
    pub crashes: usize,
    pub quarantined: usize,
    pub other_histories: usize,
    pub lineages_lost: usize,
    pub fenced: usize,
    pub stores_lost: usize,
    pub adopted: usize,
    /// The most transactions that one connection dropped as received before.
    pub redelivered: u64,
    /// Logged transactions in parts that took effect.
    pub chunked: usize,
    /// Schedules in which everything reached the target.
    pub arrived: usize,
}

struct Schedule {
    executor: Executor,
    clock: SimClock,
    source: SimSource,
    target: SimTarget,
    engines: Vec<Engine>,
    /// Engines so far; each has its own number and store.
    installed: u8,
    plant: Plant,
    /// What a replaced history had held beyond the common part.
    replaced: Option<Vec<Committed>>,
    exercised: Exercised,
}

/// Runs the schedule of this seed.
///
/// # Errors
/// The first invariant that did not hold.
pub fn run(seed: u64, plant: Plant) -> Result<Exercised, Violation> {
    let mut schedule = Schedule::new(seed, plant);
    let rounds = 4 + schedule.below(8);
    let replaced_in = schedule.executor.random().one_in(6).then(|| schedule.clock.below(rounds));
    for round in 0..rounds {
        schedule.round()?;
        if replaced_in == Some(round) || (plant.lying_slot && round == 3) {
            schedule.replace_history();
        }
    }
    schedule.heal()?;
    let mut exercised = schedule.exercised;
    exercised.transactions = schedule.source.state().history.len();
    exercised.effects = schedule.target.state().effects.len();
    exercised.chunked = schedule.target.state().chunked;
    Ok(exercised)
}

impl Schedule {
    fn new(seed: u64, plant: Plant) -> Self {
        let mut executor = Executor::new(seed);
        let clock = executor.clock().clone();
        let source = SimSource::new(clock.clone());
        let target = SimTarget::new(std::sync::Arc::default(), clock.clone());
        target.state().flaws = plant.target;
        let count = if executor.random().one_in(4) { 2 } else { 1 };
        let exercised = Exercised::default();
        let engines = Vec::new();
        let mut schedule =
            Self { executor, clock, source, target, engines, installed: 0, plant, replaced: None, exercised };
        schedule.engines = (0..count).map(|_| schedule.install()).collect();
        schedule
    }

    /// An engine with an empty store.
    fn install(&mut self) -> Engine {
        self.installed += 1;
        let loses_evidence = self.plant.lost_evidence;
        Engine::new(self.installed, &self.source, &self.target, &self.clock, loses_evidence)
    }

    fn below(&mut self, below: u64) -> u64 {
        self.executor.random().below(below)
    }

    fn index(&mut self, below: usize) -> usize {
        self.executor.random().index(below)
    }

    fn one_in(&mut self, chances: u64) -> bool {
        self.executor.random().one_in(chances)
    }

    fn round(&mut self) -> Result<(), Violation> {
        for _ in 0..self.below(5) {
            self.commit();
        }
        if self.one_in(3) {
            self.source.write_elsewhere();
        }
        let trouble = if self.one_in(2) { 2 + self.below(6) } else { 0 };
        self.target.state().trouble = trouble;
        for engine in 0..self.engines.len() {
            if !self.engines[engine].is_running() && (engine == 0 || self.one_in(3)) {
                self.start(engine);
            }
        }
        let long = if self.one_in(5) { 60_000 } else { 4_000 };
        let time = Duration::from_millis(10 + self.below(long));
        self.run(time)?;
        self.fault()
    }

    fn commit(&mut self) {
        self.source.commit();
        if self.one_in(8) {
            let row = self.source.state().history.last().and_then(|last| last.rows.last().copied());
            self.target.state().poison.extend(row);
        }
    }

    fn start(&mut self, engine: usize) {
        self.engines[engine].start(&mut self.executor);
        if self.plant.lying_disk {
            self.engines[engine].store.ignore_syncs();
        }
    }

    fn fault(&mut self) -> Result<(), Violation> {
        let engine = self.index(self.engines.len());
        match self.below(10) {
            0..=2 => self.crash(engine)?,
            3 => self.source.cut(),
            4 => self.source.crash(),
            5 => self.source.checkpoint(),
            6 => self.engines[engine].store.fail_next_sync(),
            7 => self.target.thaw(),
            8 if self.one_in(3) => self.lose_store(engine)?,
            _ => {}
        }
        Ok(())
    }

    /// The engine's machine is gone; another takes its place with nothing.
    fn lose_store(&mut self, engine: usize) -> Result<(), Violation> {
        self.crash(engine)?;
        self.note(engine);
        self.exercised.stores_lost += 1;
        self.engines[engine] = self.install();
        Ok(())
    }

    /// The engine's process ends; the disk keeps what it likes of what was not synced.
    fn crash(&mut self, engine: usize) -> Result<(), Violation> {
        let unsynced = self.engines[engine].store.unsynced_bytes();
        let keep = match self.below(3) {
            0 => Keep::Synced,
            1 => Keep::Everything,
            _ => Keep::Bytes(self.index(unsynced + 1)),
        };
        self.crash_keeping(engine, keep)
    }

    fn crash_keeping(&mut self, engine: usize, keep: Keep) -> Result<(), Violation> {
        self.exercised.crashes += 1;
        if self.replaced.is_none() {
            oracle::no_false_alarm(&self.engines[engine].ends())?;
        }
        self.engines[engine].crash(&mut self.executor, keep);
        let confirmed = self.source.state().confirmed_by.get(&self.engines[engine].number).copied();
        oracle::durability(&self.engines[engine].store, FLOW, confirmed)
    }

    /// Lets time pass, with the content oracle watching every effect, and answers what needs an answer.
    fn run(&mut self, time: Duration) -> Result<(), Violation> {
        let until = self.clock.elapsed() + time;
        while self.clock.elapsed() < until {
            let left = until - self.clock.elapsed();
            self.watch(left, |_| false)?;
            if !self.attend()? {
                return Ok(());
            }
        }
        Ok(())
    }

    fn watch(&mut self, time: Duration, done: impl Fn(&SimTarget) -> bool) -> Result<bool, Violation> {
        let Self { executor, engines, source, target, replaced, .. } = self;
        let mut violation = None;
        let mut seen = usize::MAX;
        let held = executor.run(time, || {
            let effects = target.state().effects.len();
            if effects != seen {
                seen = effects;
                violation = check(source, target, replaced.as_deref()).err();
            }
            violation.is_some() || engines.iter().any(Engine::needs_attention) || done(target)
        });
        check(source, target, replaced.as_deref())?;
        violation.map_or(Ok(held), Err)
    }

    /// What an operator or a service manager does; false when there was nothing to do.
    fn attend(&mut self) -> Result<bool, Violation> {
        let mut attended = false;
        for engine in 0..self.engines.len() {
            if !self.engines[engine].needs_attention() {
                continue;
            }
            attended = true;
            let (unexplained, quarantined, orphan_slot) = {
                let mut ends = self.engines[engine].ends();
                (ends.unexplained.take(), ends.quarantined.take(), ends.orphan_slot)
            };
            if let Some(what) = unexplained {
                return Err(Violation { invariant: "unexplained", what });
            }
            if let Some(record) = quarantined {
                self.exercised.quarantined += 1;
                self.crash_quarantined(engine, &record)?;
            } else {
                self.crash(engine)?;
            }
            if orphan_slot {
                self.drop_orphan(engine);
            }
            self.start(engine);
        }
        Ok(attended)
    }

    fn crash_quarantined(&mut self, engine: usize, record: &QuarantineRecord) -> Result<(), Violation> {
        self.engines[engine].crash(&mut self.executor, Keep::Synced);
        oracle::evidence(&self.engines[engine].store, record.transaction)?;
        self.crash_keeping(engine, Keep::Synced)?;
        let replay = self.one_in(2);
        if replay {
            self.target.state().poison.clear();
        }
        self.engines[engine].decide(record, replay);
        Ok(())
    }

    /// Nobody has a record of the slot, so nothing was confirmed through it.
    fn drop_orphan(&mut self, engine: usize) {
        let recorded: Option<Durable> = flows::get(&*self.engines[engine].store, FLOW, FlowPart::Durable)
            .expect("the memory store reads");
        if recorded.is_none() && self.target.state().row.is_none() {
            self.source.drop_slot();
        }
    }

    fn replace_history(&mut self) {
        let before = self.source.state().history.clone();
        if self.replaced.is_some() || before.is_empty() {
            return;
        }
        let keep = self.index(before.len());
        self.source.replace_history(keep);
        self.replaced = Some(before[keep..].to_vec());
        self.exercised.other_histories += 1;
        if self.plant.lying_slot {
            let durable: Option<Durable> =
                flows::get(&*self.engines[0].store, FLOW, FlowPart::Durable).expect("the memory store reads");
            self.source.state().lies_about_slot = durable.map(|durable| durable.progress.position);
        }
    }

    /// Everything works again: one engine goes on, and what was committed has to arrive.
    fn heal(&mut self) -> Result<(), Violation> {
        self.target.state().trouble = 0;
        for engine in 1..self.engines.len() {
            self.note(engine);
            self.crash(engine)?;
        }
        self.engines.truncate(1);
        if self.one_in(2) {
            self.crash(0)?;
        }
        if !self.engines[0].is_running() {
            self.start(0);
        }
        for _ in 0..2 {
            self.commit();
        }
        let last = self.source.state().history.last().map_or(Lsn::ZERO, |last| last.commit_lsn);
        let arrived = move |target: &SimTarget| {
            target.state().row.as_ref().is_some_and(|row| row.applied.commit_lsn >= last)
        };
        let until = self.clock.elapsed() + HEALING;
        while self.clock.elapsed() < until {
            let left = until - self.clock.elapsed();
            self.watch(left, arrived)?;
            if !self.attend()? && arrived(&self.target) {
                break;
            }
        }
        self.note(0);
        self.arrived(arrived(&self.target))
    }

    fn arrived(&mut self, arrived: bool) -> Result<(), Violation> {
        let excused = {
            let ends = self.engines[0].ends();
            ends.fenced || ends.lineage_lost.is_some() || ends.target_lost.is_some()
        };
        if !arrived && !excused {
            let row = self.target.state().row.clone();
            let what = format!("not everything arrived, the checkpoint stands at {row:?}");
            return Err(Violation { invariant: "I5", what });
        }
        self.exercised.arrived = usize::from(arrived);
        self.crash(0)
    }

    fn note(&mut self, engine: usize) {
        let tally = self.engines[engine].tally();
        self.exercised.adopted += tally.adopted;
        self.exercised.redelivered = self.exercised.redelivered.max(tally.redelivered);
        let ends = self.engines[engine].ends();
        self.exercised.fenced += usize::from(ends.fenced);
        self.exercised.lineages_lost += usize::from(ends.lineage_lost.is_some());
    }
}

/// With another history in place, only the common part is promised; the rest must not be mixed.
fn check(source: &SimSource, target: &SimTarget, replaced: Option<&[Committed]>) -> Result<(), Violation> {
    let (source, target) = (source.state(), target.state());
    let Some(lost) = replaced else { return oracle::content(&source.history, source.start, &target) };
    let first = lost.first().map_or(Lsn::MAX, |first| first.commit_lsn);
    let common = source.history.iter().take_while(|committed| committed.commit_lsn < first);
    let common: Vec<Committed> = common.filter(|committed| !is_other(committed)).cloned().collect();
    let other: Vec<Committed> =
        source.history.iter().filter(|committed| is_other(committed)).cloned().collect();
    oracle::content(&common, source.start, &target)?;
    oracle::one_history(lost, &other, &target)
}

/// Rows of a replaced history are numbered from a million on.
fn is_other(committed: &Committed) -> bool {
    committed.rows.iter().any(|row| *row >= 1_000_000)
}
