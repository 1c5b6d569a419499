//! `flow resume`.

use trellara_api::client::Client;
use trellara_api::flow::ResumeRequest;

use super::{chosen, show_outcomes};
use crate::args::flow::Resume;
use crate::exit::{Exit, Failure};
use crate::output::Printer;

pub(crate) async fn run(args: &Resume, client: &Client, printer: &Printer) -> Result<Exit, Failure> {
    show_outcomes(&client.resume(&ResumeRequest { select: chosen(&args.act)? }).await?, printer)
}
