//! The records that are sent: whoever knows the seed knows every field of every one of them.

use baler_common::record::Record;

use super::random::mix;

/// What texts are cut from.
const LETTERS: &str = "the quick brown fox jumps over the lazy dog and the five boxing wizards jump \
     quickly while a mad boxer shot a quick gloved jab to the jaw of his dizzy opponent";

/// The longest text, in bytes.
const LONGEST: u64 = 40;

/// One record of a run.
#[derive(Debug, Clone, PartialEq, Eq, Record)]
#[record(name = "baler.verify.Numbered")]
pub(super) struct Numbered {
    /// Which producer.
    producer: u32,
    /// Which life of it.
    life: u32,
    /// Which thread of that life.
    thread: u32,
    /// Dense from 0 in each thread.
    number: u64,
    /// Anything.
    value: i64,
    /// Anything, of any length.
    text: Box<str>,
    /// Of the seed and all fields before.
    hash: u64,
}

/// The records of one thread of one life of a producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Stream {
    /// Which producer, from 0.
    pub(super) producer: u16,
    /// Which life of it, from 0.
    pub(super) life: u16,
    /// Which thread of that life, from 0.
    pub(super) thread: u16,
}

/// What a record turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Checked {
    /// The record with this number of this stream, every field as it was made.
    Sound(Stream, u64),
    /// A field is not what it was.
    Altered,
}

impl Numbered {
    /// The record with this number.
    pub(super) fn make(seed: u64, stream: Stream, number: u64) -> Self {
        let Stream {
            producer,
            life,
            thread,
        } = stream;
        let place = (u64::from(producer) << 32) | (u64::from(life) << 16) | u64::from(thread);
        let draw = mix(mix(seed ^ mix(place)) ^ number);
        let from = usize::try_from(draw % 64).unwrap_or(0);
        let length = usize::try_from((draw >> 8) % (LONGEST + 1)).unwrap_or(0);
        let text = LETTERS.get(from..from.saturating_add(length));
        let value = i64::from_le_bytes(mix(draw).to_le_bytes()) >> (draw >> 58);
        let mut record = Self {
            producer: producer.into(),
            life: life.into(),
            thread: thread.into(),
            number,
            value,
            text: text.unwrap_or_default().into(),
            hash: 0,
        };
        record.hash = record.fingerprint(seed);
        record
    }

    /// Compares it with what it must be.
    pub(super) fn check(&self, seed: u64) -> Checked {
        let part = |number: u32| u16::try_from(number).ok();
        let (Some(producer), Some(life), Some(thread)) =
            (part(self.producer), part(self.life), part(self.thread))
        else {
            return Checked::Altered;
        };
        let stream = Stream {
            producer,
            life,
            thread,
        };
        if self.hash != self.fingerprint(seed) || *self != Self::make(seed, stream, self.number) {
            return Checked::Altered;
        }
        Checked::Sound(stream, self.number)
    }

    fn fingerprint(&self, seed: u64) -> u64 {
        let mut hash = mix(seed ^ 0x6261_6c65_7220_7621);
        let value = u64::from_le_bytes(self.value.to_le_bytes());
        for part in [
            u64::from(self.producer),
            u64::from(self.life),
            u64::from(self.thread),
            self.number,
            value,
        ] {
            hash = mix(hash ^ part);
        }
        for part in self.text.as_bytes().chunks(8) {
            let mut word = [0; 8];
            word.iter_mut().zip(part).for_each(|(to, from)| *to = *from);
            hash = mix(hash ^ u64::from_le_bytes(word));
        }
        hash
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: Stream = Stream {
        producer: 1,
        life: 2,
        thread: 3,
    };

    #[test]
    fn a_record_is_what_seed_and_number_say() {
        for number in [0, 1, 77, u64::MAX] {
            let record = Numbered::make(7, STREAM, number);
            assert_eq!(record.check(7), Checked::Sound(STREAM, number));
            assert_eq!(record.check(8), Checked::Altered);
        }
    }

    #[test]
    fn any_other_field_is_an_alteration() {
        let sound = Numbered::make(7, STREAM, 5);
        let mut changes: Vec<Numbered> = vec![sound; 7];
        changes[0].producer += 1;
        changes[1].life += 1;
        changes[2].thread = 1 << 20;
        changes[3].number += 1;
        changes[4].value ^= 1;
        changes[5].text = "other".into();
        changes[6].hash ^= 1;
        for changed in changes {
            assert_eq!(changed.check(7), Checked::Altered, "{changed:?}");
        }
    }
}
