//! One run: carries out the steps of a scenario, judges, cleans up, and looks whether it did.
//!
//! The first step that cannot be carried out ends the story, counts as failed, and everything is still cleaned up.

mod fault;
mod kills;
mod memory;
mod other;
mod repair;
mod verdict;

use anyhow::{Context as _, Result, ensure};
use rand::SeedableRng as _;
use rand::rngs::StdRng;

use crate::cli::Cli;
use crate::engine::Engine;
use crate::fleet::Fleet;
use crate::latency::Probes;
use crate::leftovers::Surroundings;
use crate::report::Report;
use crate::sandbox::Sandbox;
use crate::spec::{FleetSpec, Run, Spec, StartProbes, Step, Wait, seconds};
use crate::workload::Workload;

/// Stands for the configuration's path in what is shown, which would only distract there.
const SHOWN_PROGRAM: &str = "trellara";

/// Everything that runs during a scenario. Fields drop in order: load first, the folder last.
struct Scene {
    load: Option<Workload>,
    probes: Option<Probes>,
    cutting: tokio::task::JoinSet<()>,
    cli: Cli,
    engine: Engine,
    /// Engines that the steps are not about just now, by name.
    others: other::Others,
    memory: Option<memory::Memory>,
    fleet: Fleet,
    surroundings: Surroundings,
    sandbox: Sandbox,
    random: StdRng,
    seed: u64,
    spec: FleetSpec,
}

/// Runs a scenario to its end. True when every oracle passed.
pub async fn scenario(spec: Spec) -> bool {
    let mut report = Report::new();
    let seed = spec.seed.unwrap_or_else(|| u64::from(rand::random::<u32>()));
    report.heading(&format!("{}: {}", spec.name, spec.about));
    report.say(format!("seed {seed} (replay with --seed {seed})"));
    match Scene::set(spec.fleet, seed, &report).await {
        Ok(mut scene) => {
            for step in &spec.steps {
                if let Err(error) = scene.play(step, &mut report).await {
                    report.check("the story goes on", false, format!("{error:#}"));
                    report.command("tail engine.log", &scene.engine.log_tail());
                    break;
                }
            }
            scene.clear(&mut report).await;
        }
        Err(error) => report.check("the scene is set", false, format!("{error:#}")),
    }
    report.close()
}

impl Scene {
    async fn set(spec: FleetSpec, seed: u64, report: &Report) -> Result<Self> {
        let sandbox = Sandbox::create()?;
        let surroundings = Surroundings::look(sandbox.path());
        report.say(format!(
            "starting {} source clusters and a target for {} stores in {}",
            spec.clusters,
            spec.stores,
            sandbox.path().display()
        ));
        let fleet = Fleet::create(&sandbox, spec).await?;
        let engine = Engine::configure(&sandbox, other::FIRST, &fleet.configuration())?;
        let cli = Cli::new(engine.configuration(), engine.folder())?;
        let random = StdRng::seed_from_u64(seed);
        let cutting = tokio::task::JoinSet::new();
        Ok(Self {
            load: None,
            probes: None,
            cutting,
            cli,
            engine,
            others: other::Others::default(),
            memory: None,
            fleet,
            surroundings,
            sandbox,
            random,
            seed,
            spec,
        })
    }

    async fn play(&mut self, step: &Step, report: &mut Report) -> Result<()> {
        match step {
            Step::Say(text) => report.heading(text),
            Step::StartEngine => self.engine.start().await?,
            Step::StopEngine => self.engine.stop().await?,
            Step::KillEngine => self.engine.kill()?,
            Step::UseEngine(name) => self.use_engine(name)?,
            Step::LoseData => self.engine.lose_data()?,
            Step::NoteMemory => self.note_memory(report)?,
            Step::CheckMemory(check) => self.check_memory(check, report)?,
            Step::StartLoad => {
                let stores = &self.fleet.stores;
                self.load = Some(Workload::start(stores, self.seed, self.spec.transactions_per_second));
            }
            Step::StopLoad => self.stop_load(report).await?,
            Step::Wait(wait) => self.wait(wait, report).await?,
            Step::Run(run) => self.run(run, report).await?,
            Step::AtSource(step) => self.at_source(step).await?,
            Step::AtTarget(sql) => self.at_target(sql).await?,
            Step::SourceShows(step) => self.source_shows(step, report).await?,
            Step::TargetShows(step) => self.target_shows(step, report).await?,
            Step::RestartSource(step) => self.restart_source(step, report).await?,
            Step::StopTarget => self.stop_target().await?,
            Step::StartTarget => self.start_target().await?,
            Step::KeepCutting(store) => self.keep_cutting(store)?,
            Step::StopCutting => self.cutting.shutdown().await,
            Step::FillDisk => self.fill_disk()?,
            Step::FreeDisk => self.free_disk()?,
            Step::StartProbes(probes) => self.start_probes(probes)?,
            Step::Progress(progress) => self.progress(progress, report).await?,
            Step::CheckProbes(check) => self.check_probes(check, report).await?,
            Step::Repair(repair) => self.repair(repair, report).await?,
            Step::Kills(kills) => self.kill_at_random(kills, report).await?,
            Step::Compare(compare) => self.compare(compare, report).await?,
        }
        Ok(())
    }

