//! How far a partition was fetched and settled, and what the brokers removed of it.

use std::fmt;

use baler_common::transport::{ChunkIdentity, SettledPrefix};

use super::last_chunks::LastChunks;

/// A partition of this reader.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// Every fetched offset from the watermark on. Settled ones have the chunk's identity, if it has
    /// one.
    pending: SettledPrefix<i64, Option<ChunkIdentity>>,
    /// The offset after the last one that was fetched. Before the first one, the position that the
    /// group has committed, if the brokers said it.
    next: Option<i64>,
    /// Where reading begins if the group has committed nothing, as the client last said.
    start: Option<i64>,
    /// The offset after the last one of the partition, as the brokers last said.
    end: Option<i64>,
    /// Whether the last fetch found nothing more.
    pub(super) is_at_end: bool,
    /// Offsets that were skipped, until the brokers say whether they were removed.
    pub(super) skipped: Option<Skipped>,
    /// The position to which the group must go back, until it is committed.
    pub(super) lower: Option<i64>,
    /// The position that the client was given to commit.
    stored: Option<i64>,
    /// The last chunks below the watermark.
    last: LastChunks,
}

/// A partition as the group hands it over.
#[derive(Debug, Clone, Default)]
pub(super) struct Position {
    pub(super) partition: i32,
    /// The offset that the group has committed.
    pub(super) offset: Option<i64>,
    /// The last chunks before it.
    pub(super) last: LastChunks,
}

/// A position of the group to commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Commit {
    pub(super) partition: i32,
    /// The offset after the last settled one.
    pub(super) offset: i64,
    /// The text beside it.
    pub(super) text: String,
}

/// Offsets between two fetched ones, or between the group's position and the first one. Transactions
/// and compaction leave such gaps, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Skipped {
    pub(super) from: i64,
    /// The fetched offset after them. `None` if none was fetched since the assignment.
    pub(super) to: Option<i64>,
}

/// Where the client goes on if the brokers do not have the next offset (`auto.offset.reset`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reset {
    Start,
    End,
    /// Nowhere: the client reports an error.
    Error,
}

impl Reset {
    /// Reads the setting.
    pub(super) fn new(setting: Option<&str>) -> Self {
        match setting {
            Some("earliest" | "beginning" | "smallest") | None => Self::Start,
            Some("error") => Self::Error,
            Some(_) => Self::End,
        }
    }

    /// Returns the offset at which it goes on, between the ends of the partition.
    pub(super) fn position(self, (start, end): (i64, i64)) -> Option<i64> {
        match self {
            Self::Start => Some(start),
            Self::End => Some(end),
            Self::Error => None,
        }
    }
}

/// Chunks that the reader cannot get any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Removal {
    /// The topic's limits removed them.
    Limits {
        from: i64,
        /// The offset after the last one that the reader does not get.
        to: i64,
        /// The first offset that the topic still has.
        start: i64,
    },
    /// The partition ends before the offset that was to be next, or went on before it.
    Anew { expected: i64, goes_on: i64 },
}

impl Removal {
    /// The number of chunks, as far as it is known.
    pub(super) fn chunks(self) -> u64 {
        match self {
            Self::Limits { from, to, .. } => to.abs_diff(from),
            Self::Anew { .. } => 0,
        }
    }
}

impl fmt::Display for Removal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Limits { from, to, start } => {
                write!(
                    f,
                    "the offsets from {from} to before {to} were removed by the topic's limits \
                     before they were read: {} chunks at most are lost",
                    self.chunks()
                )?;
                if to > start {
                    write!(
                        f,
                        "; of these the topic has those from {start} on, and auto.offset.reset \
                         skips them"
                    )?;
                }
                Ok(())
            }
            Self::Anew { expected, goes_on } => write!(
                f,
                "reading goes on at offset {goes_on}, and {expected} was to be next: the topic was \
                 made anew, or a broker has lost its end; what was not read before that is lost"
            ),
        }
    }
}

/// How a fetched offset fits to the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// It is below them, or below the group's position, although the reader did not go back: the topic
    /// was made anew, or a broker has lost its end.
    Below {
        /// The offset that was to be next.
        expected: i64,
    },
    /// It was fetched before and is not settled.
    Known,
    New,
}

