//! Measuring all cases.

use std::fs;
use std::io::Write;
use std::time::{Duration, Instant};

use baler_faults::RabbitMqNode;
use baler_rig::checksum::Checksum;
use baler_rig::child::Child;
use baler_rig::footprint::{cpu_time_of, machine_cpu_time};
use baler_rig::machine::Provenance;
use baler_rig::schedule::interleaved;

use super::args::{Args, Case};
use super::consumer::{Consumed, Consuming, Said};
use super::feed::{Chunks, Feed};
use super::row::{Row, Sample, table};
use baler_rig::lines::understand;

use crate::failure::Failure;
use crate::medium::Medium;
use crate::mock::MockBroker;
use crate::output::Results;
use crate::role::Role;

/// How long a repetition may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// How many bytes may wait in the mock cluster, which drops beyond 5 MiB a partition.
const MOCK_HOLDS: u64 = 4 << 20;

const NAME: &str = "scaling";

/// Measures what was asked for and prints it to `out`; whether every row was verified.
///
/// # Errors
///
/// A broker does not start, or the rows cannot be written.
pub fn run(args: &Args, out: &mut dyn Write) -> Result<bool, Failure> {
    let provenance = Provenance::this();
    let cases = args.cases();
    let node = match cases.iter().any(|case| case.medium == Medium::Amqp) {
        true => Some(RabbitMqNode::start().map_err(Failure::cannot("start RabbitMQ"))?),
        false => None,
    };
    let mut progress: Vec<(Vec<Sample>, Option<String>)> = vec![(Vec::new(), None); cases.len()];
    let order = interleaved(cases.len(), args.repetitions.get(), args.seed);
    for (number, index) in order.into_iter().enumerate() {
        let (Some(case), Some((samples, failure))) = (cases.get(index), progress.get_mut(index))
        else {
            continue;
        };
        if failure.is_none() {
            match measure(*case, args, node.as_ref(), number) {
                Ok(sample) => samples.push(sample),
                Err(found) => *failure = Some(found.to_string()),
            }
        }
    }
    let rows = cases.iter().zip(progress);
    let rows: Vec<Row> = rows
        .map(|(case, (samples, failure))| {
            Row::new(*case, &samples, failure, provenance.machine.cores)
        })
        .collect();
    let results = Results {
        name: "scaling",
        provenance: &provenance,
        rows: &rows,
    };
    let folder = args.results.as_deref();
    results.print_and_keep(args.format, folder, &|| table(&rows), out)?;
    Ok(rows.iter().all(|row| row.verified))
}

fn measure(
    case: Case,
    args: &Args,
    node: Option<&RabbitMqNode>,
    number: usize,
) -> Result<Sample, Failure> {
    let chunks = Chunks::new(args.seed, case.chunk_records)?;
    let total = args.chunks(case);
    // Its topic, its group and its queue are new each time.
    let (mock, node) = match (case.medium, node) {
        (Medium::Amqp, Some(node)) => (None, Some(node)),
        _ => (Some(MockBroker::start(NAME, case.partitions)?), None),
    };
    let (uri, broker) = match (&mock, node) {
        (Some(mock), _) => (
            format!("kafka://{}/{NAME}?partition_by=round_robin", mock.address()),
            mock.pid(),
        ),
        (None, Some(node)) => (node.uri(&format!("?queue={NAME}-{number}")), beam()?),
        (None, None) => return Err(Failure::new("there is no broker")),
    };
    let mut feed = Feed::open(&uri)?;
    // The mock cluster answers a fetch that found nothing when its time is over, and not when
    // something comes: half a second by default, in which nobody does anything.
    let readers = match mock {
        Some(_) => format!("{uri}&fetch.wait.max.ms=2"),
        None => uri,
    };
    let mut group = Group::start(&readers, case.consumers)?;
    let holds = match mock {
        Some(_) => (MOCK_HOLDS / chunks.mean_bytes()).max(1),
        None => total,
    };
    if mock.is_some() {
        group.begin()?;
        group.wait_for_lanes(case)?;
    } else {
        while feed.offered() < total {
            feed.offer(&chunks, total)?;
        }
        feed.settle()?;
    }
    let looked = Failure::cannot("look at the CPU time");
    let before = (
        cpu_time_of(broker).map_err(&looked)?,
        machine_cpu_time().map_err(&looked)?.0,
        Instant::now(),
    );
    if mock.is_none() {
        group.begin()?;
    }
    let by = Instant::now() + PATIENCE;
    while group.chunks() < total {
        if Instant::now() > by {
            let chunks = group.chunks();
            return Err(Failure::new(format!("{chunks} chunks of {total} arrived")));
        }
        feed.offer(&chunks, total.min(group.chunks() + holds))?;
        group.listen(Duration::from_millis(1))?;
    }
    let seconds = before.2.elapsed().as_secs_f64();
    let broker_cpu = cpu_time_of(broker).map_err(&looked)? - before.0;
    let machine_cpu = machine_cpu_time().map_err(&looked)?.0 - before.1;
    let consumed = group.end()?;
    check(&chunks, total, &consumed)?;
    let busy: Vec<_> = consumed.iter().filter(|it| it.chunks > 0).collect();
    let first = busy.iter().map(|it| it.first_ns).min().unwrap_or(0);
    let last = busy.iter().map(|it| it.last_ns).max().unwrap_or(0);
    Ok(Sample {
        records: consumed.iter().map(|it| it.records).sum(),
        chunks: total,
        seconds: Duration::from_nanos(last.saturating_sub(first)).as_secs_f64(),
        consumers_cpu: consumed.iter().map(|it| it.cpu_seconds).sum(),
        broker_cores: broker_cpu.as_secs_f64() / seconds,
        machine_cores: machine_cpu.as_secs_f64() / seconds,
        busy: busy.len(),
    })
}

