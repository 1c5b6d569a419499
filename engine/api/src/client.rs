//! The typed client over the admin socket: one request, one connection, one deadline.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;

use crate::config::{Reload, ReloadRequest};
use crate::engine::{Health, Stopping, Version};
use crate::flow::{
    EventList, FlowDetail, FlowList, FlowOutcomes, PauseRequest, Removal, RemoveRequest, RestartRequest,
    ResumeRequest,
};
use crate::quarantine::{Discard, DiscardRequest, QuarantineDetail, QuarantineList, Replay, ReplayRequest};
use crate::repair::Plan;
use crate::status::{Diagnostics, Report, Summary};
use crate::store::{Backup, BackupRequest};
use crate::stream::Location;
use crate::{Problem, Selector, path};

/// An answer is never larger: 2,000 flows in full stay well below.
const MAX_ANSWER_BYTES: usize = 64 << 20;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nobody listens at the socket.
    #[error("engine is not reachable at {}: {source}", socket.display())]
    Unreachable { socket: PathBuf, source: std::io::Error },
    #[error("no answer within {} s", timeout.as_secs_f64())]
    TimedOut { timeout: Duration },
    /// The engine said no.
    #[error(transparent)]
    Refused(Problem),
    /// The answer is not what this version understands.
    #[error("unexpected answer: {0}")]
    Unexpected(String),
}

/// Asks the engine behind one socket.
#[derive(Clone, Debug)]
pub struct Client {
    socket: PathBuf,
    timeout: Duration,
    acting_as: Option<String>,
}

impl Client {
    pub fn new(socket: impl Into<PathBuf>, timeout: Duration) -> Self {
        Self { socket: socket.into(), timeout, acting_as: None }
    }

