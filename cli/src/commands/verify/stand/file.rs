//! `file:`: producer i writes a folder of its own, which consumer i follows.

use std::path::PathBuf;

use super::{Scratch, Stand};
use crate::args::{FaultChoice, VerifyArgs};
use crate::exit::Failure;

const FAULTS: &[FaultChoice] = &[FaultChoice::DiskFull, FaultChoice::TornWrite];

/// Folders in the temporary folder.
#[derive(Debug)]
pub(super) struct Files {
    scratch: Scratch,
}

impl Files {
    pub(super) fn new() -> Result<Self, Failure> {
        let scratch = Scratch::new()?;
        Ok(Self { scratch })
    }

    fn uri(&self, number: u16, settings: &str) -> String {
        format!(
            "file://{}/{number}?{settings}",
            self.scratch.path().display()
        )
    }
}

impl Stand for Files {
    fn faults(&self) -> &'static [FaultChoice] {
        FAULTS
    }

    fn producer_uri(&self, producer: u16) -> String {
        self.uri(producer, "segment_bytes=8MiB")
    }

    fn consumer_uri(&self, consumer: u16) -> String {
        self.uri(consumer, "consumer=verify&commit_interval=200ms")
    }

    /// Each reads only what the producer with its number writes.
    fn consumers(&self, args: &VerifyArgs) -> u16 {
        args.producers
    }

    fn folder(&self, producer: usize) -> Option<PathBuf> {
        Some(self.scratch.path().join(producer.to_string()))
    }
}
