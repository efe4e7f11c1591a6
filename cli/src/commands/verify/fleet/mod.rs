//! The producers and consumers of a run, and the records that they are given to make.

mod flags;
mod supply;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

pub(super) use flags::Flags;
use supply::Slice;

use super::oracle::Teller;
use super::orders::Order;
use super::process::{Board, Process};
use crate::exit::Failure;

/// How often producers are given records.
pub(super) const TICK: Duration = Duration::from_millis(20);

/// How a process is asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// By an order: it delivers everything first, and waits for its broker.
    Finish,
    /// By SIGTERM: it delivers what it can within `--shutdown-timeout`.
    Terminate,
}

impl Ending {
    fn ask(self, process: &mut Process) {
        match self {
            Self::Finish => process.order(Order::Finish),
            Self::Terminate => process.terminate(),
        }
    }

    /// How long the process may take before it is killed.
    const fn grace(self) -> Duration {
        match self {
            // Kafka's client gives a message up after `message.timeout.ms`, 120 s by default. The
            // last words take up to 30 s more.
            Self::Finish => Duration::from_secs(160),
            // The default of `--shutdown-timeout`, and as much again.
            Self::Terminate => Duration::from_secs(20),
        }
    }
}

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

impl Fleet {
    /// A fleet without a process; at most `window` records may be on their way.
    pub(super) fn new(flags: Flags, board: Board, window: u64) -> Self {
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
        for number in 0..self.flags.consumers() {
            let consumer = self.start_consumer(number)?;
            self.consumers.push(consumer);
        }
        for number in 0..self.flags.producers() {
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
        let command = self.flags.consumer(number, reader)?;
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
        let command = self.flags.producer(producer, life, more)?;
        Process::start(command, Teller::Producer { producer, life }, &self.board)
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
        if let Some(mut process) = self.take_producer(number) {
            process.kill();
            self.close_account(number, false);
        }
    }

    /// Ends a producer in good order.
    pub(super) fn end_producer(&mut self, number: usize, how: Ending) {
        if let Some(mut process) = self.take_producer(number) {
            how.ask(&mut process);
            let ended = self.ends_in_time("producer", number, how, &mut process);
            self.close_account(number, ended);
        }
    }

    /// Ends all producers in good order, side by side.
    pub(super) fn finish_producers(&mut self) {
        for process in self
            .producers
            .iter_mut()
            .filter_map(|it| it.process.as_mut())
        {
            Ending::Finish.ask(process);
        }
        for number in 0..self.producers.len() {
            self.end_producer(number, Ending::Finish);
        }
    }

    fn take_producer(&mut self, number: usize) -> Option<Process> {
        self.producers.get_mut(number)?.process.take()
    }

    /// Waits for a process that was asked to end; one that does not is killed.
    fn ends_in_time(
        &mut self,
        kind: &str,
        number: usize,
        how: Ending,
        process: &mut Process,
    ) -> bool {
        let grace = how.grace();
        let ended = process.wait(Instant::now() + grace);
        if !ended {
            self.violations.push(format!(
                "{kind} {number} did not end within {grace:?} of being asked to"
            ));
            process.kill();
        }
        ended
    }

    /// Takes back what the life of a producer that ended did not make.
    fn close_account(&mut self, number: usize, ended_well: bool) {
        let Some(producer) = self.producers.get_mut(number) else {
            return;
        };
        let id = u16::try_from(number).unwrap_or(u16::MAX);
        let oracle = self.board.lock();
        let acknowledged = oracle.acknowledged_by(id, producer.life);
        producer.settled = producer.settled.saturating_add(acknowledged);
        let report = oracle.report_of(id, producer.life);
        if ended_well && report.is_none() {
            self.violations
                .push(format!("producer {number} ended without a last word"));
        }
        let made = report.map_or_else(
            || oracle.offered_by(id, producer.life),
            |report| report.issued,
        );
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

    /// Ends a consumer at once.
    pub(super) fn kill_consumer(&mut self, number: usize) {
        if let Some(mut process) = self.take_consumer(number) {
            process.kill();
        }
    }

    /// Ends a consumer in good order.
    pub(super) fn end_consumer(&mut self, number: usize, how: Ending) {
        if let Some(mut process) = self.take_consumer(number) {
            how.ask(&mut process);
            self.ends_in_time("consumer", number, how, &mut process);
        }
    }

    /// Ends all consumers in good order, side by side.
    pub(super) fn finish_consumers(&mut self) {
        for process in self
            .consumers
            .iter_mut()
            .filter_map(|it| it.process.as_mut())
        {
            Ending::Finish.ask(process);
        }
        for number in 0..self.consumers.len() {
            self.end_consumer(number, Ending::Finish);
        }
    }

    fn take_consumer(&mut self, number: usize) -> Option<Process> {
        self.consumers.get_mut(number)?.process.take()
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
