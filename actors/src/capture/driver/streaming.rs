//! The loop over an open stream: events in, batches out, receipts back, confirmations.

use std::collections::VecDeque;
use std::future::pending;
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::watch;
use trellara_storage::families::flows;
use trellara_storage::records::{Durable, Floor, FlowPart};
use trellara_storage::{Batch, Error, Incarnation, Progress};

use super::super::assembler::{Assembled, Assembler, Assembly, Whole};
use super::super::context::CaptureContext;
use super::super::digest::Summary;
use super::super::ledger::Ledger;
use super::super::redelivery::{Compared, Redelivery, left_out};
use super::super::report::{CaptureExit, CaptureProgress, CaptureReport};
use super::super::stumble;
use super::settle::Settled;
use super::{stopped, unless_stopped};
use crate::failure::{Code, Failure};
use crate::flow::TargetView;
use crate::ports::{Clock, FlowLog, ReplicationStream, SourcePort, StreamEvent};

/// A batch is handed on when it has reached this size, and a part when it has.
const BATCH_BYTES: usize = 256 * 1024;
/// Parts of all unfinished transactions that may wait in memory.
const BUFFERED_BYTES: usize = 4 * 1024 * 1024;
/// Batches on their way to the disk; the permit in bytes of the log is the finer limit.
const MAX_IN_FLIGHT: usize = 64;

/// What woke the loop.
enum Woken {
    Stop,
    Synced(Result<(), Error>),
    /// The target's checkpoint moved, or a keepalive position has waited long enough.
    Due,
    Events(Result<(), Failure>),
}

/// One open connection.
pub(super) struct Streaming<'a, S: SourcePort, L: FlowLog, C, R> {
    context: &'a CaptureContext<S, L, C>,
    report: &'a R,
    stream: S::Stream,
    target: watch::Receiver<TargetView>,
    incarnation: Incarnation,
    assembler: Assembler,
    redelivery: Redelivery,
    ledger: Ledger,
    /// What the next record will say is durable.
    next: Durable,
    pruned_bytes: u64,
    gathered: Batch,
    /// Counters as they will stand when what is gathered is durable.
    upcoming: CaptureProgress,
    receipts: VecDeque<(L::Receipt, CaptureProgress)>,
    progress: CaptureProgress,
}

