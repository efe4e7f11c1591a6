//! The commands of the adaptive protocol as bytes, in both versions. No I/O, no state but a count.
//!
//! All integers are big-endian. `docs/adaptive.md` shows every layout.

use baler_common::number::to_usize;

use super::error::{ErrorCode, WireError};

/// The first word after a Hello: "KDB2".
pub const MAGIC: i32 = 0x4b44_4232;

/// The version that this crate speaks.
pub const MAJOR: i16 = 2;

/// The most bytes of a signature, a name or a message.
pub const MAX_TEXT_BYTES: usize = 64 << 10;

/// The most slots of a connection, and the most entries of a command.
pub const MAX_SLOTS: u32 = 1 << 20;

/// The most entries of a [batch](push_batch) that a bridge sends.
pub const BATCH_ENTRIES: usize = 8_192;

/// The ids of commands in version 2. Records of a stream have ids from 0 on, registrations -1.
pub mod id {
    /// A signature, or its verdict.
    pub const SIGNATURE: i32 = -32;
    /// Several verdicts.
    pub const BATCH_UPDATE: i32 = -33;
    /// The beginning.
    pub const HELLO: i32 = -34;
    /// Why the other end closes.
    pub const ERROR: i32 = -35;
    /// A question for a sign of life.
    pub const PING: i32 = -36;
    /// The answer to it.
    pub const PONG: i32 = -37;
    /// Several signatures.
    pub const BATCH_REQUEST: i32 = -38;
    /// The verdicts of all slots.
    pub const SNAPSHOT: i32 = -39;
    /// Counts of a program.
    pub const STATS: i32 = -40;
    /// The end.
    pub const BYE: i32 = -41;
    /// A command with its length, which a receiver may skip.
    pub const FRAMED: i32 = -42;
    /// The last id that is kept for commands.
    pub const LAST: i32 = -63;
}

/// Feature bits of a [`Hello`].
pub mod feature {
    /// The program takes verdicts that it did not ask for.
    pub const PUSH: i32 = 1;
    /// Several entries in one command.
    pub const BATCH: i32 = 2;
    /// The verdicts of all slots in one command.
    pub const SNAPSHOT: i32 = 4;
    /// Commands with their length.
    pub const FRAMED: i32 = 16;
}

/// The layouts of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// `kdb-v1`: requests, updates, and batches without a count.
    V1,
    /// `kdb-v2`, within a stream of Kieker's records.
    V2,
}

/// The end of a connection that sent the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum From {
    /// The end that decides.
    Bridge,
    /// The end that has the probes.
    Program,
}

/// The beginning of a connection, from both ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hello {
    /// Versions with the same number understand each other.
    pub major: i16,
    /// Counts additions.
    pub minor: i16,
    /// Bits of [`feature`].
    pub features: i32,
    /// The most slots that the sender uses or allows.
    pub max_slots: i32,
    /// The name of the sender, for operators.
    pub agent: String,
}

/// Counts of a program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Probe runs whose verdict was known.
    pub hits: i64,
    /// Probe runs whose verdict was not known.
    pub misses: i64,
    /// Records that the program lost.
    pub dropped_records: i64,
    /// Slots in use.
    pub used_slots: i32,
}

/// A command, as a [`Decoder`] returns it. Entries of batches come one by one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// The sender ends, for this reason; 0 is the ordinary end.
    Bye(i32),
    /// Why the sender will close the connection.
    Error {
        /// One of [`ErrorCode`], or a later one.
        code: i32,
        /// The slot in question, or -1.
        slot: i32,
        /// For operators.
        text: String,
    },
    /// A command of a later version, which was skipped.
    Framed(i32),
    /// The beginning.
    Hello(Hello),
    /// A question for a sign of life.
    Ping(i64),
    /// The answer, with the question's number.
    Pong(i64),
    /// The signature of a slot.
    Request {
        /// The slot.
        slot: u32,
        /// The signature.
        signature: String,
    },
    /// The verdicts of all slots follow.
    Snapshot(i64),
    /// Counts of a program.
    Stats(Stats),
    /// The verdict on a slot's signature.
    Update {
        /// The slot.
        slot: u32,
        /// Whether its probes record.
        is_active: bool,
    },
}

