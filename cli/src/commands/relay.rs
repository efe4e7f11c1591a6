//! `baler relay`: sends the chunks of a medium to another medium as they are.
//!
//! reader -> relay (outbox) -> writer; settled at the source when the target has confirmed

use std::time::{Duration, Instant};

use baler_common::transport::Connection;
use baler_connector_file::spool::{SpoolStatus, SpoolWatch};
use serde_json::{Value, json};

#[cfg(feature = "kieker")]
use crate::adaptive::Adaptive;
use crate::args::RelayArgs;
use crate::endpoint;
use crate::exit::{Code, Failure, transport_code};
use crate::observe::{Observation, RelayFigures};
use crate::output::figures::not_kept;
use crate::output::{self, Progress};
use crate::patience::{Patience, TargetPatience};
use crate::quarantine;
use crate::relay::{self, Ended, Relay, RelayError, RelayStats, Stop};
use crate::shipping::{
    report_spool_losses, report_writer, send_on_what_is_spooled, spool_figures, spool_lost_chunks,
};
use crate::shutdown::{Shutdown, is_partial};

/// How often the relay's figures are read.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Relays until the end of the source, the count, the idle timeout or a signal.
pub(super) fn run(args: &RelayArgs, quiet: bool, shutdown: &Shutdown) -> Result<Code, Failure> {
    let with_schemas = |uri| endpoint::with_schemas(uri, &args.schemas);
    let target = endpoint::spooled_writer(&with_schemas(&args.to), &args.spool)?;
    let aside = quarantine::shared(&args.quarantine, shutdown.timeout())?;
    let from = with_schemas(&args.from);
    #[cfg(feature = "kieker")]
    let adaptive = Adaptive::start(&args.adaptive, &args.observe)?;
    #[cfg(feature = "kieker")]
    let source = adaptive.receiver(&from, args.follow)?.open()?;
    #[cfg(not(feature = "kieker"))]
    let source = endpoint::open_reader(&from, args.follow)?;
    output::listening(source.listens_on, args.port_file.as_deref(), quiet)?;
    let mut settings = relay::settings();
    settings.max_chunks = args.max_chunks.get();
    settings.max_bytes = args.max_bytes.get();
    #[cfg(feature = "kieker")]
    let probes = adaptive.admin();
    #[cfg(not(feature = "kieker"))]
    let probes = None;
    let observation = Observation::start_with(&args.observe, "relay", shutdown, quiet, probes)?;
    let reader = observation.observed.tapped_reader(source.reader);
    let relay = Relay::new(reader, target.writer, settings);
    let passage = Passage {
        relay: relay.with_quarantine(aside.keeping_sound_chunks()),
        from: source.endpoint,
        to: target.endpoint,
        spool: target.spool,
        stop: Stop {
            idle_timeout: args.idle_timeout,
            chunks: args.count_chunks,
        },
        give_up: args.give_up.limit(args.idle_timeout),
    };
    let (mut document, ended) = passage.run(&observation, quiet, shutdown);
    let served = observation.finish();
    if let Some(address) = source.listens_on {
        output::insert(&mut document, "listened_on", address.to_string());
    }
    output::document(args.format, &document)?;
    served?;
    ended
}

/// A relay between two endpoints, with the conditions of its end.
pub(super) struct Passage {
    pub(super) relay: Relay,
    pub(super) from: String,
    pub(super) to: String,
    pub(super) spool: Option<SpoolWatch>,
    pub(super) stop: Stop,
    pub(super) give_up: Option<Duration>,
}

/// Logs when the target is reached and when it is lost.
fn log_change(connection: &mut Connection, stats: &RelayStats) {
    let outbox = &stats.outbox;
    if std::mem::replace(connection, outbox.connection) == outbox.connection {
        return;
    }
    let error = outbox.last_error.as_ref().map(ToString::to_string);
    match outbox.connection {
        Connection::Open => tracing::info!("the target is connected"),
        Connection::Closed | Connection::Failed => {
            tracing::info!(error, "the target is disconnected");
        }
    }
}

