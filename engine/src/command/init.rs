//! `init`: a configuration to start from.

use anyhow::Context;

use super::{Common, Exit, answer};

#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    common: Common,
    /// Name of this engine, shown to whoever it fences
    #[arg(long, default_value = "trellara")]
    instance: String,
}

/// Never overwrites.
pub(super) fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let path = &arguments.common.config;
    let file = std::fs::File::create_new(path);
    let mut file = file.with_context(|| format!("cannot create {}", path.display()))?;
    std::io::Write::write_all(&mut file, crate::config::template(&arguments.instance).as_bytes())
        .with_context(|| format!("cannot write {}", path.display()))?;
    answer(&format!(
        "wrote {0}\nnext: edit it, then `trellara config check --config {0}` and `trellara preflight --config {0}`",
        path.display()
    ));
    Ok(Exit::Done)
}
