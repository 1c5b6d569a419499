//! `stop`: asks for shutdown and waits until the socket is gone.

use std::time::Duration;

use tokio::time::{sleep, timeout};
use trellara_api::client::{self, Client};

use crate::args::Global;
use crate::exit::{Exit, Failure};
use crate::output::Printer;

const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

pub(crate) async fn run(client: &Client, global: &Global, printer: &Printer) -> Result<Exit, Failure> {
    let stopping = client.stop().await?;
    let gone = async {
        while !matches!(client.version().await, Err(client::Error::Unreachable { .. })) {
            sleep(BETWEEN_LOOKS).await;
        }
    };
    timeout(global.timeout, gone).await.map_err(|_| client::Error::TimedOut { timeout: global.timeout })?;
    printer.answer(&stopping, |out| writeln!(out, "engine stopped (process {})", stopping.pid))?;
    Ok(Exit::Done)
}
