//! Messages of Kieker's `AmqpWriter` without a broker, for the test that bounds the memory.

use std::collections::VecDeque;
use std::path::Path;

use baler_common::record::Catalog;
use baler_common::transport::{Delivery, Failure, Origin, Token};

use super::senders::Senders;

/// The result of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Outcome {
    /// Records that were read.
    pub records: u32,
    /// Messages that were put aside, each perhaps with those before it that its record is in.
    pub broken: u32,
    /// Writers whose strings are known at the end.
    pub writers: usize,
}

/// Takes messages apart as a reader does. Their strings go to a file.
///
/// # Errors
///
/// The file cannot be read or written.
pub fn take(
    messages: impl Iterator<Item = Vec<u8>>,
    registry_file: &Path,
) -> Result<Outcome, Failure> {
    let mut senders = Senders::open(registry_file, Catalog::shared_kieker())?;
    let mut ready = VecDeque::new();
    let mut outcome = Outcome::default();
    for (number, bytes) in (0..).zip(messages) {
        let message = Delivery {
            token: Token(number),
            bytes: bytes.into(),
            meta: None,
            origin: Origin {
                endpoint: "".into(),
                lane: "".into(),
                position: number,
            },
            redelivered: false,
            attempts: 0,
        };
        let taken = senders.take(&message, &mut ready)?;
        outcome.broken += u32::from(taken.broken.is_some());
        let records = ready.drain(..).map(|chunk| chunk.meta.records);
        outcome.records += records.sum::<u32>();
    }
    senders.flush(&mut ready);
    let records = ready.iter().map(|chunk| chunk.meta.records);
    outcome.records += records.sum::<u32>();
    outcome.writers = senders.len();
    Ok(outcome)
}
