//! `baler sweep`: measures the cost of each chunk size on a medium.
//!
//! The measurement is `baler_rig::sweep`; the program gives it the media.

use std::any::Any;
use std::fs;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use baler_common::container::Limits;
use baler_common::transport::{Browse, ChunkWriter, OpenReader, Received};
use baler_rig::Failure as Unmeasured;
use baler_rig::harness::Standing;
use baler_rig::sweep::{self, PlainWriter, Program, SweepArgs, UserRecords};

use super::overhead::{failed, show};
use crate::endpoint;
use crate::exit::{Code, Failure};
use crate::output::{self, Progress};
use crate::patience::GIVE_UP;
use crate::shutdown::Shutdown;

/// The hidden command that measuring processes run.
const ORDER: &str = "sweep-order";

/// How long a broker may take to answer.
const REACH: Duration = Duration::from_secs(10);

/// A source of records counts as read when nothing came for this long.
const SILENCE: Duration = Duration::from_secs(3);

/// The maximum number of unsettled chunks of a source. They go back to it when all records are
/// copied.
const DEMAND: usize = 20_000;

/// This program, as the measurement uses it.
struct This;

/// Connects to the broker, if the URI has one, and closes the connection. A missing broker is thus
/// reported by name and at once.
fn reach(uri: &str) -> Result<(), Failure> {
    let brokers = ["amqp:", "amqps:", "kafka:"];
    if brokers.iter().any(|scheme| uri.starts_with(scheme)) {
        let mut writer = endpoint::writer(uri)?.writer;
        let by = Instant::now() + REACH;
        writer.reopen(by)?;
        writer.close(by);
    }
    Ok(())
}

impl Program for This {
    fn words(&self) -> &[&str] {
        &[ORDER]
    }

    fn reach(&self, uri: &str) -> Result<(), Unmeasured> {
        reach(uri).map_err(unmeasured)
    }

    fn writer(&self, uri: &str) -> Result<Box<dyn ChunkWriter>, Unmeasured> {
        Ok(endpoint::writer(uri).map_err(unmeasured)?.writer)
    }

    fn reader(&self, uri: &str) -> Result<OpenReader, Unmeasured> {
        let opened = endpoint::open_reader(uri, true).map_err(unmeasured)?;
        Ok(OpenReader {
            reader: opened.reader,
            listens_on: opened.listens_on,
            warning: None,
        })
    }

    fn plain(&self, uri: &str, awaiting: bool) -> Result<Box<dyn PlainWriter>, Unmeasured> {
        endpoint::plain_writer(uri, awaiting).map_err(unmeasured)
    }

    fn cluster(&self, topic: &str, partitions: u16) -> Result<(String, Box<dyn Any>), Unmeasured> {
        endpoint::embedded_cluster(topic, partitions)
    }
}

fn unmeasured(failure: Failure) -> Unmeasured {
    Unmeasured::new(failure.message)
}

/// Measures the chosen cases and prints the result.
pub(super) fn run(args: &SweepArgs, quiet: bool, shutdown: &Shutdown) -> Result<Code, Failure> {
    // Reports a wrong URI before anything is measured.
    for uri in [Some(&args.to), args.from.as_ref()].into_iter().flatten() {
        endpoint::writer(uri)?;
    }
    if let Some(uri) = &args.records_from {
        endpoint::receiver(uri, false)?;
    }
    args.check()
        .map_err(|failure| Failure::configuration(failure.to_string()))?;
    fs::create_dir_all(&args.results)
        .map_err(|error| Failure::output(args.results.display(), &error))?;
    reach(&args.to)?;
    let records = args.records_from.as_deref();
    let records = records.map(|uri| user_records(uri, quiet, shutdown));
    let records = records.transpose()?;
    let bar = Progress::bar(100, quiet);
    let mut progress = |standing: Standing| {
        let Standing { done, of, left } = standing;
        let share = (done * 100 / of.max(1)) as u64;
        bar.show(share, || format!("{done} of {of} runs{}", in_words(left)));
        !shutdown.is_requested()
    };
    let measured = sweep::command(args, records.as_ref(), &This, &mut progress);
    bar.clear();
    if shutdown.is_requested() {
        let kept = args.results.display();
        let message = format!(
            "ended by a signal before everything was measured; what was is in {kept}, and the same \
             command goes on"
        );
        return Err(Failure::new(Code::Incomplete, message));
    }
    let outcome = measured.map_err(|failure| {
        // A sweep seldom fails for another reason than a broker that is gone.
        reach(&args.to).err().unwrap_or_else(|| failed(failure))
    })?;
    show(&outcome)
}

/// Copies the first records of a source. The source keeps them.
fn user_records(uri: &str, quiet: bool, shutdown: &Shutdown) -> Result<UserRecords, Failure> {
    let mut records = UserRecords::new(uri);
    let open = endpoint::open_tap(uri, Browse::UntilNow)?;
    let skipped = from_medium(open, &mut records, quiet, shutdown)?;
    let endpoint = endpoint::shown(uri);
    if skipped > 0 && !quiet {
        output::say(format_args!(
            "warning: {skipped} chunks or lines of {endpoint} were skipped: they do not decode"
        ));
    }
    if records.is_empty() && !shutdown.is_requested() {
        return Err(Failure::new(
            Code::Data,
            format!(
                "{endpoint} has no records to measure with: send some there first (baler send --to, \
                 baler generate --to), or leave out --records-from to measure with synthetic calls"
            ),
        ));
    }
    Ok(records)
}

/// Copies records from a medium. Returns the number of chunks that do not decode.
fn from_medium(
    mut open: endpoint::OpenReader,
    records: &mut UserRecords,
    quiet: bool,
    shutdown: &Shutdown,
) -> Result<u64, Failure> {
    output::listening(open.listens_on, None, quiet)?;
    open.reader.set_demand(DEMAND);
    let mut decoder = baler::decoder(Limits::default());
    let mut skipped = 0;
    open.look_through(SILENCE, Some(GIVE_UP), quiet, shutdown, |received| {
        let decoded = match received {
            Received::Chunk(delivery) => decoder.decode(&delivery.bytes).ok(),
            Received::Damaged(_) => None,
            _ => return Ok(ControlFlow::Continue(())),
        };
        let Some(decoded) = decoded else {
            skipped += 1;
            return Ok(ControlFlow::Continue(()));
        };
        let has_room = decoded.batch.records().all(|record| records.push(record));
        Ok(match has_room {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        })
    })?;
    Ok(skipped)
}

/// Carries out an order of the parent process.
pub(super) fn run_order(order: &str) -> Result<Code, Failure> {
    sweep::run_order(order, &This).map_err(failed)?;
    Ok(Code::Done)
}

fn in_words(left: Option<Duration>) -> String {
    match left.map(|left| left.as_secs()) {
        None => String::new(),
        Some(seconds) if seconds < 90 => format!(", {seconds} s left"),
        Some(seconds) => format!(", {} min left", seconds.div_ceil(60)),
    }
}
