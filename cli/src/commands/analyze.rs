//! `baler analyze`: puts traces together from the records of a medium, and reports on them.
//!
//! source -> by type -> by time -> where -> [`TraceStage`] -> document, files, page, executions

mod executions;
pub(super) mod files;
mod partial;

use std::cmp::Reverse;
use std::collections::HashSet;
use std::num::NonZeroUsize;

use baler_analysis::traces::{Level, TraceDocument, TraceSettings, TraceStage};
use baler_analysis::{Source, Stage};
use baler_common::number::to_usize;
use baler_common::transport::Browse;
use serde::Serialize;
use serde_json::{Value, json};

use crate::args::AnalyzeArgs;
use crate::decoding;
use crate::endpoint::{self, OpenReader};
use crate::exit::{Code, Failure};
use crate::filters::{self, Filters};
use crate::output::{self, Progress};
use crate::patience::Patience;
use crate::shutdown::{Shutdown, is_partial};
use baler_analysis::filters::Condition;
use executions::Executions;
use partial::PartialFile;

/// The maximum number of operations in the table.
const MAX_ROWS: usize = 30;

/// Analyses until the end of the source, the idle timeout or a signal.
pub(super) fn run(args: &AnalyzeArgs, quiet: bool, shutdown: &Shutdown) -> Result<Code, Failure> {
    let condition = args.condition.expression()?;
    let counting = condition.clone();
    let mut traces = TraceStage::new(settings(args));
    if let Some(folder) = &args.output {
        traces = files::with_list(traces, folder)?;
    }
    let executions = args.executions.as_deref();
    let executions = executions.map(|to| Executions::start(to, args, quiet, shutdown));
    let executions = executions.transpose()?;
    if let Some(executions) = &executions {
        traces = executions.take_from(traces);
    }
    let read = match args.merge.is_empty() {
        true => read(args, condition, &traces, quiet, shutdown),
        false => {
            partial::merge(&mut traces, &args.merge)?;
            let names = args.merge.iter().map(|path| path.display().to_string());
            Ok(ReadFigures {
                endpoint: names.collect::<Vec<_>>().join(", "),
                records: traces.read(|analysis| analysis.profile().counts().records),
                refused: 0,
                is_partial: false,
            })
        }
    };
    // A medium that was given up explains why the source stopped, not the other way round.
    let written = executions.map(Executions::finish).transpose()?;
    let read = read?;
    if let Some(folder) = &args.output {
        traces.read(|analysis| files::write(analysis, folder, args.self_loops))?;
    }
    if let Some(path) = &args.report {
        files::report(&traces, path, &format!("Traces of {}", read.endpoint))?;
    }
    let mut head = json!({
        "from": read.endpoint,
        "records": read.records,
        "refused": read.refused,
    });
    filters::insert(counting.as_ref(), &mut head);
    let (executions, code) = written.unzip();
    traces.read(|analysis| {
        let document = Document {
            head,
            traces: analysis.document(args.self_loops),
            executions,
        };
        output::result(args.format, &document, || document.text())
    })?;
    let code = code.unwrap_or(Code::Done);
    Ok(match code {
        _ if read.refused > 0 => Code::Data,
        Code::Done if read.is_partial => Code::Incomplete,
        Code::Done => filters::code(counting.as_ref()),
        code => code,
    })
}

/// Analyses all records of the source.
fn read(
    args: &AnalyzeArgs,
    condition: Option<Condition>,
    traces: &TraceStage,
    quiet: bool,
    shutdown: &Shutdown,
) -> Result<ReadFigures, Failure> {
    let sink: Box<dyn Stage> = match &args.partial {
        Some(path) => {
            let interval = args.partial_interval;
            Box::new(PartialFile::open(traces.clone(), path, interval)?)
        }
        None => Box::new(traces.clone()),
    };
    let filters = Filters::new(&args.types, args.since, args.until, condition)?;
    let from = args.from.as_deref();
    let from = from.expect("clap demands --from, unless partial results are merged");
    let from = endpoint::with_schemas(from, &args.decoding.schemas);
    let open = open_medium(&from, args.follow)?;
    let read = read_medium(args, open, &filters, sink, quiet, shutdown)?;
    if !quiet {
        filters::report_undecided(filters.condition.as_ref());
    }
    Ok(read)
}

/// Counts of the source.
struct ReadFigures {
    endpoint: String,
    records: u64,
    /// Chunks that do not decode, lines that are not records, removals and losses.
    refused: u64,
    /// Whether a signal came before the end.
    is_partial: bool,
}

