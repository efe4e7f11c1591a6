//! The data of a run: numbered records and foreign bytes, all derived from the seed.

use baler_common::record::Record;
use serde::{Deserialize, Serialize};

use crate::random::{Random, mix};

/// The text from which all texts are cut.
const LETTERS: &str = "the quick brown fox jumps over the lazy dog and the five boxing wizards jump \
     quickly while a mad boxer shot a quick gloved jab to the jaw of his dizzy opponent";

/// One record of a run.
#[derive(Debug, Clone, PartialEq, Eq, Record)]
#[record(name = "baler.verify.Numbered")]
pub(super) struct Numbered {
    producer: u32,
    life: u32,
    thread: u32,
    /// Dense from 0 in each thread.
    number: u64,
    /// A value of any width.
    value: i64,
    /// A text of at most 40 bytes.
    text: Box<str>,
    /// The hash of the seed and the four numbers above `value`.
    hash: u64,
}

/// The records of one thread of one life of a producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Stream {
    pub(super) producer: u16,
    pub(super) life: u16,
    pub(super) thread: u16,
}

/// Records of one stream with dense numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Run {
    pub(super) stream: Stream,
    /// The first number.
    pub(super) first: u64,
    pub(super) count: u64,
}

impl Numbered {
    /// Returns the record with this number.
    pub(super) fn make(seed: u64, stream: Stream, number: u64) -> Self {
        let Stream {
            producer,
            life,
            thread,
        } = stream;
        let id = (u64::from(producer) << 32) | (u64::from(life) << 16) | u64::from(thread);
        let draw = mix(mix(seed ^ mix(id)) ^ number);
        let [start, length, ..] = draw.to_le_bytes();
        let (start, length) = (usize::from(start % 64), usize::from(length % 41));
        let text = LETTERS.get(start..start + length);
        let text = text.expect("the text has more than 104 letters, all of ASCII");
        Self {
            producer: producer.into(),
            life: life.into(),
            thread: thread.into(),
            number,
            value: mix(draw).cast_signed() >> (draw >> 58),
            text: text.into(),
            hash: mix(!draw),
        }
    }

    /// Returns the stream and number of the record, or `None` if a field has a wrong value.
    fn identify(&self, seed: u64) -> Option<(Stream, u64)> {
        let stream = Stream {
            producer: self.producer.try_into().ok()?,
            life: self.life.try_into().ok()?,
            thread: self.thread.try_into().ok()?,
        };
        (*self == Self::make(seed, stream, self.number)).then_some((stream, self.number))
    }
}

/// Returns the unaltered records among `records` as runs, and their number.
pub(super) fn runs(seed: u64, records: impl Iterator<Item = Numbered>) -> (Vec<Run>, u64) {
    let (mut runs, mut unaltered) = (Vec::<Run>::new(), 0);
    for (stream, number) in records.filter_map(|record| record.identify(seed)) {
        unaltered += 1;
        match runs.last_mut() {
            Some(run) if run.stream == stream && run.first + run.count == number => run.count += 1,
            _ => runs.push(Run {
                stream,
                first: number,
                count: 1,
            }),
        }
    }
    (runs, unaltered)
}

/// Returns foreign bytes, which must be put aside as they are. Every second piece begins with the
/// magic of a native chunk, so that decoding gets further.
pub(super) fn foreign_bytes(seed: u64, number: u64) -> Vec<u8> {
    let mut random = Random::new(mix(seed ^ 0x706f_6973_6f6e) ^ number);
    let magic: &[u8] = if number.is_multiple_of(2) {
        b"BALR"
    } else {
        b""
    };
    let length = random.between(16, 2_000);
    [magic, &random.bytes(length)].concat()
}

#[cfg(test)]
mod tests;
