//! The messages and actions of a command while a medium owes progress.
//!
//! [`Waiting`] of an outbox, a source, a relay or a spool -> [`Patience`] -> a line, or the end

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use baler_analysis::{Source, SourceReport, Stage, Stop};
use baler_common::transport::{ChunkReader, Received, Waiting};
use baler_connector_file::spool::SpoolWatch;

use crate::exit::{Code, Failure};
use crate::output;
use crate::shutdown::Shutdown;

/// How long a reader waits between two checks for signals.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How long nothing moves before the first message. A reconnect to a running broker takes less.
const BEFORE_TELLING: Duration = Duration::from_secs(2);

/// The shortest time between two messages. Repeated events share one message.
pub(crate) const REPORT_INTERVAL: Duration = Duration::from_secs(30);

/// How long a command that ends by itself waits for a medium, unless `--give-up` sets another time.
pub(crate) const GIVE_UP: Duration = Duration::from_secs(30);

/// Reports on standard error that the command waits for a medium, and that the medium is back.
/// Gives the medium up when nothing moved for too long.
#[derive(Debug)]
pub(crate) struct Patience {
    endpoint: String,
    give_up: Option<Duration>,
    quiet: bool,
    /// Whether chunks go to a spool meanwhile.
    is_spooled: bool,
    /// The time of the last message about a wait.
    told_at: Option<Instant>,
    /// The beginning of the wait in that message, until the wait is over.
    told_wait: Option<Instant>,
}

impl Patience {
    /// Creates the watch over a medium, which is given up after `give_up`, or never.
    pub(crate) fn new(endpoint: &str, give_up: Option<Duration>, quiet: bool) -> Self {
        Self {
            endpoint: endpoint.to_owned(),
            give_up,
            quiet,
            is_spooled: false,
            told_at: None,
            told_wait: None,
        }
    }

    /// Checks the progress that the medium owes now. Cheap while it owes nothing.
    ///
    /// # Errors
    ///
    /// Nothing moved for too long.
    pub(crate) fn look(&mut self, waiting: &Waiting) -> Result<(), Failure> {
        if waiting.since().is_none() && self.told_wait.is_none() {
            return Ok(());
        }
        if let Some(line) = self.look_at(waiting, Instant::now())?
            && !self.quiet
        {
            output::say(line);
        }
        Ok(())
    }