fn settings(args: &AnalyzeArgs) -> TraceSettings {
    let mut settings = TraceSettings::default();
    settings.max_duration = args.max_trace_duration;
    settings.max_waiting = to_usize(args.max_waiting);
    settings.repair = args.repair;
    settings.chunks_once = args.partial.is_some();
    if !args.traces.is_empty() {
        settings.only = Some(HashSet::from_iter(args.traces.iter().copied()));
    }
    settings
}

/// Opens a medium: to receive its chunks if `follow` is set, otherwise only to look at the chunks
/// that it has now.
fn open_medium(text: &str, follow: bool) -> Result<OpenReader, Failure> {
    if follow {
        return endpoint::open_reader(text, true);
    }
    let open = endpoint::open_tap(text, Browse::UntilNow)?;
    // A source that listens is allowed: its senders expect their chunks to be received.
    if !open.only_looks && open.listens_on.is_none() {
        return Err(Failure::configuration(format!(
            "{}: its chunks cannot be analysed without being taken from it; use --follow, which \
             acknowledges them, or copy them to a folder with relay",
            open.endpoint
        )));
    }
    Ok(open)
}

/// Analyses the chunks of a medium.
fn read_medium(
    args: &AnalyzeArgs,
    open: OpenReader,
    filters: &Filters,
    sink: Box<dyn Stage>,
    quiet: bool,
    shutdown: &Shutdown,
) -> Result<ReadFigures, Failure> {
    output::listening(open.listens_on, args.port_file.as_deref(), quiet)?;
    let decoder = decoding::decoder(&args.decoding, NonZeroUsize::MIN)?;
    let source = Source::new(open.reader).with_decoder(decoder);
    let mut source = source.with_time_span(filters.span.clone());
    if args.partial.is_some() {
        source = source.with_demand(partial::MAX_HELD);
    }
    let give_up = args.give_up.limit(args.idle_timeout);
    let mut patience = Patience::new(&open.endpoint, give_up, quiet);
    let progress = Progress::spinner(quiet);
    let idle_timeout = args.idle_timeout;
    let stage = filters.before(sink);
    let (report, ran) = patience.run_source(source, stage, idle_timeout, shutdown, |report| {
        progress.show(report.records, || {
            let records = output::number(report.records);
            format!("{records} records from {}", open.endpoint)
        });
        !shutdown.is_requested()
    });
    ran?;
    Ok(ReadFigures {
        endpoint: open.endpoint,
        records: report.records,
        refused: report.quarantined + report.reader.removals,
        is_partial: is_partial(report.reached_end, shutdown),
    })
}

/// The result of the command.
#[derive(Serialize)]
struct Document<'a> {
    /// The figures of the source.
    #[serde(flatten)]
    head: Value,
    #[serde(flatten)]
    traces: TraceDocument<'a>,
    /// The figures of `--executions`.
    #[serde(skip_serializing_if = "Option::is_none")]
    executions: Option<Value>,
}

impl Document<'_> {
    /// Formats the document as text: figures, and the slowest of the most frequent operations.
    fn text(&self) -> String {
        let from = output::text_of(&self.head, "from").to_owned();
        let mut figures = vec![("from".to_owned(), from)];
        let mut traces = self.traces.figures().clone();
        for (name, shown) in [
            ("first_unix_ns", "first began"),
            ("last_unix_ns", "last ended"),
        ] {
            let time = output::take(&mut traces, name).as_i64().map(output::time);
            figures.extend(time.map(|time| (shown.to_owned(), time)));
        }
        figures.extend(output::figures_of(&traces));
        if let Some(executions) = &self.executions {
            let to = output::text_of(executions, "to").to_owned();
            let delivered = output::number(output::count_of(executions, "delivered"));
            let rows = [("executions to", to), ("executions delivered", delivered)];
            figures.extend(rows.map(|(name, value)| (name.to_owned(), value)));
        }
        let more = |all: usize, what: &str| match all.saturating_sub(MAX_ROWS) {
            0 => String::new(),
            left => {
                let left = output::number(left as u64);
                format!("  and {left} more {what}: see --format json, --report or --output\n")
            }
        };
        let operations = self.traces.operations();
        let more_operations = more(operations.len(), "operations");
        let operations: Vec<Value> = operations.take(MAX_ROWS).collect();
        let components = self.traces.dependencies(Level::Components);
        let more_components = more(components.iter().len(), "dependencies");
        let mut dependencies: Vec<_> = components.iter().collect();
        dependencies.sort_by_key(|it| Reverse(it.count));
        let rows = dependencies.into_iter().take(MAX_ROWS).map(|it| {
            let count = output::number(it.count);
            vec![it.from.to_owned(), it.to.to_owned(), count]
        });
        [
            output::two_columns(&figures),
            output::figures::operations_table(&operations) + &more_operations,
            output::table(&["component", "calls component", "count"], &[2], rows)
                + &more_components,
        ]
        .join("\n")
    }
}