/// The result of a step of a [`Decoder`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A command or an entry, and the number of bytes that it took.
    Command(Command, usize),
    /// The head of a batch, with its number of bytes; its entries follow.
    Entries(usize),
    /// At least this number of bytes is needed.
    More(usize),
}

/// Decodes the commands of one end.
///
/// Entries of a batch are returned one by one, so that a batch needs no memory.
#[derive(Debug)]
pub struct Decoder {
    version: Version,
    from: From,
    /// Entries of the current batch that have not come.
    left: usize,
}

impl Decoder {
    /// Creates a decoder of the commands that this end sends.
    pub const fn new(version: Version, from: From) -> Self {
        Self {
            version,
            from,
            left: 0,
        }
    }

    /// Whether entries of a batch are missing, so that no record can come.
    pub const fn is_within_batch(&self) -> bool {
        self.left > 0
    }

    /// Decodes the command or the entry at the start of `input`.
    ///
    /// In version 1 a batch has no count: `input` must end where the message ends.
    ///
    /// # Errors
    ///
    /// No further byte makes it a command. The offset is counted from the start of `input`.
    pub fn step(&mut self, input: &[u8]) -> Result<Step, WireError> {
        let mut bytes = Bytes {
            rest: input,
            offset: 0,
        };
        match self.item(&mut bytes) {
            Ok(Some(command)) => Ok(Step::Command(command, bytes.offset)),
            Ok(None) => Ok(Step::Entries(bytes.offset)),
            Err(Stop::More(needed)) => Ok(Step::More(needed)),
            Err(Stop::Wrong(error)) => Err(error),
        }
    }

    fn item(&mut self, bytes: &mut Bytes<'_>) -> Result<Option<Command>, Stop> {
        if let Some(left) = self.left.checked_sub(1) {
            let entry = self.entry(bytes)?;
            self.left = left;
            return Ok(Some(entry));
        }
        let at = bytes.offset;
        let id = bytes.i32()?;
        // The command c of version 1 has the id -(32 + c) in version 2.
        let id = match self.version {
            Version::V1 if (0..=1).contains(&id) => id::SIGNATURE - id,
            Version::V1 => return Err(wrong(at, ErrorCode::UnknownCommand, "a command")),
            Version::V2 => id,
        };
        let from_program = self.from == From::Program;
        let command = match id {
            id::SIGNATURE => self.entry(bytes)?,
            id::BATCH_UPDATE if !from_program => {
                let at = bytes.offset;
                let nested = match self.version {
                    Version::V1 => 0,
                    Version::V2 => id::SIGNATURE,
                };
                if bytes.i32()? != nested {
                    return Err(wrong(at, ErrorCode::Malformed, "the kind of entries"));
                }
                self.left = match self.version {
                    Version::V1 => bytes.rest.len() / 5,
                    Version::V2 => bytes.count()?,
                };
                return Ok(None);
            }
            id::BATCH_REQUEST if from_program => {
                self.left = bytes.count()?;
                return Ok(None);
            }
            id::SNAPSHOT if !from_program => {
                let epoch = bytes.i64()?;
                self.left = bytes.count()?;
                Command::Snapshot(epoch)
            }
            id::STATS if from_program => Command::Stats(Stats {
                hits: bytes.i64()?,
                misses: bytes.i64()?,
                dropped_records: bytes.i64()?,
                used_slots: bytes.i32()?,
            }),
            id::HELLO => {
                let at = bytes.offset;
                if bytes.i32()? != MAGIC {
                    return Err(wrong(at, ErrorCode::Malformed, "the magic of a Hello"));
                }
                Command::Hello(Hello {
                    major: bytes.i16()?,
                    minor: bytes.i16()?,
                    features: bytes.i32()?,
                    max_slots: bytes.i32()?,
                    agent: bytes.text("the name of an agent")?,
                })
            }
            id::ERROR => Command::Error {
                code: bytes.i32()?,
                slot: bytes.i32()?,
                text: bytes.text("the text of an error")?,
            },
            id::PING => Command::Ping(bytes.i64()?),
            id::PONG => Command::Pong(bytes.i64()?),
            id::BYE => Command::Bye(bytes.i32()?),
            id::FRAMED => {
                let framed = bytes.i32()?;
                let length = bytes.length("a framed command")?;
                bytes.take(length)?;
                Command::Framed(framed)
            }
            id::BATCH_UPDATE | id::BATCH_REQUEST | id::SNAPSHOT | id::STATS => {
                return Err(wrong(
                    at,
                    ErrorCode::NotAllowed,
                    "a command of the other end",
                ));
            }
            _ => return Err(wrong(at, ErrorCode::UnknownCommand, "a command")),
        };
        Ok(Some(command))
    }

