//! One flow's source behind the port.

use std::time::Duration;

use tokio::sync::Semaphore;
use trellara_actors::failure::{Code, ErrorFacts, ErrorKind, Failure, Missing, Place, classify};
use trellara_actors::ports::{SlotOrigin, SourceFacts, SourcePort};
use trellara_storage::FlowName;

use super::creation::{self, Emptiness, Made};
use super::finding::Finding;
use super::heartbeat::Heartbeats;
use super::slot::{Dropped, Holder};
use super::stream::SourceStream;
use super::{inspect, preflight, slot};
use crate::postgres::replication::{Connection, StartOptions};
use crate::postgres::{Error, Session};
use crate::settings::{FlowSettings, SourceSettings};

const OBJECT_IN_USE: &str = "55006";
const LOCK_NOT_AVAILABLE: &str = "55P03";

/// Connections to sources that may be opening at a time, over all flows: after an outage thousands come back
/// at once. Each holds its turn for its `connect_timeout` at most.
static CONNECTING: Semaphore = Semaphore::const_new(64);

/// How a flow reaches its source.
#[derive(Clone, Debug)]
pub struct Source {
    flow: FlowName,
    settings: SourceSettings,
    from_now: bool,
    instance: String,
    application_name: String,
    heartbeats: Heartbeats,
}

impl Source {
    /// `generation` tells this start of the flow from the ones before it, in the source's own views.
    pub fn new(flow: &FlowSettings, generation: u64, heartbeats: Heartbeats) -> Self {
        Self {
            flow: flow.name.clone(),
            settings: flow.source.clone(),
            from_now: flow.from_now,
            instance: flow.instance.clone(),
            application_name: format!("{}{generation}", application_prefix(&flow.instance)),
            heartbeats,
        }
    }

    /// Drops the flow's slot; false when there is none. A connection of this engine that still holds it is
    /// ended first.
    ///
    /// # Errors
    /// The source does not answer, or somebody else holds the slot.
    pub async fn drop_slot(&self) -> Result<bool, Failure> {
        let mut catalog = self.catalog().await.map_err(failed)?;
        let prefix = application_prefix(&self.instance);
        match slot::drop_if_exists(&mut catalog, &self.settings.slot, &prefix).await.map_err(failed)? {
            Dropped::Gone => Ok(true),
            Dropped::Absent => Ok(false),
            Dropped::Held(holder) => Err(self.in_use(&holder)),
        }
    }

    /// Everything that stands against this flow at its source, or should be known before it starts.
    ///
    /// # Errors
    /// The source does not answer.
    pub async fn preflight(&self) -> Result<Vec<Finding>, Failure> {
        let mut catalog = self.catalog().await.map_err(failed)?;
        preflight::findings(&mut catalog, &self.settings, &self.instance).await.map_err(failed)
    }

    /// A connection for commands and catalog reads, whose text is UTF-8 whatever the source's encoding.
    async fn catalog(&self) -> Result<Connection, Error> {
        let mut connection = self.connect(self.settings.server.connect_timeout).await?;
        connection.command("SET client_encoding = 'UTF8'").await?;
        Ok(connection)
    }

    async fn connect(&self, lock_timeout: Duration) -> Result<Connection, Error> {
        let _turn = CONNECTING.acquire().await;
        let session = Session { application_name: self.application_name.clone(), lock_timeout };
        Connection::open(&self.settings.server, &session, self.settings.wal_sender_timeout).await
    }

    fn in_use(&self, holder: &Holder) -> Failure {
        let Holder { pid, application_name, host } = holder;
        let facts = ErrorFacts {
            kind: Some(ErrorKind::Finding(Code::SlotInUse)),
            message: format!(
                "slot \"{}\" of flow {} is used by PID {pid}, application \"{application_name}\", host {host}",
                self.settings.slot, self.flow
            ),
            ..ErrorFacts::default()
        };
        classify(Place::SourceConnect, facts)
    }

    /// Adds who holds the slot to the server's refusal.
    async fn explain_in_use(&self, refused: Error) -> Failure {
        let Ok(mut catalog) = self.catalog().await else { return failed(refused) };
        match slot::holder(&mut catalog, &self.settings.slot).await {
            Ok(Some(holder)) => self.in_use(&holder),
            Ok(None) | Err(_) => failed(refused),
        }
    }

    /// Adds whom the creation waited for to the server's refusal.
    async fn explain_wait(&self, refused: Error) -> Failure {
        let blockers = match self.catalog().await {
            Ok(mut catalog) => preflight::writers(&mut catalog).await.unwrap_or_default(),
            Err(_) => Vec::new(),
        };
        let timed_out = matches!(refused, Error::TimedOut(_));
        let mut facts = refused.into_facts();
        if timed_out {
            facts.kind = Some(ErrorKind::Finding(Code::Contention));
        }
        if !blockers.is_empty() {
            facts.hint = Some(format!("the slot waits for these to end: {}", blockers.join("; ")));
        }
        classify(Place::SourceConnect, facts)
    }
}

impl SourcePort for Source {
    type Stream = SourceStream;

    async fn inspect(&self) -> Result<SourceFacts, Failure> {
        let mut catalog = self.catalog().await.map_err(failed)?;
        inspect::inspect(&mut catalog, &self.settings, &self.instance).await
    }

    async fn create_slot(&self) -> Result<SlotOrigin, Failure> {
        let wait = self.settings.boundary_wait;
        let connection = self.connect(wait).await.map_err(failed)?;
        let emptiness = match self.from_now {
            true => None,
            false => Some(Emptiness {
                tables: self.settings.tables.clone(),
                guard: self.catalog().await.map_err(failed)?,
            }),
        };
        match creation::create(connection, &self.settings.slot, emptiness, wait).await {
            Ok(Made::Slot(consistent_point)) => Ok(SlotOrigin { consistent_point }),
            Ok(Made::NotEmpty(tables)) => Err(not_empty(&tables)),
            Err(error) if waited_in_vain(&error) => Err(self.explain_wait(error).await),
            Err(error) => Err(failed(error)),
        }
    }

    async fn open(&self) -> Result<SourceStream, Failure> {
        let settings = &self.settings;
        let connection = self.connect(settings.server.connect_timeout).await.map_err(failed)?;
        let options = StartOptions {
            slot: &settings.slot,
            publications: &settings.publications,
            streaming: settings.streaming,
            binary: settings.binary,
            idle_timeout: settings.idle_timeout,
        };
        match connection.start(&options).await {
            Ok(stream) => Ok(SourceStream::new(stream, self.heartbeats.join(settings, &self.instance))),
            Err(error) if error.sqlstate() == Some(OBJECT_IN_USE) => Err(self.explain_in_use(error).await),
            Err(error) => Err(refused_start(error)),
        }
    }
}

/// What every walsender of this engine is named like.
fn application_prefix(instance: &str) -> String {
    format!("trellara_{instance}_")
}

fn waited_in_vain(error: &Error) -> bool {
    matches!(error, Error::TimedOut(_)) || error.sqlstate() == Some(LOCK_NOT_AVAILABLE)
}

fn failed(error: Error) -> Failure {
    classify(Place::SourceConnect, error.into_facts())
}

/// START_REPLICATION looks at the slot only, so what is missing there is the slot.
fn refused_start(error: Error) -> Failure {
    let mut facts = error.into_facts();
    facts.missing = Some(Missing::Slot);
    classify(Place::Stream, facts)
}

fn not_empty(tables: &[String]) -> Failure {
    let what = format!("tables hold rows before the start: {}", tables.join(", "));
    Finding::blocking(Code::TablesNotEmpty, what, Vec::new()).into_failure()
}
