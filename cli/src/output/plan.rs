//! Text of a repair plan: what an operator copies from, one shell line per step.

use std::io;

use trellara_api::repair::{Blockage, Plan, Step};

use super::{Out, flow, human};

pub(crate) fn write(out: Out<'_>, plan: &Plan) -> io::Result<()> {
    if plan.blockages.is_empty() {
        writeln!(out, "nothing is blocked, {} flows looked at", plan.flows)?;
        return flow::partial(out, &plan.partial);
    }
    let found = plan.blockages.len();
    writeln!(out, "plan {}  {found} blockages in {} flows, worst first", plan.id, plan.flows)?;
    writeln!(out, "digest {}", plan.digest)?;
    for (number, blockage) in plan.blockages.iter().enumerate() {
        writeln!(out)?;
        write_blockage(out, number + 1, blockage, plan)?;
    }
    flow::partial(out, &plan.partial)
}

fn write_blockage(out: Out<'_>, number: usize, blockage: &Blockage, plan: &Plan) -> io::Result<()> {
    let age = human::age(plan.at, blockage.since);
    let evidence = if blockage.evidence.is_empty() {
        String::new()
    } else {
        format!(" ({})", blockage.evidence.join(", "))
    };
    let code = blockage.code.as_ref().map_or_else(String::new, |code| format!(" {code}"));
    writeln!(out, "{number}. {}  {}{code}, for {age}{evidence}", blockage.flow, blockage.kind)?;
    writeln!(out, "   what      {}", blockage.what)?;
    writeln!(out, "   why       {}", blockage.why)?;
    writeln!(out, "   unblocks  {}", blockage.unblocks)?;
    for note in &blockage.notes {
        writeln!(out, "   note      {note}")?;
    }
    for (step_number, step) in blockage.steps.iter().enumerate() {
        write_step(out, &format!("{number}.{}", step_number + 1), step)?;
    }
    Ok(())
}

fn write_step(out: Out<'_>, number: &str, step: &Step) -> io::Result<()> {
    writeln!(out, "   {number}  {}  [on {}]", step.title, step.host)?;
    writeln!(out, "        {}", step.text)?;
    let notes = [
        ("first", &step.precondition),
        ("changes", &step.changes),
        ("undo", &step.undo),
        ("proof", &step.proof),
    ];
    for (name, note) in notes {
        if let Some(note) = note {
            writeln!(out, "        {name:8} {note}")?;
        }
    }
    Ok(())
}
