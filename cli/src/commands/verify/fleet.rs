//! The producers and consumers of a run, and the records that they are given to make.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::oracle::Teller;
use super::orders::Order;
use super::process::{Board, Process, program};
use crate::args::{Sabotage, VerifyArgs};
use crate::exit::Failure;

/// How often producers are given records.
pub(super) const TICK: Duration = Duration::from_millis(20);

/// How long a process may take to end when it is asked to, before it is killed.
const GRACE: Duration = Duration::from_secs(20);

/// The processes of a run.
#[derive(Debug)]
pub(super) struct Fleet {
    board: Board,
    flags: Flags,
    producers: Vec<Producer>,
    consumers: Vec<Consumer>,
    readers: usize,
    /// Records that are to be given out over time.
    slices: VecDeque<Slice>,
    /// Records that were taken back from lives that ended before they made them.
    returned: u64,
    /// At most so many records may be on their way.
    window: u64,
    /// What should not have happened.
    pub(super) violations: Vec<String>,
}

/// What every process is started with.
#[derive(Debug)]
struct Flags {
    seed: u64,
    threads: u16,
    producer_uris: Vec<String>,
    consumer_uris: Vec<String>,
    shipping: Vec<String>,
    /// Where producers spool, each in a folder of its own.
    spool: Option<PathBuf>,
    sabotage: Option<Sabotage>,
    verbose: u8,
}

/// A producer over its lives.
#[derive(Debug)]
struct Producer {
    process: Option<Process>,
    life: u16,
    /// Records that this life was given.
    given: u64,
    /// Of all lives before: acknowledged.
    settled: u64,
}

/// A consumer over its lives.
#[derive(Debug)]
struct Consumer {
    process: Option<Process>,
    reader: usize,
}

/// Records to be given out over time.
#[derive(Debug)]
struct Slice {
    records: u64,
    given: u64,
    over: Duration,
    since: Option<Instant>,
}

impl Fleet {
    /// A fleet without a process.
    pub(super) fn new(
        args: &VerifyArgs,
        board: Board,
        producer_uris: Vec<String>,
        consumer_uris: Vec<String>,
        (window, spool): (u64, Option<PathBuf>),
        verbose: u8,
    ) -> Self {
        let flags = Flags {
            seed: args.seed,
            threads: args.threads,
            producer_uris,
            consumer_uris,
            shipping: args.shipping(),
            spool,
            sabotage: args.sabotage,
            verbose,
        };
        Self {
            board,
            flags,
            producers: Vec::new(),
            consumers: Vec::new(),
            readers: 0,
            slices: VecDeque::new(),
            returned: 0,
            window,
            violations: Vec::new(),
        }
    }

    /// Starts every consumer, then every producer.
    ///
    /// # Errors
    ///
    /// A process cannot be started.
    pub(super) fn start(&mut self) -> Result<(), Failure> {
        for number in 0..self.flags.consumer_uris.len() {
            let consumer = self.start_consumer(number)?;
            self.consumers.push(consumer);
        }
        for number in 0..self.flags.producer_uris.len() {
            let mut producer = Producer {
                process: None,
                life: 0,
                given: 0,
                settled: 0,
            };
            producer.process = Some(self.start_producer(number, 0, &[])?);
            self.producers.push(producer);
        }
        Ok(())
    }

    /// How many producers there are.
    pub(super) const fn producers(&self) -> usize {
        self.producers.len()
    }

    /// How many consumers there are.
    pub(super) const fn consumers(&self) -> usize {
        self.consumers.len()
    }

    fn start_consumer(&mut self, number: usize) -> Result<Consumer, Failure> {
        let reader = self.readers;
        self.readers = reader.saturating_add(1);
        let from = self.flags.consumer_uris.get(number);
        let from = from.or_else(|| self.flags.consumer_uris.first());
        let mut command = program()?;
        command.arg("verify-consumer");
        command.args(["--from", from.map_or("", String::as_str)]);
        command.args(["--seed", &self.flags.seed.to_string()]);
        if let (0, Some(sabotage)) = (reader, self.flags.sabotage) {
            let name = match sabotage {
                Sabotage::Alter => "alter",
                Sabotage::Duplicate => "duplicate",
                Sabotage::Invent => "invent",
                Sabotage::Lose => "lose",
                Sabotage::Reorder => "reorder",
            };
            command.args(["--sabotage", name]);
        }
        self.flags.speak(&mut command);
        let process = Process::start(command, Teller::Reader(reader), &self.board)?;
        Ok(Consumer {
            process: Some(process),
            reader,
        })
    }

