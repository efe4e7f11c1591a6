//! What producers and consumers tell the oracle, as bytes in a pipe.
//!
//! A pipe keeps what was written to it when the writer is killed, so the oracle knows what a process
//! did up to its last moment. An event that was cut short by the kill did not happen: it is written
//! before what it tells of takes effect.

use std::io::{self, Read, Write};

use baler_common::transport::ChunkIdentity;

use super::numbered::Stream;

/// The longest event, in bytes.
const LONGEST: u32 = 64 << 20;

/// Something happened in a producer or a consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    /// It is ready: connected or listening as far as it can know.
    Ready,
    /// A producer offers a chunk to the medium for the first time.
    Offered {
        /// Who the chunk is.
        identity: ChunkIdentity,
        /// The records in it.
        runs: Vec<Run>,
    },
    /// The medium confirmed a chunk that was offered, or a spool took it.
    Acknowledged {
        /// Who the chunk is.
        identity: ChunkIdentity,
        /// Whether a spool has it.
        spooled: bool,
    },
    /// The medium refused a chunk for good.
    Refused {
        /// Who the chunk is.
        identity: ChunkIdentity,
    },
    /// The medium has a chunk of foreign bytes, as it was told.
    Poisoned {
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// A consumer processed a chunk and is about to settle it.
    Processed {
        /// Who the chunk is, if anybody said so.
        identity: Option<ChunkIdentity>,
        /// Whether the medium said that it had been delivered before.
        redelivered: bool,
        /// The sound records in it, in order.
        runs: Vec<Run>,
        /// Records with a field that is not what it was, or of an unknown type.
        altered: u64,
    },
    /// A consumer puts foreign bytes aside.
    Quarantined {
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// A consumer holds a chunk that it processed, and does not settle it.
    Holding,
    /// What a consumer lacks before it is at the end of its medium changed.
    Waits {
        /// What it lacks; empty at the end.
        what: String,
    },
    /// The last word, as JSON.
    Report {
        /// The document.
        json: String,
    },
}

/// Records of one stream with ascending, dense numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    /// Whose records.
    pub(super) stream: Stream,
    /// The first number.
    pub(super) first: u64,
    /// How many.
    pub(super) count: u32,
}

impl Run {
    /// The numbers.
    pub(super) fn numbers(self) -> impl Iterator<Item = u64> {
        (0..u64::from(self.count)).map(move |at| self.first.saturating_add(at))
    }

    /// Appends a record to runs, to the last one if it goes on there.
    pub(super) fn append(runs: &mut Vec<Self>, stream: Stream, number: u64) {
        if let Some(last) = runs.last_mut()
            && last.stream == stream
            && last.first.checked_add(u64::from(last.count)) == Some(number)
            && last.count < u32::MAX
        {
            last.count = last.count.saturating_add(1);
            return;
        }
        runs.push(Self {
            stream,
            first: number,
            count: 1,
        });
    }
}

impl Event {
    /// Writes the event in one call, so that events of several threads do not mix if each holds the
    /// same lock.
    ///
    /// # Errors
    ///
    /// Nobody reads any more.
    pub(super) fn write(&self, output: &mut impl Write) -> io::Result<()> {
        let mut bytes = vec![0; 4];
        self.encode(&mut bytes);
        let length = u32::try_from(bytes.len().saturating_sub(4)).unwrap_or(u32::MAX);
        if length > LONGEST {
            return Err(io::Error::other("an event is too long"));
        }
        let prefix = bytes.iter_mut().zip(length.to_le_bytes());
        prefix.for_each(|(to, from)| *to = from);
        output.write_all(&bytes)?;
        output.flush()
    }

    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Ready => out.push(0),
            Self::Offered { identity, runs } => {
                out.push(1);
                out.extend(identity.to_bytes());
                encode_runs(runs, out);
            }
            Self::Acknowledged { identity, spooled } => {
                out.extend([2, u8::from(*spooled)]);
                out.extend(identity.to_bytes());
            }
            Self::Refused { identity } => {
                out.push(3);
                out.extend(identity.to_bytes());
            }
            Self::Poisoned { bytes } => {
                out.push(4);
                out.extend(bytes);
            }
            Self::Processed {
                identity,
                redelivered,
                runs,
                altered,
            } => {
                out.extend([5, u8::from(*redelivered), u8::from(identity.is_some())]);
                let identity = identity.map(|it| it.to_bytes());
                out.extend(identity.unwrap_or([0; ChunkIdentity::BYTES]));
                out.extend(altered.to_le_bytes());
                encode_runs(runs, out);
            }
            Self::Quarantined { bytes } => {
                out.push(6);
                out.extend(bytes);
            }
            Self::Holding => out.push(7),
            Self::Report { json } => {
                out.push(8);
                out.extend(json.as_bytes());
            }
            Self::Waits { what } => {
                out.push(9);
                out.extend(what.as_bytes());
            }
        }
    }

    /// Reads the next event; nothing at the end, wherever that is.
    ///
    /// # Errors
    ///
    /// What was read is no event.
    pub(super) fn read(input: &mut impl Read) -> io::Result<Option<Self>> {
        let mut length = [0; 4];
        if !fill(input, &mut length)? {
            return Ok(None);
        }
        let length = u32::from_le_bytes(length);
        if length > LONGEST {
            return Err(broken());
        }
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
        if !fill(input, &mut bytes)? {
            return Ok(None);
        }
        Self::decode(&bytes).map(Some).ok_or_else(broken)
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        Some(match kind {
            0 => Self::Ready,
            1 => {
                let (identity, rest) = decode_identity(rest)?;
                let runs = decode_runs(rest)?;
                Self::Offered { identity, runs }
            }
            2 => {
                let (spooled, rest) = rest.split_first()?;
                let (identity, _) = decode_identity(rest)?;
                let spooled = *spooled != 0;
                Self::Acknowledged { identity, spooled }
            }
            3 => {
                let (identity, _) = decode_identity(rest)?;
                Self::Refused { identity }
            }
            4 => Self::Poisoned { bytes: rest.into() },
            5 => {
                let (redelivered, rest) = rest.split_first()?;
                let (known, rest) = rest.split_first()?;
                let (identity, rest) = decode_identity(rest)?;
                let (altered, rest) = rest.split_first_chunk()?;
                Self::Processed {
                    identity: (*known != 0).then_some(identity),
                    redelivered: *redelivered != 0,
                    runs: decode_runs(rest)?,
                    altered: u64::from_le_bytes(*altered),
                }
            }
            6 => Self::Quarantined { bytes: rest.into() },
            7 => Self::Holding,
            8 => Self::Report {
                json: String::from_utf8(rest.into()).ok()?,
            },
            9 => Self::Waits {
                what: String::from_utf8(rest.into()).ok()?,
            },
            _ => return None,
        })
    }
}

