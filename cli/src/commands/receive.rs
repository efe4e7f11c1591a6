//! `baler receive`: chunks of a medium to records on standard output or in files.
//!
//! reader -> source (one a worker) -> by type -> by time -> where -> first N
//!     -> fields -> sink, counts, response times

mod settings;
mod stages;
mod summary;

use std::sync::OnceLock;

use baler_analysis::workers::{Worker, Workers};
use baler_analysis::{Source, SourceReport, Stop};
use serde_json::Value;
use settings::Settings;
use stages::Stages;
use summary::Figures;

#[cfg(feature = "kieker")]
use crate::adaptive::Adaptive;
use crate::args::ReceiveArgs;
use crate::decoding;
use crate::endpoint::{self, OpenReader};
use crate::exit::{Code, Failure};
use crate::filters;
use crate::observe::Observation;
use crate::output::{self, Progress};
use crate::patience::Patience;
use crate::quarantine::PoisonPolicy;
use crate::shutdown::{Shutdown, is_partial};
use baler_analysis::filters::Fields;

/// Receives until the end, the count, the idle timeout or a signal.
pub(super) fn run(args: ReceiveArgs, quiet: bool, shutdown: &Shutdown) -> Result<Code, Failure> {
    let settings = Settings::new(args)?;
    #[cfg(feature = "kieker")]
    let adaptive = Adaptive::start(&settings.args.adaptive, &settings.args.observe)?;
    #[cfg(feature = "kieker")]
    let probes = adaptive.admin();
    #[cfg(not(feature = "kieker"))]
    let probes = None;
    let observe = &settings.args.observe;
    let observation = Observation::start_with(observe, "receive", shutdown, quiet, probes)?;
    let mut stages = Stages::new(&settings, quiet, shutdown)?;
    observation.observed.add(Box::new(stages.progress.clone()));
    if let Some(condition) = settings.filters.condition.clone() {
        observation.observed.add(Box::new(condition));
    }
    let (quarantine, attempts) = (&settings.args.quarantine, &settings.args.attempts);
    let poison = PoisonPolicy::new(quarantine, attempts, shutdown.timeout())?;
    let parts = decoding::memory_parts(settings.fields.as_ref(), settings.args.workers);
    let decoder = decoding::decoder(&settings.args.decoding, parts)?;
    let from = endpoint::with_schemas(&settings.args.from, &settings.args.decoding.schemas);
    #[cfg(feature = "kieker")]
    let receiver = adaptive.receiver(&from, settings.args.follow)?;
    #[cfg(not(feature = "kieker"))]
    let receiver = endpoint::receiver(&from, settings.args.follow)?;
    let OpenReader {
        reader: readers,
        listens_on,
        endpoint,
        readership,
        ..
    } = receiver.open_for(settings.args.workers)?;
    let ends = readers.iter().all(|reader| reader.capability().ends);
    output::listening(listens_on, settings.args.port_file.as_deref(), quiet)?;
    observation.observed.endpoint("source", &endpoint);
    let mut stop = Stop::default();
    stop.idle_timeout = settings.args.idle_timeout;
    let give_up = settings.args.give_up.limit(settings.args.idle_timeout);
    let mut patience = Patience::new(&endpoint, give_up, quiet);
    let given_up = OnceLock::new();
    let workers = Workers::new(settings.args.workers).with_stop(stop);
    let (figures, mut readers) = (stages.figures.clone(), readers.into_iter());
    let progress = Progress::spinner(quiet);
    let taken = figures.taken.clone();
    let keep_going = || !shutdown.is_requested() && !taken.is_enough() && given_up.get().is_none();
    let ended = workers.run(
        |_| {
            let reader = readers.next().expect("a reader was opened for each worker");
            let source = Source::new(observation.observed.tapped_reader(reader));
            let span = settings.filters.span.clone();
            let source = source.with_time_span(span);
            let mut source = source.with_decoder(decoder.clone());
            if let Some(chunks) = settings.demand() {
                source = source.with_demand(chunks);
            }
            observation.observed.receives(source.watch());
            source = poison.apply(source);
            let stage = stages.next()?;
            Ok(Worker { source, stage })
        },
        keep_going,
        || shutdown.deadline(),
        |group| {
            // A reader that stops has not reconnected, so no such message appears.
            if keep_going()
                && !group.is_stopped()
                && let Err(failure) = patience.look(&group.waiting())
            {
                given_up.get_or_init(|| failure);
            }
            let (chunks, records) = group.progress();
            progress.show(records, || {
                format!(
                    "{} records in {} chunks from {endpoint}",
                    output::number(records),
                    output::number(chunks),
                )
            });
        },
    );
    progress.clear();
    let ended_by = match &ended.error {
        _ if shutdown.has_panicked() => "error",
        // An error during draining does not change the reason for the end.
        Some(_) if !shutdown.is_requested() => "error",
        _ if given_up.get().is_some() => "error",
        _ if figures.taken.is_enough() => "count",
        _ if shutdown.is_requested() => "signal",
        _ if ends => "end",
        _ => "idle_timeout",
    };
    let shown = observation.finish();
    let mut summary = summary::summary(&ended.report, &figures, ended_by);
    filters::insert(settings.filters.condition.as_ref(), &mut summary);
    if let Some(address) = listens_on {
        output::insert(&mut summary, "listened_on", address.to_string());
    }
    // Giving up a medium explains the error that follows, so this failure comes first.
    let failure = given_up.into_inner();
    let failure = failure.or_else(|| ended.error.map(Failure::from));
    let known = settings.fields.as_ref().map_or(Ok(()), Fields::check);
    let known = known.map_err(Failure::from);
    let result = failure.map_or_else(|| shown.and(known), Err);
    let total = &ended.report.total;
    let missing = total.missing(readership);
    let code = finish(&settings, summary, &figures, total, missing, result, quiet)?;
    Ok(match code {
        Code::Done if ended_by == "signal" && is_partial(total.reached_end, shutdown) => {
            Code::Incomplete
        }
        code => code,
    })
}

/// Writes the summary in any case, and decides on the exit code of a command that was not interrupted.
fn finish(
    settings: &Settings,
    summary: Value,
    figures: &Figures,
    report: &SourceReport,
    missing: u64,
    mut result: Result<(), Failure>,
    quiet: bool,
) -> Result<Code, Failure> {
    if let Err(failure) = &mut result
        && failure.code == Code::Incomplete
    {
        let given_back = output::number(report.given_back);
        failure.message.push_str(&format!(
            "; {given_back} chunks were given back and come again"
        ));
    }
    if let Some(path) = &settings.args.summary {
        output::json_file(path, &summary)?;
    }
    let condition = settings.filters.condition.as_ref();
    // Nobody reads the output any more: end quietly.
    let silent = matches!(&result, Err(failure) if failure.code == Code::Done);
    if !quiet && !silent {
        output::say(summary::text(summary, figures).trim_end());
        filters::report_undecided(condition);
    }
    result?;
    if report.quarantined > 0 || missing > 0 || report.reader.removals > 0 {
        return Ok(Code::Data);
    }
    Ok(filters::code(condition))
}
