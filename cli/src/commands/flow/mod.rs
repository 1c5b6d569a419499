//! Commands about flows.

pub(crate) mod events;
pub(crate) mod list;
pub(crate) mod pause;
pub(crate) mod remove;
pub(crate) mod restart;
pub(crate) mod resume;
pub(crate) mod show;

use trellara_api::Selector;
use trellara_api::flow::FlowOutcomes;

use crate::args::select::Act;
use crate::exit::{Exit, Failure};
use crate::output::Printer;

/// Which flows a command acts on; naming none is a mistake, not all of them.
fn chosen(act: &Act) -> Result<Selector, Failure> {
    act.selector().ok_or_else(|| {
        Failure::Usage("name flows, or choose them with --label; or every flow with --all alone".to_owned())
    })
}

fn show_outcomes(outcomes: &FlowOutcomes, printer: &Printer) -> Result<Exit, Failure> {
    printer.answer(outcomes, |out| {
        for outcome in &outcomes.flows {
            match &outcome.problem {
                None => writeln!(out, "{}  {}", outcome.flow, outcome.text)?,
                Some(problem) => writeln!(out, "{}  refused: {problem}", outcome.flow)?,
            }
        }
        Ok(())
    })?;
    let refused = outcomes.flows.iter().any(|outcome| outcome.problem.is_some());
    Ok(if refused { Exit::Failed } else { Exit::Done })
}