impl<'a, S, L, C, R> Streaming<'a, S, L, C, R>
where
    S: SourcePort,
    L: FlowLog,
    C: Clock,
    R: Fn(CaptureReport) + Send + Sync,
{
    pub(super) fn new(
        context: &'a CaptureContext<S, L, C>,
        report: &'a R,
        stream: S::Stream,
        settled: Settled,
    ) -> Self {
        let Settled { lineage, durable, pruned_bytes, confirmed, relations, encoding } = settled;
        let position = durable.progress.position;
        let assembly = Assembly {
            flow: context.flow,
            incarnation: lineage.incarnation,
            session: durable.session,
            encoding,
            part_bytes: BATCH_BYTES,
            buffered_bytes: BUFFERED_BYTES,
        };
        let progress = CaptureProgress {
            captured: durable.progress,
            durable: durable.progress,
            ..CaptureProgress::default()
        };
        Self {
            context,
            report,
            stream,
            target: context.link.target.subscribe(),
            incarnation: lineage.incarnation,
            assembler: Assembler::new(assembly, &relations, position),
            redelivery: Redelivery::new(context.flow, &lineage, confirmed, position),
            ledger: Ledger::new(durable.progress, confirmed, context.settings.keepalive_interval),
            next: durable,
            pruned_bytes,
            gathered: Batch::new(),
            upcoming: progress,
            receipts: VecDeque::new(),
            progress,
        }
    }

    pub(super) async fn run(&mut self, stop: &mut watch::Receiver<bool>) -> CaptureExit {
        let mut events = Vec::new();
        loop {
            let woken = self.woken(&mut events, stop).await;
            if let Err(exit) = self.follow(woken, &mut events, stop).await {
                return exit;
            }
        }
    }

    /// Ends the connection; one that failed is only dropped.
    pub(super) async fn close(mut self, exit: CaptureExit) -> CaptureExit {
        match exit {
            CaptureExit::Failed(_) | CaptureExit::Store(_) => return exit,
            CaptureExit::LineageLost { .. } => {}
            CaptureExit::Stopped | CaptureExit::LogFull => {
                if let Err(failed) = self.wind_up().await {
                    return failed;
                }
            }
        }
        self.stream.close().await;
        exit
    }

    async fn woken(&mut self, events: &mut Vec<StreamEvent>, stop: &mut watch::Receiver<bool>) -> Woken {
        let clock = &self.context.clock;
        let wait = self.ledger.deadline().map(|deadline| deadline.saturating_sub(clock.elapsed()));
        let has_room = self.receipts.len() < MAX_IN_FLIGHT;
        let Self { receipts, target, stream, .. } = self;
        tokio::select! {
            biased;
            () = stopped(stop) => Woken::Stop,
            synced = oldest(receipts) => Woken::Synced(synced),
            _ = target.changed() => Woken::Due,
            () = sleep(clock, wait) => Woken::Due,
            received = stream.next(events), if has_room => Woken::Events(received),
        }
    }

    async fn follow(
        &mut self,
        woken: Woken,
        events: &mut Vec<StreamEvent>,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<(), CaptureExit> {
        match woken {
            Woken::Stop => return Err(CaptureExit::Stopped),
            Woken::Synced(synced) => {
                synced?;
                self.landed();
                while let Some(synced) =
                    self.receipts.front_mut().and_then(|(oldest, _)| oldest.now_or_never())
                {
                    synced?;
                    self.landed();
                }
            }
            Woken::Due => {}
            Woken::Events(received) => {
                received.map_err(|failure| stumble::judge(&self.context.link, &self.assembler, failure))?;
                unless_stopped(stop, self.take_in(events)).await??;
                self.check_budget().await?;
            }
        }
        unless_stopped(stop, self.record_keepalive()).await??;
        self.confirm().await
    }

    /// Everything that arrived, in order, and whatever it completed on its way to the disk.
    async fn take_in(&mut self, events: &mut Vec<StreamEvent>) -> Result<(), CaptureExit> {
        self.upcoming.source_seen = self.context.clock.now();
        let mut assembled = Vec::new();
        for event in events.drain(..) {
            match event {
                StreamEvent::Message(message) => {
                    self.assembler.on(message, &mut assembled)?;
                    for assembled in assembled.drain(..) {
                        match assembled {
                            Assembled::Parts(batch) => self.context.log.submit_buffered(batch).await?,
                            Assembled::Transaction(whole) => self.take(*whole).await?,
                        }
                    }
                }
                StreamEvent::Keepalive { position, reply_requested } => {
                    self.ledger.keepalive(position, reply_requested);
                }
            }
        }
        self.flush().await
    }

    async fn take(&mut self, mut whole: Whole) -> Result<(), CaptureExit> {
        let summary = match whole.summary() {
            Some(summary) => summary,
            None => self.read_back(&mut whole).await?,
        };
        let commit_lsn = whole.ended().commit_lsn;
        if self.next.progress.covers(commit_lsn) {
            let expected = self.context.log.read(self.redelivery.expected_to(commit_lsn)).await?;
            return match self.redelivery.compare(commit_lsn, summary.digest, expected) {
                Compared::Same => self.drop_received(whole).await,
                Compared::Another(what) => Err(another_history(what)),
            };
        }
        self.close_redelivery().await?;
        self.upcoming.captured = whole.progress();
        self.upcoming.transactions += 1;
        if whole.is_heartbeat() {
            self.upcoming.heartbeat = Some(whole.ended().commit_time);
        }
        self.next.progress = whole.progress();
        let (batch, bytes) = whole.record(self.assembler.assembly(), summary, self.context.clock.now());
        self.upcoming.bytes += bytes;
        self.next.appended.bytes += bytes;
        self.next.appended.transactions += 1;
        self.gathered.append(batch);
        if self.gathered.bytes() >= BATCH_BYTES {
            self.flush().await?;
        }
        Ok(())
    }

    /// Digests a chunked transaction from its parts, once they are written: a synced batch behind them says
    /// when.
    async fn read_back(&mut self, whole: &mut Whole) -> Result<Summary, CaptureExit> {
        self.flush().await?;
        self.context.log.submit(whole.take_last_part()).await?.await?;
        Ok(self.context.log.read(whole.read_back(&self.assembler)).await?)
    }

    async fn drop_received(&mut self, whole: Whole) -> Result<(), CaptureExit> {
        self.upcoming.redelivered += 1;
        self.progress.redelivered = self.upcoming.redelivered;
        let taken_back = whole.discard(self.assembler.assembly());
        if !taken_back.is_empty() {
            self.context.log.submit_buffered(taken_back).await?;
        }
        Ok(())
    }

    /// Before the first record of this connection: nothing that was received may have been left out.
    async fn close_redelivery(&mut self) -> Result<(), CaptureExit> {
        let Some(query) = self.redelivery.close() else { return Ok(()) };
        match self.context.log.read(query).await? {
            Some((at, _)) => Err(another_history(left_out(at))),
            None => Ok(()),
        }
    }

    async fn record_keepalive(&mut self) -> Result<(), CaptureExit> {
        let now = self.context.clock.elapsed();
        let Some(progress) = self.ledger.keepalive_due(now) else { return Ok(()) };
        self.close_redelivery().await?;
        self.next.progress = progress;
        self.upcoming.captured = progress;
        self.submit().await?;
        self.ledger.submitted_keepalive(progress, now);
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), CaptureExit> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        self.submit().await?;
        self.ledger.submitted(self.next.progress);
        Ok(())
    }

    /// Hands what is gathered to the log together with the progress that it means.
    async fn submit(&mut self) -> Result<(), CaptureExit> {
        let mut batch = std::mem::take(&mut self.gathered);
        flows::put(&mut batch, self.context.flow, FlowPart::Durable, &self.next);
        let receipt = self.context.log.submit(batch).await?;
        self.upcoming.durable = self.next.progress;
        self.receipts.push_back((receipt, self.upcoming));
        Ok(())
    }

    fn landed(&mut self) {
        let Some((_, landed)) = self.receipts.pop_front() else { return };
        self.ledger.synced();
        let redelivered = self.progress.redelivered;
        self.progress = CaptureProgress { captured: self.upcoming.captured, redelivered, ..landed };
        self.context.link.durable.send_replace(self.ledger.durable());
        (self.report)(CaptureReport::Progress(self.progress));
    }

    async fn confirm(&mut self) -> Result<(), CaptureExit> {
        let applied = self.applied();
        if let Some(position) = self.ledger.confirm(applied) {
            self.stream.confirm(position).await?;
        }
        Ok(())
    }

    /// The checkpoint's progress in this incarnation, while the target answers.
    fn applied(&self) -> Option<Progress> {
        let view = self.target.borrow();
        let checkpoint = view.checkpoint.as_ref().filter(|_| view.read && view.answering)?;
        (checkpoint.incarnation == self.incarnation).then_some(checkpoint.applied)
    }

    /// Parts of unfinished transactions count: one that never ends must not use up the disk.
    async fn check_budget(&mut self) -> Result<(), CaptureExit> {
        let max = self.context.settings.log_max_bytes;
        let appended = self.next.appended.bytes + self.assembler.unfinished_bytes();
        if appended.saturating_sub(self.pruned_bytes) <= max {
            return Ok(());
        }
        let flow = self.context.flow;
        let floor: Option<Floor> =
            self.context.log.read(move |store| flows::get(store, flow, FlowPart::Floor)).await?;
        self.pruned_bytes = floor.map_or(0, |floor| floor.pruned.bytes);
        if appended.saturating_sub(self.pruned_bytes) <= max { Ok(()) } else { Err(CaptureExit::LogFull) }
    }

    /// Waits for what is on its way to the disk and tells the source about it.
    async fn wind_up(&mut self) -> Result<(), CaptureExit> {
        while let Some((receipt, _)) = self.receipts.front_mut() {
            receipt.await?;
            self.landed();
        }
        self.confirm().await
    }
}

fn another_history(what: String) -> CaptureExit {
    CaptureExit::LineageLost { code: Code::AnotherHistory, what }
}

async fn oldest<T: Future<Output = Result<(), Error>> + Unpin>(
    receipts: &mut VecDeque<(T, CaptureProgress)>,
) -> Result<(), Error> {
    match receipts.front_mut() {
        Some((receipt, _)) => receipt.await,
        None => pending().await,
    }
}

async fn sleep<C: Clock>(clock: &C, wait: Option<Duration>) {
    match wait {
        Some(wait) => clock.sleep(wait).await,
        None => pending().await,
    }
}
