//! Statements on their way: sent in order without waiting for answers, answers taken in the same order.
//!
//! The one danger: taking a later error for the first. After an error every statement of the transaction
//! fails, so answers are only ever judged from the front.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use futures_util::poll;
use tokio::time::timeout;
use tokio_postgres::{Client, Error};
use trellara_actors::failure::{Code, Place};

use super::array::ArrayText;
use super::stop::{Cause, ChangeCopy, Stop};

/// A target that says nothing for this long, while nothing it waits for may take as long, is gone.
const SILENCE: Duration = Duration::from_secs(300);

/// What may be on its way at once; beyond it the oldest answer is waited for.
const MAX_STATEMENTS: usize = 256;
const MAX_BYTES: usize = 4 << 20;

/// One question outside of the flight, within the same deadline.
pub(super) async fn within<T>(asked: impl Future<Output = Result<T, Error>> + Send) -> Result<T, Cause> {
    match timeout(SILENCE, asked).await {
        Ok(answer) => answer.map_err(Cause::Sql),
        Err(_) => Err(Cause::Silence),
    }
}

/// What a statement was for, and how many rows it must meet.
#[derive(Debug)]
pub(super) struct Note {
    pub(super) place: Place,
    pub(super) member: Option<usize>,
    pub(super) expects: Expects,
    /// Kept where the failing change is to be named.
    pub(super) change: Option<Box<ChangeCopy>>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Expects {
    Anything,
    /// The checkpoint row.
    Checkpoint,
    Rows {
        count: u64,
        otherwise: Code,
        /// A shortfall is recorded and passed over.
        tolerated: bool,
    },
}

type Answer<'a> = Pin<Box<dyn Future<Output = Result<u64, Error>> + Send + 'a>>;

enum State<'a> {
    Waiting(Answer<'a>),
    Answered(Result<u64, Error>),
}

struct Sent<'a> {
    note: Note,
    bytes: usize,
    state: State<'a>,
}

pub(super) struct Flight<'a> {
    client: &'a Client,
    sent: VecDeque<Sent<'a>>,
    bytes: usize,
    /// Shortfalls that were tolerated, in order.
    passed: Vec<Note>,
}

impl<'a> Flight<'a> {
    pub(super) fn new(client: &'a Client) -> Self {
        Self { client, sent: VecDeque::new(), bytes: 0, passed: Vec::new() }
    }

    /// Sends statements without parameters.
    pub(super) async fn command(&mut self, note: Note, sql: String) -> Result<(), Stop> {
        let client = self.client;
        let bytes = sql.len();
        self.send(note, bytes, Box::pin(async move { client.batch_execute(&sql).await.map(|()| 0) })).await
    }

    /// Sends a prepared statement with its arrays.
    pub(super) async fn execute(
        &mut self,
        note: Note,
        statement: tokio_postgres::Statement,
        arrays: Vec<ArrayText>,
    ) -> Result<(), Stop> {
        let client = self.client;
        let bytes = arrays.iter().map(ArrayText::bytes).sum();
        let answer = Box::pin(async move { client.execute_raw(&statement, arrays.iter()).await });
        self.send(note, bytes, answer).await
    }

    /// Sends whatever `answer` sends when it is first polled.
    pub(super) async fn send(
        &mut self,
        note: Note,
        bytes: usize,
        mut answer: Answer<'a>,
    ) -> Result<(), Stop> {
        while self.sent.len() >= MAX_STATEMENTS || (self.bytes + bytes > MAX_BYTES && !self.sent.is_empty()) {
            self.settle_front().await?;
        }
        // The first poll puts the message into the connection's queue: order is the order of these calls.
        let state = match poll!(answer.as_mut()) {
            std::task::Poll::Ready(result) => State::Answered(result),
            std::task::Poll::Pending => State::Waiting(answer),
        };
        self.bytes += bytes;
        self.sent.push_back(Sent { note, bytes, state });
        Ok(())
    }

    /// Waits for every answer.
    pub(super) async fn settle(&mut self) -> Result<(), Stop> {
        while !self.sent.is_empty() {
            self.settle_front().await?;
        }
        Ok(())
    }

    /// As `settle`, and returns how many rows the last statement met.
    pub(super) async fn settle_last(&mut self) -> Result<u64, Stop> {
        let mut rows = 0;
        while !self.sent.is_empty() {
            rows = self.settle_front().await?;
        }
        Ok(rows)
    }

    /// The first failure on the way, if there is one; else the given one.
    pub(super) async fn first_failure(&mut self, otherwise: Stop) -> Stop {
        match self.settle().await {
            Ok(()) => otherwise,
            Err(stop) => stop,
        }
    }

    pub(super) fn take_passed(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.passed)
    }

    /// After a failure what was sent behind it means nothing any more.
    async fn settle_front(&mut self) -> Result<u64, Stop> {
        let settled = self.answer_of_front().await;
        if settled.is_err() {
            self.sent.clear();
            self.bytes = 0;
        }
        settled
    }

    async fn answer_of_front(&mut self) -> Result<u64, Stop> {
        let Some(Sent { note, bytes, state }) = self.sent.pop_front() else { return Ok(0) };
        self.bytes -= bytes;
        let result = match state {
            State::Answered(result) => result,
            State::Waiting(answer) => match timeout(SILENCE, answer).await {
                Ok(result) => result,
                Err(_) => return Err(Stop::new(note, Cause::Silence)),
            },
        };
        match result {
            Ok(rows) => self.judge(note, rows),
            Err(error) => Err(Stop::new(note, Cause::Sql(error))),
        }
    }

    fn judge(&mut self, note: Note, rows: u64) -> Result<u64, Stop> {
        match note.expects {
            Expects::Anything => Ok(rows),
            Expects::Checkpoint if rows == 1 => Ok(rows),
            Expects::Checkpoint => Err(Stop::new(note, Cause::NotThere)),
            Expects::Rows { count, .. } if rows == count => Ok(rows),
            Expects::Rows { tolerated: true, .. } if rows == 0 => {
                self.passed.push(note);
                Ok(0)
            }
            Expects::Rows { count, otherwise, .. } => {
                let code = if rows > count { Code::StatementDefect } else { otherwise };
                Err(Stop::new(note, Cause::Rows { code, expected: count, met: rows }))
            }
        }
    }
}