impl Passage {
    /// Relays to the end, drains, and shows the figures meanwhile. Returns a document and the
    /// result. The names of the document are part of the program's interface. In it, `received` is
    /// the sum of `forwarded`, `spooled`, `quarantined` and `given_back`.
    pub(super) fn run(
        mut self,
        observation: &Observation,
        quiet: bool,
        shutdown: &Shutdown,
    ) -> (Value, Result<Code, Failure>) {
        let observed = &observation.observed;
        observed.endpoint("source", &self.from);
        observed.endpoint("sink", &self.to);
        let figures = RelayFigures::default();
        observed.add(Box::new(figures.clone()));
        if let Some(spool) = &self.spool {
            observed.add(Box::new(spool.clone()));
        }
        let mut source = Patience::new(&self.from, self.give_up, quiet);
        let mut target = TargetPatience::new(&self.to, self.give_up, quiet, self.spool.clone());
        let mut given_up = None;
        let mut connection = Connection::default();
        let started = Instant::now();
        let mut next_poll = started;
        let progress = Progress::spinner(quiet);
        let ended = self.relay.run(self.stop, |relay| {
            let now = Instant::now();
            if now >= next_poll {
                next_poll = now + POLL_INTERVAL;
                let stats = relay.stats();
                // Before the messages: a signal in response to a message must show the figures of
                // this moment.
                figures.show(stats.clone());
                let looked = source.look(&stats.source_waiting);
                let looked_at_target = target.look(&stats.outbox.waiting);
                given_up = looked.and(looked_at_target).err();
                log_change(&mut connection, &stats);
            }
            progress.show(relay.received(), || {
                let received = output::number(relay.received());
                format!("{received} chunks from {} to {}", self.from, self.to)
            });
            !shutdown.is_requested() && given_up.is_none()
        });
        if let (Some(spool), Ok(Ended::Count | Ended::End | Ended::IdleTimeout), None) =
            (&self.spool, &ended, &given_up)
        {
            send_on_what_is_spooled(spool, started, shutdown, || false);
        }
        progress.clear();
        let report = self.relay.close(shutdown.deadline());
        figures.show(report.stats.clone());
        for error in report.source_error.iter().chain(&report.sink_error) {
            tracing::info!(%error, "closing");
        }
        let ended_by = match &ended {
            _ if given_up.is_some() || shutdown.has_panicked() => "error",
            Err(_) => "error",
            Ok(Ended::Count) => "count",
            Ok(Ended::End) => "end",
            Ok(Ended::IdleTimeout) => "idle_timeout",
            Ok(Ended::Stopped) => "signal",
        };
        let spool = self.spool.map(|spool| spool.status());
        let (stats, elapsed) = (&report.stats, started.elapsed());
        let mut document = json!({
            "from": self.from,
            "to": self.to,
            "received": stats.received,
            "forwarded": stats.forwarded,
            "spooled": stats.spooled,
            "quarantined": stats.quarantined,
            "given_back": stats.given_back,
            "received_bytes": stats.received_bytes,
            "forwarded_bytes": stats.forwarded_bytes,
            "refused": stats.refused,
            "damaged": stats.damaged,
            "not_kept": not_kept(&stats.not_kept()),
            "removals": stats.source.removals,
            "removed": stats.source.removed,
            "redelivered": stats.redelivered,
            "identities_made": stats.identities_made,
            "stale": stats.stale,
            "source_errors": stats.source_errors,
            "retries": stats.outbox.retries,
            "reconnects": stats.outbox.reopened,
            "seconds": output::seconds(elapsed),
            "chunks_per_second": output::per_second(stats.forwarded, elapsed),
            "ended_by": ended_by,
        });
        report_writer(&stats.outbox.writer, &mut document);
        if let Some(spool) = &spool {
            output::insert(&mut document, "spool", spool_figures(spool));
            report_spool_losses(spool);
        }
        let code = if stats.adds_up() {
            Ok(match code(stats, spool.as_ref()) {
                Code::Done if is_partial(stats.reached_end, shutdown) => Code::Incomplete,
                code => code,
            })
        } else {
            let message = "received is not forwarded, spooled, quarantined and given back \
                           together: a fault of baler, please report it";
            Err(Failure::new(Code::Internal, message))
        };
        // A medium that was given up explains why the relay stopped.
        let failure = given_up
            .or_else(|| ended.err().or(report.error).map(failure))
            .filter(|_| code.is_ok());
        (document, failure.map_or(code, Err))
    }
}

/// Returns the exit code of a relay that nothing stopped.
fn code(stats: &RelayStats, spool: Option<&SpoolStatus>) -> Code {
    let has_lost = stats.source.removals > 0
        || stats.outbox.writer.losses > 0
        || spool.is_some_and(spool_lost_chunks);
    if stats.quarantined > 0 || stats.damaged > 0 || has_lost {
        Code::Data
    } else if stats.given_back > 0 {
        Code::Incomplete
    } else {
        Code::Done
    }
}

fn failure(error: RelayError) -> Failure {
    let code = match &error {
        RelayError::Quarantine { .. } => Code::Output,
        RelayError::Source(error) => transport_code(error),
        _ => Code::Unavailable,
    };
    Failure::new(code, error.to_string())
}

#[cfg(test)]
mod tests;