impl Lane {
    /// Begins with the position that the group has committed, if it has one. The brokers must say
    /// whether they still have it.
    pub(super) fn at(position: Position) -> Self {
        Self {
            next: position.offset,
            skipped: position.offset.map(|from| Skipped { from, to: None }),
            last: position.last,
            ..Self::default()
        }
    }

    /// Notes a fetched offset.
    pub(super) fn arrive(&mut self, offset: i64) -> Arrival {
        self.is_at_end = false;
        if self.pending.contains(&offset) {
            return Arrival::Known;
        }
        let arrival = match self.next {
            Some(expected) if offset < expected => {
                self.begin_anew(offset);
                Arrival::Below { expected }
            }
            Some(expected) if expected < offset => {
                // The first offset of several gaps counts.
                let from = self.skipped.map_or(expected, |skipped| skipped.from);
                let to = Some(offset);
                self.skipped = Some(Skipped { from, to });
                Arrival::New
            }
            _ => {
                // The brokers had the group's position.
                self.skipped = self.skipped.filter(|skipped| skipped.to.is_some());
                Arrival::New
            }
        };
        self.pending.insert(offset, None);
        self.next = offset.checked_add(1);
        arrival
    }

    /// Goes on at an offset below the group's position. The client commits no offset below the one
    /// that it knows, so the group must go back first.
    fn begin_anew(&mut self, offset: i64) {
        *self = Self {
            next: Some(offset),
            lower: Some(offset),
            last: std::mem::take(&mut self.last),
            ..Self::default()
        };
    }

    /// Takes the brokers' answer about skipped offsets: the first offset of the partition, and the
    /// one after its last one. Returns what the reader does not get.
    pub(super) fn explain(
        &mut self,
        skipped: Skipped,
        ends: (i64, i64),
        reset: Reset,
    ) -> Option<Removal> {
        let (start, end) = ends;
        let Skipped { from, to } = skipped;
        if to.is_none() && from > end {
            let goes_on = reset.position(ends)?;
            self.begin_anew(goes_on);
            let expected = from;
            return Some(Removal::Anew { expected, goes_on });
        }
        if start <= from {
            return None;
        }
        let to = match to {
            Some(to) if reset == Reset::End => to,
            Some(to) => start.min(to),
            None => reset.position(ends)?,
        };
        self.next = self.next.max(Some(to));
        Some(Removal::Limits { from, to, start })
    }

    /// Notes the ends of the partition. `start` is where reading begins without a commit. The last one
    /// counts: the first one may come from an earlier assignment.
    pub(super) fn update_watermarks(&mut self, start: Option<i64>, end: i64) {
        self.start = start.or(self.start);
        self.end = self.end.max(Some(end));
    }

    /// How many offsets of the partition are not settled, as far as the brokers say.
    pub(super) fn lag(&self) -> Option<u64> {
        let first = self.pending.first().copied();
        let watermark = first.or(self.next).or(self.start)?;
        // Fetched messages may be newer than the brokers' answer.
        let end = self.end?.max(self.next.unwrap_or(watermark));
        u64::try_from(end.checked_sub(watermark)?).ok()
    }

    /// Settles an offset. Returns whether the watermark moves.
    pub(super) fn settled(&mut self, offset: i64, identity: Option<ChunkIdentity>) -> bool {
        if let Some(fetched) = self.pending.settle(&offset) {
            *fetched = identity;
        }
        let mut moves = false;
        while let Some((offset, identity)) = self.pending.pop_settled() {
            self.stored = offset.checked_add(1);
            identity.into_iter().for_each(|it| self.last.note(it));
            moves = true;
        }
        moves
    }

    /// The position that the client was given to commit, with the last chunks before it.
    pub(super) fn stored(&self) -> Option<(i64, String)> {
        Some((self.stored?, self.last.text()))
    }

    /// The position to which the group must go back, with the last chunks that are known.
    pub(super) fn take_lower(&mut self) -> Option<(i64, String)> {
        Some((self.lower.take()?, self.last.text()))
    }

    /// How many fetched offsets follow the watermark.
    pub(super) fn len(&self) -> usize {
        self.pending.len()
    }
}