fn encode_runs(runs: &[Run], out: &mut Vec<u8>) {
    for run in runs {
        let Stream {
            producer,
            life,
            thread,
        } = run.stream;
        for part in [producer, life, thread] {
            out.extend(part.to_le_bytes());
        }
        out.extend(run.count.to_le_bytes());
        out.extend(run.first.to_le_bytes());
    }
}

fn decode_runs(mut rest: &[u8]) -> Option<Vec<Run>> {
    let mut runs = Vec::with_capacity(rest.len() / 18);
    while !rest.is_empty() {
        let (producer, more) = rest.split_first_chunk()?;
        let (life, more) = more.split_first_chunk()?;
        let (thread, more) = more.split_first_chunk()?;
        let (count, more) = more.split_first_chunk()?;
        let (first, more) = more.split_first_chunk()?;
        let stream = Stream {
            producer: u16::from_le_bytes(*producer),
            life: u16::from_le_bytes(*life),
            thread: u16::from_le_bytes(*thread),
        };
        runs.push(Run {
            stream,
            first: u64::from_le_bytes(*first),
            count: u32::from_le_bytes(*count),
        });
        rest = more;
    }
    Some(runs)
}

fn decode_identity(bytes: &[u8]) -> Option<(ChunkIdentity, &[u8])> {
    let (identity, rest) = bytes.split_first_chunk()?;
    Some((ChunkIdentity::from_bytes(identity)?, rest))
}

/// Fills the buffer; whether there was enough.
fn fill(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match input.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "what was told is no event")
}

#[cfg(test)]
mod tests {
    use baler_common::transport::{Epoch, ProducerId};

    use super::*;

    fn identity() -> ChunkIdentity {
        ChunkIdentity {
            producer: ProducerId::new(7),
            epoch: Epoch {
                start_unix_ns: 1,
                random: 2,
            },
            lane: 3,
            sequence: 4,
        }
    }

    fn events() -> Vec<Event> {
        let stream = |thread| Stream {
            producer: 1,
            life: 2,
            thread,
        };
        let mut runs = Vec::new();
        for number in [0, 1, 2, 5, 6] {
            Run::append(&mut runs, stream(0), number);
        }
        Run::append(&mut runs, stream(1), 7);
        assert_eq!(runs.len(), 3);
        let identity = identity();
        vec![
            Event::Ready,
            Event::Offered {
                identity,
                runs: runs.clone(),
            },
            Event::Acknowledged {
                identity,
                spooled: true,
            },
            Event::Refused { identity },
            Event::Poisoned {
                bytes: vec![1, 2, 3],
            },
            Event::Processed {
                identity: Some(identity),
                redelivered: true,
                runs,
                altered: 9,
            },
            Event::Processed {
                identity: None,
                redelivered: false,
                runs: Vec::new(),
                altered: 0,
            },
            Event::Quarantined { bytes: Vec::new() },
            Event::Holding,
            Event::Report { json: "{}".into() },
            Event::Waits {
                what: "broker".into(),
            },
        ]
    }

    #[test]
    fn events_come_back_from_their_bytes() {
        let mut bytes = Vec::new();
        for event in events() {
            event.write(&mut bytes).unwrap();
        }
        let mut input = bytes.as_slice();
        for event in events() {
            assert_eq!(Event::read(&mut input).unwrap(), Some(event));
        }
        assert_eq!(Event::read(&mut input).unwrap(), None);
    }

    #[test]
    fn an_event_cut_short_did_not_happen() {
        for event in events() {
            let mut bytes = Vec::new();
            event.write(&mut bytes).unwrap();
            for end in 0..bytes.len() {
                assert_eq!(Event::read(&mut &bytes[..end]).unwrap(), None);
            }
        }
    }

    #[test]
    fn foreign_bytes_are_told_from_events() {
        assert!(Event::read(&mut [1, 0, 0, 0, 99].as_slice()).is_err());
        assert!(Event::read(&mut [255; 9].as_slice()).is_err());
    }
}