    /// Named in the audit trail beside the peer's user.
    #[must_use]
    pub fn acting_as(mut self, name: Option<String>) -> Self {
        self.acting_as = name;
        self
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// # Errors
    /// Every method fails alike: see [`Error`].
    pub async fn version(&self) -> Result<Version, Error> {
        self.get(path::VERSION).await
    }

    pub async fn ready(&self) -> Result<Health, Error> {
        self.get(path::READY).await
    }

    pub async fn stop(&self) -> Result<Stopping, Error> {
        self.post(path::STOP, &()).await
    }

    pub async fn summary(&self, select: &Selector) -> Result<Summary, Error> {
        self.get(&with_query(path::STATUS_SUMMARY, select)).await
    }

    pub async fn diagnostics(&self, select: &Selector) -> Result<Diagnostics, Error> {
        self.get(&with_query(path::STATUS_DIAGNOSTICS, select)).await
    }

    pub async fn report(&self, select: &Selector) -> Result<Report, Error> {
        self.get(&with_query(path::STATUS_REPORT, select)).await
    }

    pub async fn flows(&self, select: &Selector) -> Result<FlowList, Error> {
        self.get(&with_query(path::FLOWS, select)).await
    }

    pub async fn flow(&self, flow: &str) -> Result<FlowDetail, Error> {
        self.get(&path::fill(path::FLOW, &[flow])).await
    }

    pub async fn events(&self, flow: &str, limit: usize) -> Result<EventList, Error> {
        self.get(&format!("{}?limit={limit}", path::fill(path::FLOW_EVENTS, &[flow]))).await
    }

    pub async fn pause(&self, request: &PauseRequest) -> Result<FlowOutcomes, Error> {
        self.post(path::PAUSE, request).await
    }

    pub async fn resume(&self, request: &ResumeRequest) -> Result<FlowOutcomes, Error> {
        self.post(path::RESUME, request).await
    }

    pub async fn restart(&self, request: &RestartRequest) -> Result<FlowOutcomes, Error> {
        self.post(path::RESTART, request).await
    }

    pub async fn remove(&self, flow: &str, request: &RemoveRequest) -> Result<Removal, Error> {
        self.post(&path::fill(path::FLOW_REMOVE, &[flow]), request).await
    }

    /// Open records only, unless `all`.
    pub async fn quarantine(&self, select: &Selector, all: bool) -> Result<QuarantineList, Error> {
        self.get(&format!("{}?all={all}&{}", path::QUARANTINE, select.query())).await
    }

    pub async fn quarantine_record(&self, id: &str) -> Result<QuarantineDetail, Error> {
        self.get(&path::fill(path::QUARANTINE_RECORD, &[id])).await
    }

    pub async fn replay(&self, id: &str, request: &ReplayRequest) -> Result<Replay, Error> {
        self.post(&path::fill(path::QUARANTINE_REPLAY, &[id]), request).await
    }

    pub async fn discard(&self, id: &str, request: &DiscardRequest) -> Result<Discard, Error> {
        self.post(&path::fill(path::QUARANTINE_DISCARD, &[id]), request).await
    }

    pub async fn plan(&self, select: &Selector) -> Result<Plan, Error> {
        self.get(&with_query(path::REPAIR_PLAN, select)).await
    }

    pub async fn locate(&self, flow: &str, lsn: &str) -> Result<Location, Error> {
        self.get(&path::fill(path::FLOW_LOCATE, &[flow, lsn])).await
    }

    pub async fn reload(&self, request: &ReloadRequest) -> Result<Reload, Error> {
        self.post(path::CONFIG_RELOAD, request).await
    }

    pub async fn backup(&self, request: &BackupRequest) -> Result<Backup, Error> {
        self.post(path::STORE_BACKUP, request).await
    }

    async fn get<A: DeserializeOwned>(&self, path: &str) -> Result<A, Error> {
        self.ask(Method::GET, path, Bytes::new()).await
    }

    async fn post<R: Serialize, A: DeserializeOwned>(&self, path: &str, request: &R) -> Result<A, Error> {
        let body = serde_json::to_vec(request).map_err(|error| Error::Unexpected(error.to_string()))?;
        self.ask(Method::POST, path, Bytes::from(body)).await
    }

    async fn ask<A: DeserializeOwned>(&self, method: Method, path: &str, body: Bytes) -> Result<A, Error> {
        let exchange = self.exchange(method, path, body);
        let (status, answer) = tokio::time::timeout(self.timeout, exchange)
            .await
            .map_err(|_| Error::TimedOut { timeout: self.timeout })??;
        if status.is_success() {
            return serde_json::from_slice(&answer).map_err(|error| Error::Unexpected(error.to_string()));
        }
        match serde_json::from_slice::<Problem>(&answer) {
            Ok(problem) => Err(Error::Refused(problem)),
            Err(_) => Err(Error::Unexpected(format!("HTTP status {status}"))),
        }
    }

    async fn exchange(&self, method: Method, path: &str, body: Bytes) -> Result<(StatusCode, Bytes), Error> {
        let stream = UnixStream::connect(&self.socket)
            .await
            .map_err(|source| Error::Unreachable { socket: self.socket.clone(), source })?;
        let (mut sender, connection) =
            http1::handshake::<_, Full<Bytes>>(TokioIo::new(stream)).await.map_err(unexpected)?;
        let mut request = Request::builder().method(method).uri(path).header(HOST, "trellara");
        if let Some(name) = &self.acting_as {
            request = request.header(path::ACTING_AS, name);
        }
        let request = request
            .header(CONTENT_TYPE, "application/json")
            .body(Full::new(body))
            .map_err(|error| Error::Unexpected(error.to_string()))?;
        let answer = async {
            let response = sender.send_request(request).await.map_err(unexpected)?;
            let status = response.status();
            let body = Limited::new(response.into_body(), MAX_ANSWER_BYTES);
            let body = body.collect().await.map_err(|error| Error::Unexpected(error.to_string()))?;
            Ok((status, body.to_bytes()))
        };
        let mut connection = std::pin::pin!(connection);
        let mut answer = std::pin::pin!(answer);
        tokio::select! {
            biased;
            answer = &mut answer => answer,
            ended = &mut connection => {
                ended.map_err(unexpected)?;
                answer.await
            }
        }
    }
}

fn unexpected(error: hyper::Error) -> Error {
    Error::Unexpected(error.to_string())
}

fn with_query(path: &str, select: &Selector) -> String {
    let query = select.query();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}
