//! Measuring all cases.

use std::collections::BTreeMap;
use std::io::Write;

use baler_rig::machine::Provenance;
use baler_rig::schedule::interleaved;

use super::args::Args;
use super::broker::Running;
use super::case::{Broker, Case};
use super::row::{Row, compare, table};
use super::task::Written;
use crate::failure::Failure;
use crate::output::Results;

/// How many records are read back and compared by value.
const READ_BACK: u64 = 2_000;

/// Measures what was asked for and prints it to `out`; whether every row was verified.
///
/// A row that fails is told as such, and the others go on.
///
/// # Errors
///
/// A broker does not start, or the rows cannot be written.
pub fn run(args: &Args, out: &mut dyn Write) -> Result<bool, Failure> {
    // Before anything loads the machine.
    let provenance = Provenance::this();
    let mut rows = Vec::new();
    let mut cases: BTreeMap<Broker, Vec<Case>> = BTreeMap::new();
    for case in Case::all(args) {
        cases.entry(case.broker).or_default().push(case);
    }
    // One broker after the other: two that run disturb each other.
    for (broker, cases) in cases {
        rows.extend(measure(args, broker, &cases)?);
    }
    compare(&mut rows);
    let results = Results {
        name: "brokers",
        provenance: &provenance,
        rows: &rows,
    };
    let folder = args.results.as_deref();
    results.print_and_keep(args.format, folder, &|| table(&rows), out)?;
    Ok(rows.iter().all(|row| row.verified))
}

fn measure(args: &Args, broker: Broker, cases: &[Case]) -> Result<Vec<Row>, Failure> {
    let running = Running::start(broker, args)?;
    let mut progress: Vec<(Vec<Written>, Option<Failure>)> = Vec::new();
    // Once unmeasured, by value.
    for case in cases {
        let records = args.records(*case).min(READ_BACK);
        let read = running.write_and_read(case.way, records);
        progress.push((Vec::new(), read.err()));
    }
    for index in interleaved(cases.len(), args.repetitions(), args.seed) {
        let (Some(case), Some((written, failure))) = (cases.get(index), progress.get_mut(index))
        else {
            continue;
        };
        if failure.is_none() {
            let records = args.records(*case);
            match running.write(case.way, records, records / 10) {
                Ok(one) => written.push(one),
                Err(found) => *failure = Some(found),
            }
        }
    }
    let name = match broker {
        Broker::Kafka if !args.kafka_is.is_empty() => args.kafka_is.clone(),
        _ => broker.name().to_owned(),
    };
    let queue_type = (broker == Broker::Amqp).then(|| args.queue_type.name());
    let rows = cases.iter().zip(progress);
    Ok(rows
        .map(|(case, (written, failure))| {
            let failure = failure.map(|failure| failure.to_string());
            let records = args.records(*case);
            Row::new(*case, name.clone(), queue_type, &written, records, failure)
        })
        .collect())
}