    /// A signature or a verdict.
    fn entry(&self, bytes: &mut Bytes<'_>) -> Result<Command, Stop> {
        let at = bytes.offset;
        let slot = u32::try_from(bytes.i32()?);
        let slot = slot.map_err(|_| wrong(at, ErrorCode::Malformed, "a slot"))?;
        if slot >= MAX_SLOTS {
            return Err(wrong(at, ErrorCode::Limit, "a slot"));
        }
        Ok(match self.from {
            From::Program => Command::Request {
                slot,
                signature: bytes.text("a signature")?,
            },
            From::Bridge => Command::Update {
                slot,
                is_active: bytes.bool()?,
            },
        })
    }
}

enum Stop {
    More(usize),
    Wrong(WireError),
}

fn wrong(offset: usize, code: ErrorCode, reading: &'static str) -> Stop {
    Stop::Wrong(WireError {
        code,
        offset,
        slot: None,
        reading,
    })
}

struct Bytes<'a> {
    rest: &'a [u8],
    /// The number of bytes before the rest.
    offset: usize,
}

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Stop> {
        // Lengths are below the limit, so that the sum is small.
        let end = self.offset + count;
        let cut = self.rest.split_at_checked(count);
        let (taken, rest) = cut.ok_or(Stop::More(end))?;
        (self.rest, self.offset) = (rest, end);
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Stop> {
        let end = self.offset + N;
        let cut = self.rest.split_first_chunk::<N>();
        let (taken, rest) = cut.ok_or(Stop::More(end))?;
        (self.rest, self.offset) = (rest, end);
        Ok(*taken)
    }

    fn i16(&mut self) -> Result<i16, Stop> {
        Ok(i16::from_be_bytes(self.array()?))
    }

    fn i32(&mut self) -> Result<i32, Stop> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    fn i64(&mut self) -> Result<i64, Stop> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    fn bool(&mut self) -> Result<bool, Stop> {
        let at = self.offset;
        match self.array()? {
            [0] => Ok(false),
            [1] => Ok(true),
            [_] => Err(wrong(at, ErrorCode::Malformed, "whether a slot is active")),
        }
    }

    fn count(&mut self) -> Result<usize, Stop> {
        const COUNT: &str = "the number of entries";
        let at = self.offset;
        match u32::try_from(self.i32()?) {
            Ok(count) if count <= MAX_SLOTS => Ok(to_usize(count)),
            Ok(_) => Err(wrong(at, ErrorCode::Limit, COUNT)),
            Err(_) => Err(wrong(at, ErrorCode::Malformed, COUNT)),
        }
    }

    fn length(&mut self, reading: &'static str) -> Result<usize, Stop> {
        let at = self.offset;
        match usize::try_from(self.i32()?) {
            Ok(length) if length <= MAX_TEXT_BYTES => Ok(length),
            Ok(_) => Err(wrong(at, ErrorCode::Limit, reading)),
            Err(_) => Err(wrong(at, ErrorCode::Malformed, reading)),
        }
    }

    fn text(&mut self, reading: &'static str) -> Result<String, Stop> {
        let length = self.length(reading)?;
        let at = self.offset;
        let text = std::str::from_utf8(self.take(length)?);
        let text = text.map_err(|_| wrong(at, ErrorCode::Malformed, reading))?;
        Ok(text.to_owned())
    }
}

/// Appends a Hello.
pub fn push_hello(hello: &Hello, out: &mut Vec<u8>) {
    push_words(&[id::HELLO, MAGIC], out);
    out.extend(hello.major.to_be_bytes());
    out.extend(hello.minor.to_be_bytes());
    push_words(&[hello.features, hello.max_slots], out);
    push_text(&hello.agent, out);
}

