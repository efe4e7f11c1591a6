//! What a queue is made of: blocks, and records that stand alone.

use std::sync::Arc;

use baler_common::record::{Schema, WordRows};

#[cfg(feature = "enable")]
use super::block::CALL_WORDS;
use super::block::{Block, BlockReader, BlockWords, Extent, ReadBuffer, RowRef, Stamp, Stored};

/// What a record by itself is charged beside its fields: what holds it.
const BOXED_BYTES: usize = 64;

/// A block, or a record by itself: one too large for a block, or of a thread that has none.
#[derive(Debug)]
pub(super) enum Piece {
    Block(Arc<Block>),
    Boxed(Arc<Boxed>),
}

/// A record by itself.
#[derive(Debug)]
pub(super) enum Boxed {
    #[cfg(feature = "enable")]
    Call([u64; CALL_WORDS]),
    Fields {
        schema: Arc<Schema>,
        stamp: Stamp,
        fields: Box<[u8]>,
    },
}

/// Reads a part of a piece.
#[derive(Debug)]
pub(crate) struct PieceReader(Reader);

#[derive(Debug)]
enum Reader {
    Block(BlockReader),
    Boxed { boxed: Arc<Boxed>, done: bool },
}

impl Piece {
    /// The extent of a record by itself.
    pub(super) const BOXED: Extent = Extent {
        rows: 1,
        words: Extent::NONE.words + 1,
    };

    /// A record by itself.
    pub(super) fn boxed(row: &RowRef<'_>) -> Self {
        Self::Boxed(Arc::new(match *row {
            #[cfg(feature = "enable")]
            RowRef::Call(call) => Boxed::Call(call),
            RowRef::Fields {
                schema,
                stamp,
                fields,
            } => Boxed::Fields {
                schema: Arc::clone(schema),
                stamp,
                fields: fields.into(),
            },
        }))
    }

    /// What it is charged.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Block(block) => block.bytes(),
            Self::Boxed(boxed) => match &**boxed {
                #[cfg(feature = "enable")]
                Boxed::Call(_) => BOXED_BYTES,
                Boxed::Fields { fields, .. } => fields.len().saturating_add(BOXED_BYTES),
            },
        }
    }

    /// What is between two extents.
    pub(super) fn read(&self, from: usize, until: usize) -> PieceReader {
        PieceReader(match self {
            Self::Block(block) => Reader::Block(BlockReader::new(Arc::clone(block), from, until)),
            Self::Boxed(boxed) => Reader::Boxed {
                boxed: Arc::clone(boxed),
                done: false,
            },
        })
    }
}

impl PieceReader {
    /// The kind of row that is next, of those that [`Self::compact`] hands over; 0 if none is.
    #[cfg(feature = "enable")]
    #[inline]
    pub(crate) fn next_kind(&self) -> u64 {
        match &self.0 {
            Reader::Block(reader) => reader.next_kind(),
            // A record by itself is not worth the while.
            Reader::Boxed { .. } => 0,
        }
    }

    /// Hands over compact rows of this kind, of so many words each, as long as they are next, so many
    /// at most, and as long as `take` wants more.
    #[cfg(feature = "enable")]
    #[inline]
    pub(crate) fn compact<const N: usize>(
        &mut self,
        kind: u64,
        most: usize,
        take: impl FnMut([u64; N]) -> bool,
    ) {
        if let Reader::Block(reader) = &mut self.0 {
            reader.compact(kind, most, take);
        }
    }

    /// Whether [`Self::words`] has any.
    #[inline]
    pub(crate) fn are_words_next(&self) -> bool {
        matches!(&self.0, Reader::Block(reader) if reader.are_words_next())
    }

    /// Hands over rows of words of one type that are next, so many at most and of hardly more bytes
    /// than these, and whether their times are ticks; says that they are taken but for those behind
    /// the number that `take` yields.
    pub(crate) fn words(
        &mut self,
        buffer: &mut ReadBuffer,
        most: (usize, usize),
        take: impl FnOnce(&Arc<Schema>, BlockWords<'_>, &WordRows<'_>, bool) -> usize,
    ) {
        if let Reader::Block(reader) = &mut self.0 {
            reader.words(buffer, most, take);
        }
    }

    /// Takes the next row; `buffer` is what the reader before has used.
    pub(crate) fn next_row<'a>(&'a mut self, buffer: &'a mut ReadBuffer) -> Option<Stored<'a>> {
        match &mut self.0 {
            Reader::Block(reader) => reader.next_row(buffer),
            Reader::Boxed { boxed, done } => {
                if std::mem::replace(done, true) {
                    return None;
                }
                Some(match &**boxed {
                    #[cfg(feature = "enable")]
                    Boxed::Call(call) => Stored::Call(*call),
                    Boxed::Fields {
                        schema,
                        stamp,
                        fields,
                    } => Stored::Fields {
                        schema,
                        stamp: *stamp,
                        fields,
                    },
                })
            }
        }
    }
}