fn check(chunks: &Chunks, total: u64, consumed: &[Consumed]) -> Result<(), Failure> {
    let mut found = Checksum::default();
    for consumed in consumed {
        found.merge(Checksum {
            records: consumed.records,
            hash: consumed.hash,
            foreign: 0,
        });
    }
    if found == chunks.checksum(total) {
        return Ok(());
    }
    let found = found.records;
    Err(Failure::new(format!(
        "{found} records arrived, or others than were sent"
    )))
}

/// The process of this program's node: the one that works in a folder with this program's number.
fn beam() -> Result<u32, Failure> {
    let folder = format!("baler-rabbitmq-{}-", std::process::id());
    let processes = fs::read_dir("/proc").map_err(Failure::cannot("look for RabbitMQ"))?;
    for process in processes.flatten() {
        let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        if line.contains("beam") && line.contains(&folder) {
            let pid = process.file_name().to_string_lossy().parse();
            return pid.map_err(Failure::cannot("understand a process id"));
        }
    }
    Err(Failure::new(format!("no process works in {folder}")))
}

/// The consumers.
struct Group {
    children: Vec<Child>,
    lanes: Vec<usize>,
    chunks: Vec<u64>,
}

impl Group {
    fn start(uri: &str, consumers: usize) -> Result<Self, Failure> {
        let role = Role::Consume(Consuming {
            uri: uri.to_owned(),
        });
        let children: Vec<Child> = (0..consumers)
            .map(|_| role.start())
            .collect::<Result<_, _>>()?;
        Ok(Self {
            lanes: vec![0; children.len()],
            chunks: vec![0; children.len()],
            children,
        })
    }

    /// Lets all of them open their readers.
    fn begin(&mut self) -> Result<(), Failure> {
        for child in &mut self.children {
            child
                .tell("begin")
                .map_err(Failure::cannot("tell a consumer to begin"))?;
        }
        Ok(())
    }

    /// How many chunks have arrived, as far as was told.
    fn chunks(&self) -> u64 {
        self.chunks.iter().sum()
    }

    /// Hears what they say, for so long at most if they say nothing.
    fn listen(&mut self, time: Duration) -> Result<(), Failure> {
        let mut silent = true;
        let places = self.lanes.iter_mut().zip(&mut self.chunks);
        for (child, (lanes, chunks)) in self.children.iter().zip(places) {
            while let Some(line) = child.said() {
                silent = false;
                match understand(&line)? {
                    Said::Lanes(owned) => *lanes = owned,
                    Said::Chunks(arrived) => *chunks = arrived,
                    Said::Done(_) => return Err(Failure::new("a consumer has ended")),
                }
            }
        }
        if silent {
            std::thread::park_timeout(time);
        }
        Ok(())
    }

    /// Waits until every partition has an owner, and nobody has none who could have one.
    fn wait_for_lanes(&mut self, case: Case) -> Result<(), Failure> {
        let by = Instant::now() + PATIENCE;
        let partitions = usize::from(case.partitions);
        loop {
            let owned: usize = self.lanes.iter().sum();
            let owners = self.lanes.iter().filter(|lanes| **lanes > 0).count();
            if owned == partitions && owners == case.consumers.min(partitions) {
                return Ok(());
            }
            if Instant::now() > by {
                let lanes = &self.lanes;
                return Err(Failure::new(format!("the group shares {lanes:?}")));
            }
            self.listen(Duration::from_millis(10))?;
        }
    }

    fn end(self) -> Result<Vec<Consumed>, Failure> {
        let mut all = Vec::new();
        for mut child in self.children {
            child.hang_up();
            let by = Instant::now() + PATIENCE;
            loop {
                let line = child.line(by);
                let line = line.map_err(Failure::cannot("hear of a consumer"))?;
                if let Said::Done(consumed) = understand(&line)? {
                    all.push(consumed);
                    break;
                }
            }
        }
        Ok(all)
    }
}