/// Appends an error about a slot, if there is one.
pub fn push_error(code: ErrorCode, slot: Option<u32>, text: &str, out: &mut Vec<u8>) {
    push_words(&[id::ERROR, code as i32, slot.map_or(-1, word)], out);
    push_text(text, out);
}

/// Appends a question for a sign of life.
pub fn push_ping(nonce: i64, out: &mut Vec<u8>) {
    push_words(&[id::PING], out);
    out.extend(nonce.to_be_bytes());
}

/// Appends the answer to a question.
pub fn push_pong(nonce: i64, out: &mut Vec<u8>) {
    push_words(&[id::PONG], out);
    out.extend(nonce.to_be_bytes());
}

/// Appends the end.
pub fn push_bye(reason: i32, out: &mut Vec<u8>) {
    push_words(&[id::BYE, reason], out);
}

/// Appends counts of a program.
pub fn push_stats(stats: &Stats, out: &mut Vec<u8>) {
    push_words(&[id::STATS], out);
    for count in [stats.hits, stats.misses, stats.dropped_records] {
        out.extend(count.to_be_bytes());
    }
    push_words(&[stats.used_slots], out);
}

/// Appends the signature of a slot.
pub fn push_request(version: Version, slot: u32, signature: &str, out: &mut Vec<u8>) {
    push_words(&[command(version, id::SIGNATURE), word(slot)], out);
    push_text(signature, out);
}

/// Appends the signatures of slots in one command.
pub fn push_batch_request<'s>(
    signatures: impl ExactSizeIterator<Item = (u32, &'s str)>,
    out: &mut Vec<u8>,
) {
    push_words(&[id::BATCH_REQUEST, entries(signatures.len())], out);
    for (slot, signature) in signatures {
        push_words(&[word(slot)], out);
        push_text(signature, out);
    }
}

/// Appends the verdict on a slot.
pub fn push_update(version: Version, slot: u32, is_active: bool, out: &mut Vec<u8>) {
    push_words(&[command(version, id::SIGNATURE)], out);
    push_entry((slot, is_active), out);
}

/// Appends verdicts in one command; in version 1 it must be a message of its own.
pub fn push_batch(
    version: Version,
    verdicts: impl ExactSizeIterator<Item = (u32, bool)>,
    out: &mut Vec<u8>,
) {
    let ids = [id::BATCH_UPDATE, id::SIGNATURE].map(|it| command(version, it));
    push_words(&ids, out);
    if version == Version::V2 {
        push_words(&[entries(verdicts.len())], out);
    }
    verdicts.for_each(|entry| push_entry(entry, out));
}

/// Appends the verdicts on all slots.
pub fn push_snapshot(
    epoch: i64,
    verdicts: impl ExactSizeIterator<Item = (u32, bool)>,
    out: &mut Vec<u8>,
) {
    push_words(&[id::SNAPSHOT], out);
    out.extend(epoch.to_be_bytes());
    push_words(&[entries(verdicts.len())], out);
    verdicts.for_each(|entry| push_entry(entry, out));
}

fn push_entry((slot, is_active): (u32, bool), out: &mut Vec<u8>) {
    push_words(&[word(slot)], out);
    out.push(is_active.into());
}

fn push_words(words: &[i32], out: &mut Vec<u8>) {
    words.iter().for_each(|it| out.extend(it.to_be_bytes()));
}

/// A text beyond the limit is cut, between two characters.
fn push_text(text: &str, out: &mut Vec<u8>) {
    let end = text.floor_char_boundary(MAX_TEXT_BYTES);
    let text = text.get(..end).unwrap_or(text);
    push_words(&[entries(text.len())], out);
    out.extend(text.as_bytes());
}

fn command(version: Version, id: i32) -> i32 {
    match version {
        Version::V1 => id::SIGNATURE - id,
        Version::V2 => id,
    }
}

/// Slots and counts are below 2^20, so that the word is not negative.
#[expect(clippy::cast_possible_wrap, reason = "slots are below the limit")]
const fn word(slot: u32) -> i32 {
    slot as i32
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "entries and texts are below the limit"
)]
const fn entries(count: usize) -> i32 {
    count as i32
}

#[cfg(test)]
mod tests;
