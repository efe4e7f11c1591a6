//! The reading processes, as their parent sees them.

use std::time::{Duration, Instant};

use super::order::Order;
use super::program::Program;
use super::reading::{Found, Reading, Said, Told};
use crate::child::Child;
use crate::failure::Failure;
use crate::lines::{line, understand};

/// How long a reader may take to open, and a group to share its partitions.
const PATIENCE: Duration = Duration::from_secs(60);

/// A group that has not changed for so long is at rest.
const AT_REST: Duration = Duration::from_millis(500);

/// Readers that share what arrives.
pub(super) struct Readers {
    children: Vec<Child>,
    records: Vec<u64>,
    lanes: Vec<usize>,
    listens_on: Option<String>,
}

impl Readers {
    /// Starts so many readers and waits until all of them are open and, where `lanes` says so, share
    /// as many lanes.
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
        let children: Vec<Child> = (0..count)
            .map(|_| order.start(program))
            .collect::<Result<_, _>>()?;
        let mut readers = Self {
            records: vec![0; children.len()],
            lanes: vec![0; children.len()],
            children,
            listens_on: None,
        };
        let by = Instant::now() + PATIENCE;
        for child in &readers.children {
            match hear(child, by)? {
                Said::Open { listens_on } => readers.listens_on = listens_on,
                other => return Err(Failure::new(format!("a reader says {other:?}"))),
            }
        }
        if let Some(lanes) = lanes {
            readers.share(usize::from(lanes), by, go_on)?;
        }
        Ok(readers)
    }

    /// Waits until every lane has an owner, nobody has none who could have one, and that stays.
    fn share(
        &mut self,
        lanes: usize,
        by: Instant,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), Failure> {
        let mut since = Instant::now();
        let mut before = Vec::new();
        loop {
            self.listen()?;
            if self.lanes != before {
                before.clone_from(&self.lanes);
                since = Instant::now();
            }
            let owned: usize = self.lanes.iter().sum();
            let owners = self.lanes.iter().filter(|lanes| **lanes > 0).count();
            let shared = owned >= lanes && owners >= self.children.len().min(lanes);
            if shared && (self.children.len() == 1 || since.elapsed() >= AT_REST) {
                return Ok(());
            }
            if Instant::now() > by || !go_on() {
                let lanes = &self.lanes;
                return Err(Failure::new(format!(
                    "the readers share lanes as {lanes:?}"
                )));
            }
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }

    pub(super) fn count(&self) -> usize {
        self.children.len()
    }

    /// Where they wait for senders, if they do.
    pub(super) fn listens_on(&self) -> Option<&str> {
        self.listens_on.as_deref()
    }

    pub(super) fn pids(&self) -> Vec<u32> {
        self.children.iter().map(Child::pid).collect()
    }

    /// Tells all of them; of another run returns when all have begun it, for a message that came
    /// before would be counted in the run before.
    pub(super) fn tell(&mut self, told: Told) -> Result<(), Failure> {
        let line = line(&told)?;
        for child in &mut self.children {
            child
                .tell(&line)
                .map_err(Failure::cannot("tell a reader"))?;
        }
        if matches!(told, Told::Begin { .. }) {
            let by = Instant::now() + PATIENCE;
            for (child, lanes) in self.children.iter().zip(&mut self.lanes) {
                loop {
                    match hear(child, by)? {
                        Said::Begun => break,
                        Said::Lanes(owned) => *lanes = owned,
                        Said::Open { .. } | Said::Records(_) | Said::Report(_) => {}
                    }
                }
            }
            self.records.fill(0);
        }
        Ok(())
    }

    /// Hears what they have said already.
    pub(super) fn listen(&mut self) -> Result<(), Failure> {
        let places = self.records.iter_mut().zip(&mut self.lanes);
        for (child, (records, lanes)) in self.children.iter().zip(places) {
            while let Some(line) = child.said() {
                match understand(&line)? {
                    Said::Records(arrived) => *records = arrived,
                    Said::Lanes(owned) => *lanes = owned,
                    Said::Begun | Said::Open { .. } | Said::Report(_) => {}
                }
            }
        }
        Ok(())
    }

    /// How many records of the run have arrived, as far as was heard.
    pub(super) fn records(&self) -> u64 {
        self.records.iter().sum()
    }

    /// What each of them found in the run.
    pub(super) fn report(&mut self) -> Result<Vec<Found>, Failure> {
        self.tell(Told::Report)?;
        let by = Instant::now() + PATIENCE;
        let mut all = Vec::new();
        for child in &self.children {
            loop {
                if let Said::Report(found) = hear(child, by)? {
                    all.push(found);
                    break;
                }
            }
        }
        Ok(all)
    }
}

fn hear(child: &Child, by: Instant) -> Result<Said, Failure> {
    let line = child.line(by);
    understand(&line.map_err(Failure::cannot("hear of a reader"))?)
}