    fn start_producer(
        &self,
        number: usize,
        life: u16,
        more: &[String],
    ) -> Result<Process, Failure> {
        let producer = u16::try_from(number).unwrap_or(u16::MAX);
        let to = self.flags.producer_uris.get(number);
        let mut command = program()?;
        command.arg("verify-producer");
        command.args(["--to", to.map_or("", String::as_str)]);
        command.args(["--seed", &self.flags.seed.to_string()]);
        command.args(["--producer", &producer.to_string()]);
        command.args(["--life", &life.to_string()]);
        command.args(["--threads", &self.flags.threads.to_string()]);
        command.args(&self.flags.shipping);
        if let Some(folder) = &self.flags.spool {
            command.arg("--spool").arg(folder.join(number.to_string()));
            command.args(["--spool-after", "200ms"]);
        }
        command.args(more);
        self.flags.speak(&mut command);
        Process::start(command, Teller::Producer { producer, life }, &self.board)
    }

    /// Appends records to be made, spread over a time that begins when those before were given out.
    pub(super) fn plan(&mut self, records: u64, over: Duration) {
        self.slices.push_back(Slice {
            records,
            given: 0,
            over,
            since: None,
        });
    }

    /// Whether all planned records were given to producers.
    pub(super) fn is_given_out(&self) -> bool {
        self.slices.is_empty() && self.returned == 0
    }

    /// Gives producers what is due; to be called every [`TICK`].
    pub(super) fn pump(&mut self) {
        let now = Instant::now();
        let mut due = std::mem::take(&mut self.returned);
        if let Some(slice) = self.slices.front_mut() {
            let since = *slice.since.get_or_insert(now);
            let elapsed = now.saturating_duration_since(since).saturating_add(TICK);
            let nanos = slice.over.as_nanos().max(1);
            let part = u128::from(slice.records).saturating_mul(elapsed.as_nanos()) / nanos;
            let part = u64::try_from(part).unwrap_or(u64::MAX).min(slice.records);
            due = due.saturating_add(part.saturating_sub(slice.given));
            slice.given = part.max(slice.given);
            if slice.given >= slice.records {
                self.slices.pop_front();
            }
        }
        let room = self.window.saturating_sub(self.on_their_way());
        let now_given = due.min(room);
        self.returned = due.saturating_sub(now_given);
        self.give(now_given);
    }

    /// Gives each producer a few records beyond what was planned.
    pub(super) fn trickle(&mut self) {
        if self.on_their_way() < self.window {
            for producer in &mut self.producers {
                if producer.process.is_some() {
                    producer.give(100, TICK);
                }
            }
        }
    }

    /// Records that were given out, or acknowledged, and have not arrived.
    fn on_their_way(&self) -> u64 {
        let given = self.producers.iter().fold(0_u64, |sum, producer| {
            sum.saturating_add(producer.settled)
                .saturating_add(producer.given)
        });
        given.saturating_sub(self.board.lock().delivered())
    }

    fn give(&mut self, records: u64) {
        let alive = self.producers.iter().filter(|it| it.process.is_some());
        let count = u64::try_from(alive.count()).unwrap_or(u64::MAX);
        if records == 0 {
            return;
        }
        if count == 0 {
            self.returned = self.returned.saturating_add(records);
            return;
        }
        let alive = self.producers.iter_mut().filter(|it| it.process.is_some());
        for (position, producer) in (0..count).zip(alive) {
            let records = records / count + u64::from(position < records % count);
            if records > 0 {
                producer.give(records, TICK);
            }
        }
    }

    /// Sends foreign bytes through a producer.
    pub(super) fn poison(&mut self, producer: usize, first: u64, count: u64) {
        if let Some(process) = self.producer(producer) {
            process.order(Order::Poison { first, count });
        }
    }

    /// The running life of a producer.
    pub(super) fn producer(&mut self, number: usize) -> Option<&mut Process> {
        self.producers.get_mut(number)?.process.as_mut()
    }

    /// The running life of a consumer.
    pub(super) fn consumer(&mut self, number: usize) -> Option<&mut Process> {
        self.consumers.get_mut(number)?.process.as_mut()
    }

    /// The number of a consumer's life among all readers.
    pub(super) fn reader(&self, number: usize) -> Option<usize> {
        self.consumers.get(number).map(|consumer| consumer.reader)
    }

    /// Which life of a producer runs.
    pub(super) fn life(&self, number: usize) -> u16 {
        self.producers.get(number).map_or(0, |it| it.life)
    }

    /// Ends a producer at once.
    pub(super) fn kill_producer(&mut self, number: usize) {
        if let Some(producer) = self.producers.get_mut(number)
            && let Some(mut process) = producer.process.take()
        {
            process.kill();
            let id = u16::try_from(number).unwrap_or(u16::MAX);
            let oracle = self.board.lock();
            let made = oracle.offered_by(id, producer.life);
            producer.settled = producer
                .settled
                .saturating_add(oracle.acknowledged_by(id, producer.life));
            drop(oracle);
            self.returned = self
                .returned
                .saturating_add(producer.given.saturating_sub(made));
            producer.given = 0;
        }
    }

