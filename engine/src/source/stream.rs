//! The open stream as capture sees it: decoded messages and keepalives.

use trellara_actors::failure::{Failure, Missing, Place, classify};
use trellara_actors::ports::{ReplicationStream, StreamEvent};
use trellara_storage::Lsn;

use super::heartbeat::Beating;
use crate::decode::Decoder;
use crate::postgres::Error;
use crate::postgres::replication::{CopyStream, Frame};

/// Events that one call hands over at most; what else has arrived waits for the next.
const BATCH: usize = 4096;

/// A flow's stream. While it lives, the source's heartbeat beats.
#[derive(Debug)]
pub struct SourceStream {
    stream: CopyStream,
    decoder: Decoder,
    /// What ended the stream, while events before it were still to be handed over.
    ended: Option<Error>,
    _heartbeat: Beating,
}

impl SourceStream {
    pub(super) fn new(stream: CopyStream, heartbeat: Beating) -> Self {
        Self { stream, decoder: Decoder::default(), ended: None, _heartbeat: heartbeat }
    }

    /// Takes what has arrived, without waiting.
    fn take(&mut self, events: &mut Vec<StreamEvent>) -> Result<(), Error> {
        let full = events.len() + BATCH;
        while events.len() < full {
            match self.stream.take()? {
                None => break,
                Some(Frame::Data(payload)) => {
                    events.extend(self.decoder.decode(&payload)?.map(StreamEvent::Message));
                }
                Some(Frame::Keepalive { position, reply_requested }) => {
                    events.push(StreamEvent::Keepalive { position, reply_requested });
                }
            }
        }
        Ok(())
    }

    async fn receive(&mut self, events: &mut Vec<StreamEvent>) -> Result<(), Error> {
        if let Some(error) = self.ended.take() {
            return Err(error);
        }
        let before = events.len();
        loop {
            let taken = self.take(events);
            if events.len() > before {
                self.ended = taken.err();
                return Ok(());
            }
            taken?;
            self.stream.wait().await?;
        }
    }
}

impl ReplicationStream for SourceStream {
    async fn next(&mut self, events: &mut Vec<StreamEvent>) -> Result<(), Failure> {
        self.receive(events).await.map_err(failed)
    }

    async fn confirm(&mut self, position: Lsn) -> Result<(), Failure> {
        self.stream.confirm(position).await.map_err(failed)
    }

    async fn close(self) {
        self.stream.close().await;
    }
}

/// A slot cannot vanish under an open stream, so what is missing there is a publication.
fn failed(error: Error) -> Failure {
    let mut facts = error.into_facts();
    facts.missing = Some(Missing::Publication);
    classify(Place::Stream, facts)
}
