//! `trellara-bench-native`: w1, w2 and w3 as catch-up and as drain, beside native logical replication.

use std::io::Write as _;
use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use trellara_benches::backlog::Backlog;
use trellara_benches::contest::{Arena, Times};
use trellara_benches::figure::{self, Figure};

/// Side by side with native logical replication; prints a table and JSON lines.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Counted runs of each workload, after one that warms up.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Only this workload: w1, w2 or w3.
    #[arg(long)]
    only: Option<String>,
}

fn main() -> Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(tracing::Level::WARN).init();
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let figures = runtime.block_on(measure(&arguments))?;
    let mut output = std::io::stdout().lock();
    write!(output, "\n{}\n", figure::table(&figures))?;
    for figure in &figures {
        writeln!(output, "{}", serde_json::to_string(figure)?)?;
    }
    Ok(())
}

async fn measure(arguments: &Arguments) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for backlog in Backlog::ALL {
        if arguments.only.as_deref().is_some_and(|only| only != backlog.name()) {
            continue;
        }
        let arena = Arena::create().await?;
        let mut times = Vec::new();
        for number in 0..=arguments.runs {
            let run = arena.run(backlog, usize::try_from(number)?).await?;
            tell(backlog, number, &run)?;
            if number > 0 {
                times.push(run);
            }
        }
        figures.extend(figures_of(backlog, &times));
    }
    Ok(figures)
}

fn tell(backlog: Backlog, number: u32, run: &Times) -> Result<()> {
    let what = if number == 0 { "warm-up".to_owned() } else { format!("run {number}") };
    writeln!(
        std::io::stdout().lock(),
        "{} {what}: raw {:.2} s, native {:.2} s, catch-up {:.2} s, drain {:.2} s",
        backlog.name(),
        run.raw.as_secs_f64(),
        run.native.as_secs_f64(),
        run.catch_up.as_secs_f64(),
        run.drain.as_secs_f64()
    )?;
    Ok(())
}

fn figures_of(backlog: Backlog, times: &[Times]) -> [Figure; 3] {
    let (receive, catch_up, drain) = match backlog {
        Backlog::W1 => (0.8, 1.3, 4.5),
        Backlog::W2 => (0.7, 2.0, 3.5),
        Backlog::W3 => (0.8, 1.3, 4.5),
    };
    let of = |time: fn(&Times) -> Duration| times.iter().map(time).collect::<Vec<_>>();
    let (raw, native) = (of(|run| run.raw), of(|run| run.native));
    let id = |target: &str| format!("{target}/{}", backlog.name());
    [
        Figure::of(id("P1"), "raw receive", &of(|run| run.catch_up), &raw, receive),
        Figure::of(id("P2"), "native, catch-up", &of(|run| run.catch_up), &native, catch_up),
        Figure::of(id("P3"), "native catch-up, ours drained", &of(|run| run.drain), &native, drain),
    ]
}
