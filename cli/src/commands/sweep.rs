//! `baler sweep`: what each chunk size costs on a medium.
//!
//! The measurement is `baler_rig::sweep`; the program gives it the media.

use std::fs;
use std::time::{Duration, Instant};

use baler_common::transport::{ChunkWriter, OpenReader};
use baler_rig::Failure as Unmeasured;
use baler_rig::harness::Standing;
use baler_rig::sweep::{self, Cluster, PlainWriter, Program, SweepArgs};

use crate::endpoint;
use crate::exit::{Code, Failure};
use crate::output::{self, Progress};
use crate::shutdown::Shutdown;

/// The command that processes of their own run.
const ORDER: &str = "sweep-order";

/// How long a broker may take to answer.
const REACH: Duration = Duration::from_secs(10);

/// This program.
struct This;

/// Connects to the broker, where there is one, and ends the connection: one that is not there is
/// told by its name and at once.
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

    fn cluster(&self, topic: &str, partitions: u16) -> Result<Box<dyn Cluster>, Unmeasured> {
        endpoint::embedded_cluster(topic, partitions)
    }
}

fn unmeasured(failure: Failure) -> Unmeasured {
    Unmeasured::new(failure.message)
}

/// Measures what was asked for and prints it.
pub(super) fn run(args: &SweepArgs, quiet: bool, shutdown: &Shutdown) -> Result<Code, Failure> {
    // Wrong ones are told as such, before anything is measured.
    for uri in [Some(&args.to), args.from.as_ref()].into_iter().flatten() {
        endpoint::writer(uri)?;
    }
    args.check()
        .map_err(|failure| Failure::configuration(failure.to_string()))?;
    fs::create_dir_all(&args.results)
        .map_err(|error| Failure::output(args.results.display(), &error))?;
    reach(&args.to)?;
    let bar = Progress::bar(100, quiet);
    let mut progress = |standing: Standing| {
        let Standing { done, of, left } = standing;
        let share = u64::try_from(done * 100 / of.max(1)).unwrap_or(0);
        bar.show(share, || format!("{done} of {of} runs{}", in_words(left)));
        !shutdown.is_requested()
    };
    let measured = sweep::command(args, &This, &mut progress);
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
        // What keeps a sweep from going on is seldom anything but a broker that is gone.
        reach(&args.to)
            .err()
            .unwrap_or_else(|| Failure::new(Code::Internal, failure.to_string()))
    })?;
    output::print(&outcome.text)?;
    Ok(if outcome.is_right {
        Code::Done
    } else {
        Code::Internal
    })
}

/// Does what the process that started this one wants.
pub(super) fn obey(order: &str) -> Result<Code, Failure> {
    sweep::obey(order, &This)
        .map_err(|failure| Failure::new(Code::Internal, failure.to_string()))?;
    Ok(Code::Done)
}

fn in_words(left: Option<Duration>) -> String {
    match left.map(|left| left.as_secs()) {
        None => String::new(),
        Some(seconds) if seconds < 90 => format!(", {seconds} s left"),
        Some(seconds) => format!(", {} min left", seconds.div_ceil(60)),
    }
}
