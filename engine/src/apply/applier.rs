//! One target transaction in the making: changes of whole source transactions to statements in flight.
//!
//! The one danger: an effect in another order than the source's where order can be seen. Runs decide what
//! may share a statement; everything that cannot goes alone, behind what is open.

mod ending;
mod rows;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::Client;
use trellara_actors::capture::Truncate;
use trellara_actors::failure::{Code, Place};
use trellara_actors::ports::{Applying, FlowLog, Member};
use trellara_storage::families::chunks::{self, PartKey};
use trellara_storage::records::{
    ArchivedChangeBlock, ArchivedChangeHead, ArchivedContent, ArchivedManifest, ArchivedOperation, Operation,
    PartRef,
};
use trellara_storage::{CaptureSession, FlowName, RelationId, RelationVersion, TransactionId};

use self::rows::Run;
use super::array::ArrayText;
use super::change::{Misfit, route};
use super::flight::{Expects, Flight, Note, within};
use super::mapped::Mapped;
use super::recheck::{self, Written};
use super::relations::{Relations, Resolved, VersionKey};
use super::runs::Planner;
use super::session;
use super::statement::truncate;
use super::stop::{Cause, ChangeCopy, Stop};
use crate::postgres::pool::Prepared;
use crate::settings::TargetSettings;

/// Rows waiting in open runs, in bytes of their arrays; beyond it everything open is sent.
const MAX_BUFFERED: usize = 4 << 20;

/// A waiting TRUNCATE holds up every reader behind it.
const TRUNCATE_LOCK_TIMEOUT: Duration = Duration::from_secs(2);

const UTF8: &str = "UTF8";

/// What a transaction is applied with.
pub(super) struct Means<'a, L> {
    pub(super) flow: &'a FlowName,
    pub(super) settings: &'a TargetSettings,
    pub(super) relations: &'a Relations<L>,
    pub(super) client: &'a Client,
    pub(super) prepared: &'a mut Prepared,
}

pub(super) struct Applier<'a, L> {
    means: Means<'a, L>,
    how: Applying,
    flight: Flight<'a>,
    planner: Planner,
    runs: HashMap<usize, Run>,
    buffered: usize,
    /// Mappings of this transaction, so that each change costs no lock.
    mapped: HashMap<VersionKey, Resolved>,
    encoding: String,
    /// Constraints are deferred until the source transaction ends.
    deferred: bool,
    written: Vec<Written>,
    /// Where we are: member of the group, its identity, and the surviving change counted from 0.
    member: usize,
    transaction: Option<TransactionId>,
    change: u64,
    /// Rows that were overwritten instead of inserted.
    overwritten: Vec<Note>,
}

impl<'a, L: FlowLog> Applier<'a, L> {
    pub(super) fn new(means: Means<'a, L>, how: Applying) -> Self {
        Self {
            flight: Flight::new(means.client),
            means,
            how,
            planner: Planner::default(),
            runs: HashMap::new(),
            buffered: 0,
            mapped: HashMap::new(),
            encoding: UTF8.to_owned(),
            deferred: false,
            written: Vec::new(),
            member: 0,
            transaction: None,
            change: 0,
            overwritten: Vec::new(),
        }
    }

