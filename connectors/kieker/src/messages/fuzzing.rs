//! Messages of Kieker's `AmqpWriter` without a broker: the body of the fuzz target, also used by the
//! tests that replay its corpus and bound the memory.

use std::collections::{BTreeSet, VecDeque};
use std::error::Error;
use std::fs;
use std::path::Path;

use baler_common::transport::{Delivery, Failure, Origin, RetryClass, Token};
use bytes::Bytes;
use memchr::memchr;

use super::sender::Finished;
use super::senders::Senders;
use crate::container::decoder;
use crate::types;

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
    let mut senders = Senders::open(registry_file, types::shared_catalog(), None)?;
    let mut ready = VecDeque::new();
    let mut outcome = Outcome::default();
    for (number, bytes) in (0..).zip(messages) {
        let taken = senders.take(&message(number, bytes.into()), &mut ready)?;
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

/// Takes apart what a fuzzer made: a file of strings, the byte 0xff, and messages with a byte for
/// their length. The connection is lost where the length is 0.
///
/// Decodes every chunk, and opens the file again.
///
/// # Errors
///
/// A finding: something that no input should cause.
pub fn read(input: &[u8], registry_file: &Path) -> Result<Outcome, Box<dyn Error>> {
    let (kept, messages) = input.split_at(memchr(0xff, input).unwrap_or(input.len()));
    fs::write(registry_file, kept)?;
    let open = || Senders::open(registry_file, types::shared_catalog(), None);
    let mut senders = match open() {
        // A line of the file is wrong.
        Err(failure) if failure.class == RetryClass::Final => return Ok(Outcome::default()),
        opened => opened.map_err(|failure| failure.at("the file"))?,
    };
    let mut rest = messages.strip_prefix(b"\xff").unwrap_or(messages);
    let mut run = Run::default();
    let mut ready = VecDeque::new();
    while let Some((length, after)) = rest.split_first() {
        let (bytes, after) = after.split_at(after.len().min(usize::from(*length)));
        rest = after;
        if bytes.is_empty() {
            senders.forget_unsettled();
            continue;
        }
        run.messages += 1;
        let message = message(run.messages, Bytes::copy_from_slice(bytes));
        let taken = senders.take(&message, &mut ready);
        let taken = taken.map_err(|failure| failure.at("the file"))?;
        run.settle(&taken.settled)?;
        if let Some(broken) = taken.broken {
            run.outcome.broken += 1;
            run.settle(&broken.tokens)?;
        }
        run.take(&mut ready)?;
    }
    let settled = senders.flush(&mut ready);
    run.settle(&settled)?;
    run.take(&mut ready)?;
    run.outcome.writers = senders.len();
    let known = strings(&senders);
    drop(senders);
    let again = open().map_err(|failure| failure.at("the file"))?;
    match strings(&again) == known {
        true => Ok(run.outcome),
        false => Err("the file has other strings than its reader".into()),
    }
}

/// The account of a run.
#[derive(Default)]
struct Run {
    messages: u64,
    settled: BTreeSet<Token>,
    outcome: Outcome,
}

impl Run {
    fn settle(&mut self, tokens: &[Token]) -> Result<(), Box<dyn Error>> {
        match tokens.iter().all(|token| self.settled.insert(*token)) {
            true => Ok(()),
            false => Err("a message is settled twice".into()),
        }
    }

    fn take(&mut self, ready: &mut VecDeque<Finished>) -> Result<(), Box<dyn Error>> {
        for chunk in ready.drain(..) {
            let records = decoder().decode(&chunk.bytes)?.batch.len();
            if u32::try_from(records) != Ok(chunk.meta.records) {
                return Err("the number of records is wrong".into());
            }
            self.outcome.records += chunk.meta.records;
            self.settle(&chunk.tokens)?;
        }
        Ok(())
    }
}

/// The registry, the id and the text of all strings.
fn strings(senders: &Senders) -> BTreeSet<(i64, i32, String)> {
    let strings = senders.strings();
    strings
        .map(|(registry, id, text)| (registry, id, text.to_owned()))
        .collect()
}

fn message(number: u64, bytes: Bytes) -> Delivery {
    Delivery {
        token: Token(number),
        bytes,
        meta: None,
        origin: Origin {
            endpoint: "".into(),
            lane: "".into(),
            position: number,
        },
        redelivered: false,
        attempts: 0,
    }
}

#[cfg(test)]
mod tests;
