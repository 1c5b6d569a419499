//! From nothing to a claimed checkpoint: connect, read the row for capture to see, claim it, go to where
//! it stands.

use std::collections::BTreeSet;
use std::time::Duration;

use super::align::{self, Known};
use super::ended::{beyond_apply, lost, waiting};
use super::{Attached, Driver, Ended, stopped, view};
use crate::apply::fence::Verdict;
use crate::apply::isolate::Isolation;
use crate::apply::outcome::{Whereabouts, whereabouts};
use crate::apply::{ApplyExit, ApplyReport};
use crate::capture::lineage_name;
use crate::failure::Code;
use crate::ports::{
    Checkpoint, Claim, Claimed, Clock, FlowLog, InitialCheckpoint, TargetPort, TargetSession,
};
use trellara_storage::records::Lineage;
use trellara_storage::{Lsn, Progress};

/// Between two looks at the lease of another engine.
const LOOK: Duration = Duration::from_secs(1);

impl<T: TargetPort, L: FlowLog, C: Clock, R: Fn(ApplyReport) + Send> Driver<T, L, C, R> {
    pub(super) async fn attach(&mut self) -> Result<Attached<T::Session>, Ended> {
        let (mut session, lineage) = self.look().await?;
        let known = self.known(lineage.incarnation).await?;
        let row = self.claim(&mut session, &lineage, &known).await?;
        self.context.link.target.send_replace(view(Some(row.clone())));
        (self.report)(ApplyReport::Claimed(row.clone()));
        align::accept(&lineage, &row, &known)?;
        let mut at = Attached {
            session: Some(session),
            token: row.token,
            incarnation: row.incarnation,
            applied: row.applied,
            unproven: row.digest.map(|digest| (row.applied.commit_lsn, digest)),
            recorded: known
                .records
                .iter()
                .map(|record| record.transaction.commit_lsn)
                .collect::<BTreeSet<Lsn>>(),
            written: self.context.clock.elapsed(),
        };
        self.progress.applied = row.applied;
        self.reconcile(at.applied, known).await?;
        self.settle_doubt(&mut at).await?;
        Ok(at)
    }

    /// Reads the row before anything is claimed: capture decides by it whether to adopt or to begin. While
    /// another engine holds the row the slot's position is that engine's doing, and capture is told nothing.
    async fn look(&mut self) -> Result<(T::Session, Lineage), Ended> {
        let mut session = self.connect().await?;
        let mut told = false;
        let row = loop {
            match session.checkpoint().await.map_err(beyond_apply)? {
                Some(row) if self.is_anothers(&row) => {
                    let verdict = self.judge(Claimed::Held(row));
                    self.behind(verdict, &mut told).await?;
                }
                row => break row,
            }
        };
        self.context.link.target.send_replace(view(row));
        let lineage = self.context.link.lineage.borrow().clone();
        if let Some(lineage) = lineage {
            return Ok((session, lineage));
        }
        drop(session);
        let lineage = self.lineage().await?;
        Ok((self.connect().await?, lineage))
    }

    fn is_anothers(&self, row: &Checkpoint) -> bool {
        row.lease_live && row.token.instance != self.context.engine.instance && !self.claiming.take_over()
    }

    async fn lineage(&mut self) -> Result<Lineage, Ended> {
        let mut lineage = self.context.link.lineage.subscribe();
        tokio::select! {
            biased;
            () = stopped(&mut self.stop) => Err(Ended::Exit(ApplyExit::Stopped)),
            known = lineage.wait_for(Option::is_some) => {
                let known = known.expect("the link holds a sender");
                Ok(known.clone().expect("waited for it"))
            }
        }
    }

    pub(super) async fn connect(&mut self) -> Result<T::Session, Ended> {
        tokio::select! {
            biased;
            () = stopped(&mut self.stop) => Err(Ended::Exit(ApplyExit::Stopped)),
            session = self.context.target.connect() => session.map_err(beyond_apply),
        }
    }

    async fn claim(
        &mut self,
        session: &mut T::Session,
        lineage: &Lineage,
        known: &Known,
    ) -> Result<Checkpoint, Ended> {
        let mut told = false;
        loop {
            let claim = self.asked(lineage, known);
            let claimed = session.claim(&claim).await.map_err(beyond_apply)?;
            match self.judge(claimed) {
                Verdict::Ours(row) => return Ok(row),
                verdict @ (Verdict::Wait(_) | Verdict::Fenced(_) | Verdict::Lost) => {
                    self.behind(verdict, &mut told).await?;
                }
            }
        }
    }

    fn judge(&mut self, claimed: Claimed) -> Verdict {
        self.claiming.on(claimed, self.context.clock.elapsed())
    }

    /// Waits a moment for the lease of another engine, and says so once; ends where waiting does not help.
    async fn behind(&mut self, verdict: Verdict, told: &mut bool) -> Result<(), Ended> {
        match verdict {
            Verdict::Ours(_) => Ok(()),
            Verdict::Fenced(row) => Err(Ended::Exit(ApplyExit::Fenced(Box::new(row)))),
            Verdict::Lost => Err(lost()),
            Verdict::Wait(row) => {
                if !std::mem::replace(told, true) {
                    let summary = format!("waiting for the lease of {}", row.holder);
                    (self.report)(ApplyReport::Retrying(waiting(Code::Fenced, summary)));
                }
                self.sleep(LOOK).await
            }
        }
    }

    fn asked(&self, lineage: &Lineage, known: &Known) -> Claim {
        let engine = &self.context.engine;
        let initial = known.applied.is_none().then(|| InitialCheckpoint {
            incarnation: lineage.incarnation,
            lineage: lineage_name(lineage.system_identifier, &lineage.slot),
            applied: Progress { commit_lsn: Lsn::ZERO, position: lineage.start },
        });
        Claim {
            instance: engine.instance,
            boot: engine.boot,
            holder: engine.holder.clone(),
            take_over: self.claiming.take_over(),
            initial,
        }
    }

    /// The row tells whether the COMMIT that got no answer had arrived (I4).
    async fn settle_doubt(&mut self, at: &mut Attached<T::Session>) -> Result<(), Ended> {
        let Some(group) = self.doubt.take() else { return Ok(()) };
        match whereabouts(&group, at.applied) {
            Whereabouts::After => self.committed(at, &group, None).await,
            Whereabouts::Before => Ok(()),
            Whereabouts::Elsewhere(_) => {
                self.isolation = Isolation::new();
                Ok(())
            }
        }
    }
}
