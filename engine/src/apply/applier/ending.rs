//! The end of one source transaction inside the target transaction: constraints, and what is recorded.

use tokio_postgres::types::ToSql;
use trellara_storage::records::Outcome;

use super::super::checkpoint::lsn;
use super::super::evidence;
use super::*;

const RECORD: &str = "
INSERT INTO trellara.transaction_outcomes
       (flow, incarnation, commit_lsn, xid, change, outcome, digest, relation, row_key, at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, clock_timestamp())
ON CONFLICT (flow, incarnation, commit_lsn, change)
DO UPDATE SET outcome = excluded.outcome, relation = excluded.relation, row_key = excluded.row_key,
              at = excluded.at";

impl<L: FlowLog> Applier<'_, L> {
    /// What is deferred is checked here, so that its error is this transaction's.
    pub(super) async fn end_member(&mut self, member: &Member) -> Result<(), Stop> {
        if self.deferred {
            self.deferred = false;
            self.flush().await?;
            let note = self.note(Expects::Anything, None);
            self.flight.command(note, "SET CONSTRAINTS ALL IMMEDIATE".to_owned()).await?;
            self.count_written().await?;
        }
        match self.how {
            Applying::SetBased => Ok(()),
            Applying::ChangeByChange | Applying::Check => self.record_findings(member).await,
        }
    }

    pub(super) async fn record_instead(&mut self, member: &Member, outcome: Outcome) -> Result<(), Stop> {
        let outcome = match outcome {
            Outcome::Discarded => "discarded",
            Outcome::ReplayedInPart => "replayed_in_part",
            Outcome::Superseded => "superseded",
            Outcome::Released => "released",
        };
        self.record(member, 0, outcome, None, None).await
    }

    /// Deferrable keys that a replica session does not enforce.
    async fn count_written(&mut self) -> Result<(), Stop> {
        for written in std::mem::take(&mut self.written) {
            self.flight.settle().await?;
            self.switch_encoding(UTF8).await?;
            let sql = written.sql();
            let prepared = self.means.prepared.get(&sql);
            let prepared = match prepared {
                Some(prepared) => Ok(prepared),
                None => within(self.means.prepared.prepare(self.means.client, &sql)).await,
            };
            let prepared = prepared.map_err(|cause| self.stop(cause))?;
            self.switch_encoding(&written.mapped().mapping.relation.encoding.clone()).await?;
            self.flight.settle().await?;
            let arrays: Vec<&(dyn ToSql + Sync)> =
                written.arrays.iter().map(|array| array as &(dyn ToSql + Sync)).collect();
            let conflicts = within(self.means.client.query(&prepared, &arrays)).await;
            if !conflicts.map_err(|cause| self.stop(cause))?.is_empty() {
                let constraint = written.constraint().constraint.clone();
                return Err(self.stop(Cause::Constraint(constraint)));
            }
        }
        Ok(())
    }

    /// Rows that a policy passed over leave a row of evidence in the same transaction.
    async fn record_findings(&mut self, member: &Member) -> Result<(), Stop> {
        self.flight.settle().await?;
        let skipped = self.flight.take_passed();
        let overwritten = std::mem::take(&mut self.overwritten);
        let all = skipped.iter().map(|note| (note, "row_missing_skipped"));
        for (note, outcome) in all.chain(overwritten.iter().map(|note| (note, "row_overwritten"))) {
            let (Place::Change(change), Some(copy)) = (note.place, &note.change) else { continue };
            let name = &copy.mapped.mapping.table.name;
            let relation = format!("{}.{}", name.schema, name.name);
            let key = evidence::key_text(copy);
            self.record(member, change + 1, outcome, Some(relation), key).await?;
        }
        Ok(())
    }

    async fn record(
        &mut self,
        member: &Member,
        change: u64,
        outcome: &'static str,
        relation: Option<String>,
        row_key: Option<String>,
    ) -> Result<(), Stop> {
        self.switch_encoding(UTF8).await?;
        let id = member.transaction.id();
        let (client, flow) = (self.means.client, self.means.flow.to_string());
        let digest = member.transaction.digest().to_string();
        let note = self.note(Expects::Anything, None);
        let insert = async move {
            let (incarnation, xid) = (i64::from(id.incarnation.get()), i64::from(id.xid.get()));
            let (commit, change) = (lsn(id.commit_lsn), change.cast_signed());
            client
                .execute(
                    RECORD,
                    &[&flow, &incarnation, &commit, &xid, &change, &outcome, &digest, &relation, &row_key],
                )
                .await
        };
        self.flight.send(note, 0, Box::pin(insert)).await?;
        self.flight.settle().await
    }
}
