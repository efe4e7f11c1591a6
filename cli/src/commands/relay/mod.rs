//! `baler relay`: chunks of a medium to another medium, as they are.
//!
//! reader -> relay (outbox) -> writer; settled at the source when the target has confirmed

mod summary;

use std::time::{Duration, Instant};

use baler_common::transport::Connection;
use baler_relay::{Relay, RelayError, RelaySettings, RelayStats, Stop};
pub(super) use summary::{EndedBy, Summary};

use crate::args::RelayArgs;
use crate::endpoint;
use crate::exit::{Code, Failure};
use crate::observe::{Observation, RelayFigures};
use crate::output::{self, Progress};
use crate::patience::RelayPatience;
use crate::quarantine;
use crate::shutdown::Shutdown;

/// Relays until the end of the source, the count, the idle timeout or a signal.
pub(super) fn run(args: &RelayArgs, quiet: bool, shutdown: &Shutdown) -> Result<Code, Failure> {
    let target = endpoint::wrap(endpoint::writer(&args.to)?, &args.spool);
    let aside = quarantine::shared(&args.quarantine, shutdown.timeout())?;
    let source = endpoint::open_reader(&args.from, args.follow)?;
    output::listening(source.listens_on, args.port_file.as_deref(), quiet)?;
    let mut settings = RelaySettings::default();
    settings.max_chunks = args.max_chunks.get();
    settings.max_bytes = args.max_bytes.get();
    let observation = Observation::start(&args.observe, "relay", shutdown, quiet)?;
    observation.observed().endpoint("source", &source.endpoint);
    observation.observed().endpoint("sink", &target.endpoint);
    let reader = observation.tapped_reader(source.reader);
    let mut relay = Relay::new(reader, target.writer, &settings);
    let figures = RelayFigures::default();
    observation.observed().add(Box::new(figures.clone()));
    if let Some(spool) = &target.spool {
        observation.observed().add(Box::new(spool.clone()));
    }
    relay = relay.with_quarantine(move |unfit| aside.put_unfit_aside(unfit));
    let mut stop = Stop::default();
    stop.idle_timeout = args.idle_timeout;
    stop.chunks = args.count_chunks;

    let started = Instant::now();
    let progress = Progress::spinner(quiet);
    let give_up = args.give_up.limit(args.idle_timeout);
    let endpoints = (source.endpoint, target.endpoint);
    let spool = target.spool.clone();
    let mut patience = RelayPatience::new(&endpoints, give_up, quiet, target.spool);
    let mut observer = RelayObserver::new(figures);
    let ended = relay.run(stop, |relay| {
        if let Some(stats) = observer.at(relay) {
            patience.look(&stats);
        }
        progress.show(relay.received(), || {
            format!(
                "{} chunks from {} to {}",
                output::number(relay.received()),
                endpoints.0,
                endpoints.1
            )
        });
        !shutdown.is_requested() && !patience.is_over()
    });
    let ended = patience.judge(ended, failure);
    progress.clear();
    let report = relay.close(shutdown.deadline());
    observer.last(report.stats.clone());
    let served = observation.finish();
    let ended_by = EndedBy::of(&ended);
    let elapsed = started.elapsed();
    let summary = Summary::new(
        endpoints,
        &report.stats,
        ended_by,
        source.listens_on,
        elapsed,
    )
    .with_spool(spool.as_ref());
    output::result(args.format, &summary, || summary.text())?;
    for error in [report.source_error, report.sink_error]
        .into_iter()
        .flatten()
    {
        tracing::info!(%error, "closing");
    }
    if !report.stats.adds_up() {
        let message = "received is not forwarded, spooled, quarantined and given back together: a \
                       fault of baler, please report it";
        return Err(Failure::new(Code::Internal, message));
    }
    served?;
    ended?;
    if let Some(error) = report.error {
        return Err(failure(error));
    }
    Ok(summary.code())
}

pub(super) fn failure(error: RelayError) -> Failure {
    let code = match &error {
        // Without a quarantine it is the chunk that cannot pass.
        RelayError::Quarantine { .. } => Code::Output,
        _ => Code::Unavailable,
    };
    Failure::new(code, error.to_string())
}

/// Tells the log when the target is reached and lost, and shows the figures to other threads.
struct RelayObserver {
    figures: RelayFigures,
    connection: Connection,
    next: Option<Instant>,
}

impl RelayObserver {
    /// How often it looks.
    const EVERY: Duration = Duration::from_millis(100);

    fn new(figures: RelayFigures) -> Self {
        Self {
            figures,
            connection: Connection::default(),
            next: None,
        }
    }

    /// The figures, if it is time for a look.
    fn at(&mut self, relay: &Relay) -> Option<RelayStats> {
        let now = Instant::now();
        if self.next.is_some_and(|next| now < next) {
            return None;
        }
        self.next = Some(now + Self::EVERY);
        let stats = relay.stats();
        if stats.outbox.connection != self.connection {
            self.connection = stats.outbox.connection;
            let error = stats.outbox.last_error.as_ref().map(ToString::to_string);
            match self.connection {
                Connection::Open => tracing::info!("the target is connected"),
                Connection::Closed | Connection::Failed => {
                    tracing::info!(error, "the target is disconnected");
                }
            }
        }
        self.figures.show(stats.clone());
        Some(stats)
    }

    fn last(&self, stats: RelayStats) {
        self.figures.show(stats);
    }
}
