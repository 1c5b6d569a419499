//! From parsed arguments to an exit code.

use std::future::Future;
use std::io;

use trellara_api::client::Client;

use crate::args::config::Config;
use crate::args::flow::Flow;
use crate::args::quarantine::Quarantine;
use crate::args::store::Store;
use crate::args::{Cli, Command, Global, Repair, Stream};
use crate::commands;
use crate::exit::{Exit, Failure};
use crate::output::Printer;
use crate::settings;

/// Carries a command out and shows what came of it.
pub fn run(cli: Cli) -> Exit {
    let Cli { global, command } = cli;
    let printer = Printer::new(global.output);
    let ended = match command {
        Command::Init(args) => commands::init::run(&global, &args),
        Command::Run => Err(crate::tool::become_engine(&global)),
        Command::Preflight(args) => commands::preflight::run(&global, &args),
        Command::Config(Config::Check) => crate::tool::run(&global, &["config", "check"], &[]),
        Command::Config(Config::Show) => crate::tool::run(&global, &["config", "show"], &[]),
        Command::Store(Store::Inspect(args)) => commands::store::inspect::run(&global, &args),
        Command::Store(Store::Recover(args)) => commands::store::recover::run(&global, &args),
        Command::Completions(args) => commands::completions::run(&args),
        Command::Version => block_on(commands::version::run(&global, &printer)),
        asked @ (Command::Stop
        | Command::Status(_)
        | Command::Flow(_)
        | Command::Quarantine(_)
        | Command::Repair(_)
        | Command::RepairPlan(_)
        | Command::Stream(_)
        | Command::Config(Config::Reload(_))
        | Command::Store(Store::Backup(_))) => {
            client(&global).and_then(|client| block_on(ask(asked, client, &global, &printer)))
        }
    };
    ended.unwrap_or_else(|failure| {
        printer.failure(&failure, &global);
        failure.exit()
    })
}

/// The engine behind the socket that arguments or configuration name.
pub(crate) fn client(global: &Global) -> Result<Client, Failure> {
    let socket = settings::admin_socket(global)?;
    Ok(Client::new(socket, global.timeout).acting_as(global.acting_as.clone()))
}

async fn ask(command: Command, client: Client, global: &Global, printer: &Printer) -> Result<Exit, Failure> {
    match command {
        Command::Stop => commands::stop::run(&client, global, printer).await,
        Command::Status(args) => commands::status::run(&args, &client, printer).await,
        Command::Flow(Flow::List(args)) => commands::flow::list::run(&args, &client, printer).await,
        Command::Flow(Flow::Show(args)) => commands::flow::show::run(&args, &client, global, printer).await,
        Command::Flow(Flow::Events(args)) => commands::flow::events::run(&args, &client, printer).await,
        Command::Flow(Flow::Pause(args)) => commands::flow::pause::run(args, &client, printer).await,
        Command::Flow(Flow::Resume(args)) => commands::flow::resume::run(&args, &client, printer).await,
        Command::Flow(Flow::Restart(args)) => commands::flow::restart::run(&args, &client, printer).await,
        Command::Flow(Flow::Remove(args)) => commands::flow::remove::run(&args, &client, printer).await,
        Command::Quarantine(Quarantine::List(args)) => {
            commands::quarantine::list::run(&args, &client, printer).await
        }
        Command::Quarantine(Quarantine::Show(args)) => {
            commands::quarantine::show::run(&args, &client, printer).await
        }
        Command::Quarantine(Quarantine::Replay(args)) => {
            commands::quarantine::replay::run(&args, &client, printer).await
        }
        Command::Quarantine(Quarantine::Discard(args)) => {
            commands::quarantine::discard::run(args, &client, printer).await
        }
        Command::Repair(Repair::Plan(args)) | Command::RepairPlan(args) => {
            commands::repair_plan::run(&args, &client, printer).await
        }
        Command::Stream(Stream::LocateLocal(args)) => {
            commands::locate_local::run(&args, &client, printer).await
        }
        Command::Config(Config::Reload(args)) => commands::config_reload::run(&args, &client, printer).await,
        Command::Store(Store::Backup(args)) => commands::store::backup::run(&args, &client, printer).await,
        Command::Init(_)
        | Command::Run
        | Command::Preflight(_)
        | Command::Version
        | Command::Completions(_)
        | Command::Config(Config::Check | Config::Show)
        | Command::Store(Store::Inspect(_) | Store::Recover(_)) => {
            unreachable!("carried out without the engine above")
        }
    }
}

fn block_on<T>(command: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error: io::Error| Failure::from(error))?.block_on(command)
}