    async fn stop_load(&mut self, report: &Report) -> Result<()> {
        let load = self.load.take().context("no load to stop")?;
        report.say(format!("load stopped after {} transactions", load.stop().await?));
        Ok(())
    }

    async fn wait(&self, wait: &Wait, report: &mut Report) -> Result<()> {
        let stores = if wait.stores.is_empty() { "all stores".to_owned() } else { wait.stores.join(", ") };
        self.engine.wait_for(&wait.stores, wait.phase, seconds(wait.within_seconds)).await?;
        report.check(&stores, true, wait.phase);
        Ok(())
    }

    async fn run(&self, run: &Run, report: &mut Report) -> Result<()> {
        let arguments: Vec<&str> = run.command.split_whitespace().collect();
        let output = self.cli.run(&arguments).await?;
        report.command(&format!("{SHOWN_PROGRAM} {}", run.command), &output.text());
        ensure!(output.code == Some(run.exit), "exit code {:?}, expected {}", output.code, run.exit);
        for text in &run.shows {
            report.check(&format!("it shows `{text}`"), output.stdout.contains(text), &run.command);
        }
        for text in &run.lacks {
            report.check(&format!("it does not show `{text}`"), !output.stdout.contains(text), &run.command);
        }
        Ok(())
    }

    fn start_probes(&mut self, probes: &StartProbes) -> Result<()> {
        for store in &probes.except {
            self.fleet.named(store)?;
        }
        let stores = self.fleet.stores.iter().filter(|store| !probes.except.contains(&store.id));
        self.probes = Some(Probes::start(stores));
        Ok(())
    }

    /// Ends everything, whatever state it is in, and looks whether anything is left.
    async fn clear(mut self, report: &mut Report) {
        report.heading("cleaning up");
        self.cutting.shutdown().await;
        if let Some(load) = self.load.take() {
            report.outcome("load ended", load.stop().await);
        }
        if let Some(probes) = self.probes.take() {
            report.outcome("probes ended", probes.stop().await);
        }
        self.check_log(report);
        let mut processes = self.engine.processes();
        processes.extend(self.others.processes());
        processes.extend(self.fleet.processes());
        let outside = self.surroundings.written_outside(&processes);
        report.check(
            "no file outside the folder is open for writing",
            outside.is_empty(),
            verdict::list(&outside),
        );
        if !self.engine.processes().is_empty() {
            report.outcome("the engine stops when asked to", self.engine.stop().await);
        }
        self.others.stop(report).await;
        report.outcome("every server stops when asked to", self.fleet.stop().await);
        let Self { engine, others, fleet, surroundings, sandbox, .. } = self;
        drop((engine, others, fleet));
        let left = surroundings.processes(sandbox.sweeper_pid());
        report.check("no process is left", left.is_empty(), verdict::list(&left));
        drop(sandbox);
        let folder = if surroundings.sandbox_exists() { "still there" } else { "removed" };
        report.check("no file is left", !surroundings.sandbox_exists(), folder);
        let appeared = surroundings.appeared();
        report.check("nothing appeared beside the run", appeared.is_empty(), verdict::list(&appeared));
    }

    fn check_log(&self, report: &mut Report) {
        let log = self.engine.log() + &self.others.logs();
        let panics: Vec<&str> = log.lines().filter(|line| line.contains("panicked at")).collect();
        report.check("no panic in the engine's log", panics.is_empty(), verdict::list(&panics));
    }
}