    /// Takes a producer out that is to end in good order; `how` asks it to.
    pub(super) fn end_producer(&mut self, number: usize, how: impl FnOnce(&mut Process)) {
        let Some(mut process) = self
            .producers
            .get_mut(number)
            .and_then(|producer| producer.process.take())
        else {
            return;
        };
        how(&mut process);
        let ended = process.wait(Instant::now() + GRACE);
        if !ended {
            self.violations.push(format!(
                "producer {number} did not end within {GRACE:?} of being asked to"
            ));
            process.kill();
        }
        let id = u16::try_from(number).unwrap_or(u16::MAX);
        let Some(producer) = self.producers.get_mut(number) else {
            return;
        };
        let oracle = self.board.lock();
        let acknowledged = oracle.acknowledged_by(id, producer.life);
        let made = match oracle.report_of(id, producer.life) {
            Some(report) => report.issued,
            None => {
                if ended {
                    self.violations
                        .push(format!("producer {number} ended without a last word"));
                }
                oracle.offered_by(id, producer.life)
            }
        };
        drop(oracle);
        producer.settled = producer.settled.saturating_add(acknowledged);
        let back = producer.given.saturating_sub(made);
        producer.given = 0;
        self.returned = self.returned.saturating_add(back);
    }

    /// Starts the next life of a producer, with further flags.
    ///
    /// # Errors
    ///
    /// The process cannot be started.
    pub(super) fn revive_producer(
        &mut self,
        number: usize,
        more: &[String],
    ) -> Result<(), Failure> {
        let life = self.life(number).saturating_add(1);
        let process = self.start_producer(number, life, more)?;
        if let Some(producer) = self.producers.get_mut(number) {
            producer.process = Some(process);
            producer.life = life;
            producer.given = 0;
        }
        Ok(())
    }

    /// Gives records to one producer alone, at once.
    pub(super) fn give_to(&mut self, number: usize, records: u64) {
        if let Some(producer) = self.producers.get_mut(number) {
            producer.give(records, Duration::ZERO);
        }
    }

    /// Ends a consumer at once.
    pub(super) fn kill_consumer(&mut self, number: usize) {
        if let Some(consumer) = self.consumers.get_mut(number)
            && let Some(mut process) = consumer.process.take()
        {
            process.kill();
        }
    }

    /// Ends a consumer in good order.
    pub(super) fn end_consumer(&mut self, number: usize, how: impl FnOnce(&mut Process)) {
        let process = self
            .consumers
            .get_mut(number)
            .and_then(|consumer| consumer.process.take());
        if let Some(mut process) = process {
            how(&mut process);
            if !process.wait(Instant::now() + GRACE) {
                self.violations.push(format!(
                    "consumer {number} did not end within {GRACE:?} of being asked to"
                ));
                process.kill();
            }
        }
    }

    /// Starts the next life of a consumer.
    ///
    /// # Errors
    ///
    /// The process cannot be started.
    pub(super) fn revive_consumer(&mut self, number: usize) -> Result<(), Failure> {
        let next = self.start_consumer(number)?;
        if let Some(consumer) = self.consumers.get_mut(number) {
            *consumer = next;
        }
        Ok(())
    }

    /// Starts one more consumer; its number.
    ///
    /// # Errors
    ///
    /// The process cannot be started.
    pub(super) fn add_consumer(&mut self) -> Result<usize, Failure> {
        let consumer = self.start_consumer(0)?;
        self.consumers.push(consumer);
        Ok(self.consumers.len().saturating_sub(1))
    }

    /// Notes processes that ended although nobody asked them to.
    pub(super) fn look_after(&mut self) {
        let ended = |process: &mut Option<Process>| {
            let gone = process.as_mut().is_some_and(|it| !it.is_running());
            if gone {
                *process = None;
            }
            gone
        };
        for (number, producer) in self.producers.iter_mut().enumerate() {
            if ended(&mut producer.process) {
                self.violations
                    .push(format!("producer {number} ended by itself"));
            }
        }
        for (number, consumer) in self.consumers.iter_mut().enumerate() {
            if ended(&mut consumer.process) {
                self.violations
                    .push(format!("consumer {number} ended by itself"));
            }
        }
    }
}

impl Producer {
    fn give(&mut self, records: u64, over: Duration) {
        self.given = self.given.saturating_add(records);
        if let Some(process) = &mut self.process {
            process.order(Order::Emit { records, over });
        }
    }
}

impl Flags {
    fn speak(&self, command: &mut std::process::Command) {
        match self.verbose {
            0 => {
                command.arg("--quiet").stderr(std::process::Stdio::null());
            }
            times => {
                command.arg(format!("-{}", "v".repeat(usize::from(times))));
            }
        }
    }
}