    /// Passes the chunks and events of a reader to `take`. Ends when `take` breaks, the reader is
    /// at its end, nothing came for `idle_timeout`, or a signal came. The idle timeout does not run
    /// while the medium owes progress. Returns whether it was not the signal.
    ///
    /// # Errors
    ///
    /// The medium was given up or failed for good, or `take` failed.
    pub(crate) fn receive_all(
        &mut self,
        reader: &mut dyn ChunkReader,
        idle_timeout: Duration,
        shutdown: &Shutdown,
        mut take: impl FnMut(&mut dyn ChunkReader, Received) -> Result<ControlFlow<()>, Failure>,
    ) -> Result<bool, Failure> {
        let mut last_heard = Instant::now();
        let mut waiting = Waiting::default();
        while last_heard.elapsed() < idle_timeout {
            if shutdown.is_requested() {
                return Ok(false);
            }
            let received = reader.receive(Instant::now() + POLL_INTERVAL);
            waiting.received(&received, || reader.waits_for(), Instant::now);
            self.look(&waiting)?;
            let is_chunk = matches!(received, Ok(Received::Chunk(_) | Received::Damaged(_)));
            if is_chunk || waiting.since().is_some() {
                last_heard = Instant::now();
            }
            let received = match received {
                Ok(Received::End) => break,
                Ok(received) => received,
                Err(error) if error.is_retryable() => {
                    tracing::info!(%error, "the medium failed");
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            if take(reader, received)?.is_break() {
                break;
            }
        }
        Ok(true)
    }

    /// Feeds a stage from a source, then closes the source. Ends when the source is at its end or
    /// idle, `keep_going` returns false, or the medium is given up. Returns the figures of the
    /// source, also after a failure.
    pub(crate) fn run_source(
        &mut self,
        mut source: Source,
        mut stage: impl Stage,
        idle_timeout: Option<Duration>,
        shutdown: &Shutdown,
        mut keep_going: impl FnMut(&SourceReport) -> bool,
    ) -> (SourceReport, Result<(), Failure>) {
        let mut stop = Stop::default();
        stop.idle_timeout = idle_timeout;
        let mut given_up = None;
        let ran = source.run(&mut stage, stop, |report| {
            given_up = self.look(&report.waiting).err();
            keep_going(report) && given_up.is_none()
        });
        // After an error, the stage is not finished. Dropping it gives its chunks back to the
        // source.
        drop(stage);
        let before_close = source.report();
        let (report, closed) = match source.close(shutdown.deadline().max(Instant::now())) {
            Ok(report) => (report, Ok(())),
            Err(error) => (before_close, Err(error)),
        };
        let result = ran.and(closed).map_err(Failure::from);
        (report, given_up.map_or(result, Err))
    }

    /// Returns the message that is due now, if any.
    fn look_at(&mut self, waiting: &Waiting, now: Instant) -> Result<Option<String>, Failure> {
        let endpoint = &self.endpoint;
        if let Some(began) = self
            .told_wait
            .filter(|began| waiting.since() != Some(*began))
        {
            self.told_wait = None;
            let over = waiting.since().unwrap_or(now);
            let waited = over.duration_since(began);
            return Ok(Some(format!(
                "{endpoint} is back after {}",
                seconds(waited)
            )));
        }
        let Some(since) = waiting.since() else {
            return Ok(None);
        };
        let waited = now.duration_since(since);
        if self.give_up.is_some_and(|most| waited >= most) {
            let message = format!(
                "gave up on {endpoint} after {}: {}",
                seconds(waited),
                reason(waiting)
            );
            return Err(Failure::new(Code::Unavailable, message));
        }
        let is_due = |at: Instant| now.duration_since(at) >= REPORT_INTERVAL;
        if waited < BEFORE_TELLING || !self.told_at.is_none_or(is_due) {
            return Ok(None);
        }
        self.told_at = Some(now);
        self.told_wait = Some(since);
        Ok(Some(format!(
            "waiting for {endpoint} for {}: {}; {}",
            seconds(waited),
            reason(waiting),
            self.next_step(waiting)
        )))
    }

    /// Describes what the user can do, and what happens otherwise.
    fn next_step(&self, waiting: &Waiting) -> String {
        let is_away = waiting
            .error()
            .is_some_and(|error| error.operation == "connect to");
        let advice = if is_away {
            "check that it runs and that its address is right; "
        } else {
            ""
        };
        let otherwise = match self.give_up {
            _ if self.is_spooled => "chunks go to the spool".to_owned(),
            Some(limit) => format!("it is given up after {limit:?} (--give-up)"),
            None => "the wait has no limit (--give-up sets one)".to_owned(),
        };
        format!("{advice}{otherwise}")
    }
}

/// Patience with the target of a command, and with the medium that its spool sends to.
pub(crate) struct TargetPatience {
    target: Patience,
    spool: Option<(Patience, SpoolWatch)>,
}

impl TargetPatience {
    /// Creates the watch over a target. With a spool, only the disk is given up, because nothing is
    /// lost while the medium is away.
    pub(crate) fn new(
        endpoint: &str,
        give_up: Option<Duration>,
        quiet: bool,
        spool: Option<SpoolWatch>,
    ) -> Self {
        let behind = |spool| {
            let mut patience = Patience::new(endpoint, None, quiet);
            patience.is_spooled = true;
            (patience, spool)
        };
        Self {
            target: Patience::new(endpoint, give_up, quiet),
            spool: spool.map(behind),
        }
    }

    /// Checks the progress that the target owes now.
    ///
    /// # Errors
    ///
    /// Nothing moved for too long.
    pub(crate) fn look(&mut self, waiting: &Waiting) -> Result<(), Failure> {
        if let Some((patience, spool)) = &mut self.spool {
            patience.look(&spool.status().waiting)?;
        }
        self.target.look(waiting)
    }
}

/// Describes why nothing moves.
fn reason(waiting: &Waiting) -> String {
    match (waiting.error(), waiting.what()) {
        (Some(error), _) => error.message.to_string(),
        (None, Some(what)) => format!("no {what} yet"),
        (None, None) => "no answer yet".to_owned(),
    }
}

fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs())
}

#[cfg(test)]
mod tests;
