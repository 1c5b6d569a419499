//! How flows are chosen on the command line.

use clap::Args;
use trellara_api::Selector;

/// Any number of flows.
#[derive(Clone, Debug, Args)]
pub struct Select {
    /// Flows: source:dataset, a source alone where unique, a unique prefix, or a glob
    #[arg(value_name = "FLOW", value_parser = name)]
    pub names: Vec<String>,
    /// The same as an option, repeatable
    #[arg(long = "flow", value_name = "FLOW", value_parser = name)]
    pub flows: Vec<String>,
    /// Only flows with this label, repeatable
    #[arg(short = 'l', long = "label", value_name = "NAME=VALUE", value_parser = label)]
    pub labels: Vec<String>,
}

impl Select {
    pub fn selector(&self) -> Selector {
        let flows = self.names.iter().chain(&self.flows).cloned().collect();
        Selector { flows, labels: self.labels.clone(), all: false }
    }
}

/// Flows that a command acts on: never all of them by omission.
#[derive(Clone, Debug, Args)]
pub struct Act {
    #[command(flatten)]
    pub select: Select,
    /// Every flow
    #[arg(long)]
    pub all: bool,
}

impl Act {
    /// None when nothing was chosen.
    pub fn selector(&self) -> Option<Selector> {
        let selector = Selector { all: self.all, ..self.select.selector() };
        (self.all == selector.is_empty()).then_some(selector)
    }
}

/// Exactly one flow.
#[derive(Clone, Debug, Args)]
pub struct OneFlow {
    /// source:dataset, a source alone where unique, or a unique prefix
    #[arg(value_name = "FLOW", value_parser = name, required_unless_present = "option", conflicts_with = "option")]
    pub name: Option<String>,
    /// The same as an option
    #[arg(id = "option", long = "flow", value_name = "FLOW", value_parser = name)]
    pub option: Option<String>,
}

impl OneFlow {
    pub fn name(&self) -> &str {
        self.name.as_deref().or(self.option.as_deref()).unwrap_or_default()
    }
}

/// Turns a report into a gate.
#[derive(Clone, Copy, Debug, Args)]
pub struct ExitCodeFlag {
    /// Exit with 3 on a finding and with 5 on a partial answer
    #[arg(long)]
    pub exit_code: bool,
}

fn name(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(',') {
        return Err("one flow per argument".to_owned());
    }
    Ok(text.to_owned())
}

fn label(text: &str) -> Result<String, String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() && !text.contains(',') => {
            Ok(text.to_owned())
        }
        Some(_) | None => Err("write name=value".to_owned()),
    }
}
