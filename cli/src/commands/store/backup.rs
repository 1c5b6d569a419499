//! `store backup`: while the engine runs.

use anyhow::Context;
use trellara_api::client::Client;
use trellara_api::store::BackupRequest;

use crate::args::store::Backup;
use crate::exit::{Exit, Failure};
use crate::output::{Printer, human};

pub(crate) async fn run(args: &Backup, client: &Client, printer: &Printer) -> Result<Exit, Failure> {
    let directory = std::path::absolute(&args.directory).context("cannot tell the folder's full path")?;
    let request = BackupRequest { directory: directory.display().to_string() };
    let backup = client.backup(&request).await?;
    printer.answer(&backup, |out| {
        writeln!(out, "backed up to {}: {}", backup.directory, human::bytes(backup.bytes))
    })?;
    Ok(Exit::Done)
}