    pub(super) fn flight(&mut self) -> &mut Flight<'a> {
        &mut self.flight
    }

    /// Sends one member of the group. Its last answers may still be on their way afterwards.
    pub(super) async fn member(&mut self, index: usize, member: &Member) -> Result<(), Stop> {
        let id = member.transaction.id();
        (self.member, self.transaction, self.change) = (index, Some(id), 0);
        if let Some(outcome) = member.instead {
            return self.record_instead(member, outcome).await;
        }
        match &member.transaction.record().content {
            ArchivedContent::Inline(block) => self.block(block, &[]).await?,
            ArchivedContent::Chunked(manifest) => self.parts(id, manifest).await?,
        }
        self.end_member(member).await
    }

    /// Sends what is open and waits for every answer.
    pub(super) async fn finish(&mut self) -> Result<(), Stop> {
        self.flush().await?;
        self.flight.settle().await
    }

    /// Parts are read one ahead of the one that is being sent, so that memory stays flat.
    async fn parts(&mut self, id: TransactionId, manifest: &ArchivedManifest) -> Result<(), Stop> {
        let aborted: Vec<u32> = manifest.aborted.iter().map(|sub| sub.to_native()).collect();
        let session = CaptureSession::new(manifest.session.to_native());
        let relations = self.means.relations;
        let read = |n: usize| {
            let part = manifest.parts.get(n)?;
            let pinned =
                PartRef { hash: part.hash, changes: part.changes.to_native(), bytes: part.bytes.to_native() };
            let n = u32::try_from(n).expect("a manifest holds fewer than 2^32 parts");
            let key = PartKey { flow: id.flow, incarnation: id.incarnation, session, xid: id.xid, n };
            Some(relations.log().read(move |store| chunks::get(store, key, &pinned)))
        };
        let mut n = 0;
        let mut next = read(n);
        while let Some(reading) = next {
            let part = reading.await.map_err(|error| self.stop(Cause::Store(error)))?;
            n += 1;
            next = read(n);
            self.block(part.block(), &aborted).await?;
        }
        Ok(())
    }

    async fn block(&mut self, block: &ArchivedChangeBlock, aborted: &[u32]) -> Result<(), Stop> {
        for head in block.heads.iter().filter(|head| !aborted.contains(&head.sub_xid.to_native())) {
            let from = head.offset.to_native() as usize;
            let to = from.saturating_add(head.length.to_native() as usize);
            let body = block.body.get(from..to).ok_or_else(|| self.stop(Cause::Misfit(OUTSIDE)))?;
            self.change(head, body).await?;
            self.change += 1;
        }
        Ok(())
    }

    async fn change(&mut self, head: &ArchivedChangeHead, body: &[u8]) -> Result<(), Stop> {
        let operation = match head.operation {
            ArchivedOperation::Message => return Ok(()),
            ArchivedOperation::Truncate => return self.truncate(body).await,
            ArchivedOperation::Insert => Operation::Insert,
            ArchivedOperation::Update => Operation::Update,
            ArchivedOperation::Delete => Operation::Delete,
        };
        let relation = RelationId::new(head.relation.to_native());
        let version = RelationVersion::new(head.version.to_native());
        let Some(mapped) = self.resolve(relation, version).await? else { return Ok(()) };
        self.defer_constraints(&mapped).await?;
        match self.how {
            Applying::SetBased => self.place(&mapped, operation, body).await,
            Applying::ChangeByChange | Applying::Check => self.single(&mapped, operation, body).await,
        }
    }

    async fn resolve(
        &mut self,
        relation: RelationId,
        version: RelationVersion,
    ) -> Result<Option<Arc<Mapped>>, Stop> {
        let id = self.transaction.expect("changes belong to a member");
        let key = VersionKey { flow: id.flow, incarnation: id.incarnation, relation, version };
        let resolved = match self.mapped.get(&key) {
            Some(resolved) => resolved,
            None => {
                let resolved = match self.means.relations.known(key) {
                    Some(resolved) => resolved,
                    None => self.read_catalog(key).await?,
                };
                self.mapped.entry(key).or_insert(resolved)
            }
        };
        match resolved {
            Resolved::Mapped(mapped) => Ok(Some(Arc::clone(mapped))),
            Resolved::LeftOut => Ok(None),
        }
    }

    async fn read_catalog(&mut self, key: VersionKey) -> Result<Resolved, Stop> {
        self.switch_encoding(UTF8).await?;
        match self.means.relations.resolve(self.means.client, key).await {
            Ok(resolved) => Ok(resolved),
            Err(cause) => {
                let stop = self.stop(cause);
                Err(self.flight.first_failure(stop).await)
            }
        }
    }

    /// Before the first change of a source transaction that meets such a table.
    async fn defer_constraints(&mut self, mapped: &Mapped) -> Result<(), Stop> {
        if self.deferred || !mapped.boundary {
            return Ok(());
        }
        self.deferred = true;
        let note = self.note(Expects::Anything, None);
        self.flight.command(note, "SET CONSTRAINTS ALL DEFERRED".to_owned()).await
    }

    async fn truncate(&mut self, body: &[u8]) -> Result<(), Stop> {
        const RESTART_IDENTITY: u8 = 2;
        self.flush().await?;
        let message = Truncate::read(body).ok_or_else(|| self.stop(Cause::Misfit(MALFORMED_TRUNCATE)))?;
        let mut tables = Vec::with_capacity(message.relations.len());
        for (relation, version) in message.relations {
            if let Some(mapped) = self.resolve(relation, version).await? {
                self.defer_constraints(&mapped).await?;
                tables.push(mapped);
            }
        }
        let Some(first) = tables.first() else { return Ok(()) };
        let copy = self.copy(first, Operation::Truncate, body);
        let mappings: Vec<_> = tables.iter().map(|mapped| &mapped.mapping).collect();
        let usual = self.means.settings.lock_timeout;
        let sql = format!(
            "SET LOCAL lock_timeout = {}; {}; SET LOCAL lock_timeout = {}",
            usual.min(TRUNCATE_LOCK_TIMEOUT).as_millis(),
            truncate(&mappings, message.flags & RESTART_IDENTITY != 0),
            usual.as_millis()
        );
        self.switch_encoding(UTF8).await?;
        let note = self.note(Expects::Anything, copy);
        self.flight.command(note, sql).await
    }

    async fn switch_encoding(&mut self, encoding: &str) -> Result<(), Stop> {
        if self.encoding == encoding {
            return Ok(());
        }
        encoding.clone_into(&mut self.encoding);
        let note = self.note(Expects::Anything, None);
        self.flight.command(note, session::encoding(encoding)).await
    }

    /// Kept only where a failure will be named by its change.
    fn copy(&self, mapped: &Arc<Mapped>, operation: Operation, body: &[u8]) -> Option<Box<ChangeCopy>> {
        let kept = ChangeCopy { mapped: Arc::clone(mapped), operation, body: Vec::new() };
        match self.how {
            Applying::SetBased => None,
            Applying::ChangeByChange | Applying::Check => {
                Some(Box::new(ChangeCopy { body: body.to_vec(), ..kept }))
            }
        }
    }

    fn note(&self, expects: Expects, change: Option<Box<ChangeCopy>>) -> Note {
        Note { place: Place::Change(self.change), member: Some(self.member), expects, change }
    }

    fn stop(&self, cause: Cause) -> Stop {
        Stop::new(self.note(Expects::Anything, None), cause)
    }
}

const OUTSIDE: Misfit = Misfit { code: Code::RecordDamaged, what: "change lies outside of its record" };
const MALFORMED_TRUNCATE: Misfit = Misfit { code: Code::RecordDamaged, what: "malformed truncate" };
