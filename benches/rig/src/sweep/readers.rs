//! The reading processes, as their parent sees them.

use std::io;
use std::time::{Duration, Instant};

use super::program::{Order, Program};
use super::reading::{ReaderCommand, ReaderEvent, ReaderReport, Reading};
use crate::child::Child;
use crate::failure::Failure;
use crate::footprint::busy_time_of;
use crate::lines::{parse_line, to_line};

/// How long a reader may take to open, and a group to share its partitions.
const PATIENCE: Duration = Duration::from_secs(60);

/// A group whose assignment has not changed for this long is stable.
const STABLE: Duration = Duration::from_millis(500);

/// Readers that share the arriving chunks.
pub(super) struct Readers {
    readers: Vec<Reader>,
    listens_on: Option<String>,
}

/// A reading process and its last reports.
struct Reader {
    child: Child,
    records: u64,
    lanes: usize,
}

impl Readers {
    /// Starts this number of readers and waits until all of them are open and, if `lanes` is set,
    /// share that number of lanes.
    pub(super) fn start(
        program: &dyn Program,
        uri: &str,
        count: u16,
        lanes: Option<u16>,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Self, Failure> {
        let order = Order::Read(Reading {
            uri: uri.to_owned(),
        });
        let by = Instant::now() + PATIENCE;
        let mut all = Self {
            readers: Vec::new(),
            listens_on: None,
        };
        for _ in 0..count {
            all.readers.push(Reader {
                child: order.start(program)?,
                records: 0,
                lanes: 0,
            });
        }
        for reader in &all.readers {
            match reader.next(by)? {
                ReaderEvent::Open { listens_on } => all.listens_on = listens_on,
                other => return Err(Failure::new(format!("a reader reports {other:?}"))),
            }
        }
        if let Some(lanes) = lanes {
            all.wait_for_lanes(usize::from(lanes), by, go_on)?;
        }
        Ok(all)
    }

    /// Waits until every lane has an owner, no reader is idle that could own one, and this is stable.
    fn wait_for_lanes(
        &mut self,
        lanes: usize,
        by: Instant,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), Failure> {
        let mut since = Instant::now();
        let mut before = Vec::new();
        loop {
            self.listen()?;
            let owned: Vec<usize> = self.readers.iter().map(|reader| reader.lanes).collect();
            let owners = owned.iter().filter(|lanes| **lanes > 0).count();
            let shared =
                owned.iter().sum::<usize>() >= lanes && owners >= self.readers.len().min(lanes);
            if owned != before {
                before = owned;
                since = Instant::now();
            }
            if shared && (self.readers.len() == 1 || since.elapsed() >= STABLE) {
                return Ok(());
            }
            if Instant::now() > by || !go_on() {
                let reason = format!("the readers have not shared {lanes} lanes: {before:?}");
                return Err(Failure::new(reason));
            }
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }

    pub(super) fn count(&self) -> usize {
        self.readers.len()
    }

    /// The address where they wait for senders, if they do.
    pub(super) fn listens_on(&self) -> Option<&str> {
        self.listens_on.as_deref()
    }

    /// CPU time of all of them.
    pub(super) fn cpu_time(&self) -> io::Result<Duration> {
        let readers = self.readers.iter();
        readers.map(|it| busy_time_of(it.child.pid())).sum()
    }

    /// Begins another run; returns when all readers have begun it, since a message that comes before
    /// that counts for the run before.
    pub(super) fn begin(&mut self, run: u32, plain: bool) -> Result<(), Failure> {
        self.send(ReaderCommand::Begin { run, plain })?;
        let by = Instant::now() + PATIENCE;
        for reader in &mut self.readers {
            loop {
                match reader.next(by)? {
                    ReaderEvent::Begun => break,
                    event => reader.note(&event),
                }
            }
            reader.records = 0;
        }
        Ok(())
    }

    /// Sends a command to all of them.
    pub(super) fn send(&mut self, command: ReaderCommand) -> Result<(), Failure> {
        let line = to_line(&command)?;
        for reader in &mut self.readers {
            let sent = reader.child.send(&line);
            sent.map_err(Failure::cannot("command a reader"))?;
        }
        Ok(())
    }

    /// Takes note of all reports that have come.
    pub(super) fn listen(&mut self) -> Result<(), Failure> {
        for reader in &mut self.readers {
            while let Some(line) = reader.child.waiting_line() {
                reader.note(&parse_line(&line)?);
            }
        }
        Ok(())
    }

    /// How many records of the run have arrived, by the last reports.
    pub(super) fn records(&self) -> u64 {
        self.readers.iter().map(|reader| reader.records).sum()
    }

    /// What arrived of the run at each of them.
    pub(super) fn report(&mut self) -> Result<Vec<ReaderReport>, Failure> {
        self.send(ReaderCommand::Report)?;
        let by = Instant::now() + PATIENCE;
        let mut all = Vec::new();
        for reader in &self.readers {
            loop {
                if let ReaderEvent::Report(report) = reader.next(by)? {
                    all.push(report);
                    break;
                }
            }
        }
        Ok(all)
    }
}

impl Reader {
    fn next(&self, by: Instant) -> Result<ReaderEvent, Failure> {
        let line = self.child.line(by);
        parse_line(&line.map_err(Failure::cannot("hear of a reader"))?)
    }

    fn note(&mut self, event: &ReaderEvent) {
        match event {
            ReaderEvent::Records(records) => self.records = *records,
            ReaderEvent::Lanes(lanes) => self.lanes = *lanes,
            ReaderEvent::Begun | ReaderEvent::Open { .. } | ReaderEvent::Report(_) => {}
        }
    }
}
