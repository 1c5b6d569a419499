//! An operator with a repair plan: reads it, then runs the printed commands as printed.
//!
//! Follows the first way that a blockage offers. Nothing here knows what a command does; a plan whose commands do not
//! bring the flow back fails the run.

use anyhow::{Context as _, Result, ensure};
use trellara_api::flow::Phase;
use trellara_api::repair::{Blockage, Plan, Step};

use super::{SHOWN_PROGRAM, Scene};
use crate::report::Report;
use crate::spec::{Repair, seconds};

/// How the title of a step begins that starts another way out.
const OTHER_WAY: &str = "or";

impl Scene {
    pub(super) async fn repair(&self, repair: &Repair, report: &mut Report) -> Result<()> {
        let arguments = ["repair", "plan", "--flow", &repair.store];
        let printed = self.cli.run(&arguments).await?;
        report.command(&format!("{SHOWN_PROGRAM} {}", arguments.join(" ")), &printed.text());
        let plan: Plan = self.cli.json(&arguments).await?;
        ensure!(!plan.blockages.is_empty(), "the plan names nothing that blocks {}", repair.store);
        for blockage in &plan.blockages {
            for step in first_way(blockage) {
                ensure!(printed.stdout.contains(&step.text), "not printed for people: {}", step.text);
                self.carry_out(&step.title, &step.text, report).await?;
                if let Some(proof) = &step.proof {
                    self.carry_out("its proof", proof, report).await?;
                }
            }
        }
        let within = seconds(repair.within_seconds);
        self.engine.wait_for(std::slice::from_ref(&repair.store), Phase::Streaming, within).await?;
        report.check(&format!("{} is back by the printed commands", repair.store), true, &plan.id);
        Ok(())
    }

    async fn carry_out(&self, title: &str, line: &str, report: &Report) -> Result<()> {
        let output = self.cli.shell(line).await.with_context(|| title.to_owned())?;
        report.command(line, &output.text());
        ensure!(output.code == Some(0), "{title}: the command ended with {:?}", output.code);
        Ok(())
    }
}

fn first_way(blockage: &Blockage) -> impl Iterator<Item = &Step> {
    let begins_another = |step: &&Step| !step.title.to_lowercase().starts_with(OTHER_WAY);
    blockage.steps.iter().take_while(begins_another)
}
