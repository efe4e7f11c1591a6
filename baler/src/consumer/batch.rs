//! The typed records of one chunk until they are acknowledged.

use std::fmt;
use std::slice;
use std::sync::{PoisonError, TryLockError};

use baler_analysis::Parcel;
use baler_common::transport::{ChunkIdentity, Origin};

use super::SharedSource;
use crate::error::Error;

/// Records that arrived together, in the order in which they were emitted.
///
/// [`ack`](Self::ack) acknowledges the batch. A batch that is dropped is given back and delivered
/// again, to this consumer or another one.
pub struct Batch<T> {
    records: Vec<T>,
    /// The position of each record in its chunk.
    positions: Vec<u32>,
    /// Taken when the batch is settled.
    parcel: Option<Parcel>,
    source: SharedSource,
}

/// Names one record uniquely and for ever: a record that is delivered again has the same identity.
/// But Kieker's plain messages, and a relay in front of chunks without identity, give each copy a
/// new one.
///
/// It is displayed as `producer/epoch/lane/sequence/position`, for a column of a sink that removes
/// duplicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordIdentity {
    /// The chunk: producer, epoch, lane and sequence.
    pub chunk: ChunkIdentity,
    /// The position in the chunk.
    pub position: u32,
}

impl fmt::Display for RecordIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.chunk, self.position)
    }
}

impl<T> Batch<T> {
    pub(super) fn new(
        records: Vec<T>,
        positions: Vec<u32>,
        parcel: Parcel,
        source: SharedSource,
    ) -> Self {
        Self {
            records,
            positions,
            parcel: Some(parcel),
            source,
        }
    }

    /// The records.
    pub fn records(&self) -> &[T] {
        &self.records
    }

    /// Returns the number of records.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there are no records, for example because they were
    /// [taken](Self::take_records).
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Takes the records out of the batch. The batch must still be acknowledged.
    pub fn take_records(&mut self) -> Vec<T> {
        std::mem::take(&mut self.records)
    }

    /// Iterates over the records.
    pub fn iter(&self) -> slice::Iter<'_, T> {
        self.records.iter()
    }

    /// Iterates over the records with their identities. An identity is `None` if neither the chunk
    /// nor the medium has one, as with some of Kieker's chunks.
    pub fn identified(&self) -> impl Iterator<Item = (Option<RecordIdentity>, &T)> {
        let chunk = self.identity();
        let identity = move |position| chunk.map(|chunk| RecordIdentity { chunk, position });
        let positions = self.positions.iter().copied();
        positions.map(identity).zip(&self.records)
    }

    /// Returns the identity of the chunk: its producer, the producer's epoch, the lane, and its
    /// number.
    pub fn identity(&self) -> Option<ChunkIdentity> {
        self.parcel.as_ref().and_then(Parcel::identity)
    }

    /// Returns the origin of the chunk: endpoint, lane (a partition, a queue) and position (an
    /// offset).
    pub fn origin(&self) -> Option<&Origin> {
        self.parcel.as_ref().and_then(Parcel::origin)
    }

    /// Whether the medium reports that it delivered the chunk before. It does not know of copies
    /// from the sender, so a sink that removes duplicates must check every identity.
    pub fn is_redelivered(&self) -> bool {
        self.parcel.as_ref().is_some_and(Parcel::is_redelivered)
    }

    /// Returns the whole chunk, including records of other types.
    pub fn parcel(&self) -> Option<&Parcel> {
        self.parcel.as_ref()
    }

    /// Acknowledges the chunk at the medium. It is not delivered again, unless the process or the
    /// connection dies before the medium has the acknowledgement.
    ///
    /// # Errors
    ///
    /// The consumer has already ended ([`Error::Closed`]), or the medium failed. The chunk is then
    /// delivered again.
    pub fn ack(mut self) -> Result<(), Error> {
        let parcel = self.parcel.take();
        let mut guard = match self.source.0.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => PoisonError::into_inner(poisoned),
            Err(TryLockError::WouldBlock) => {
                // Another thread waits for the next chunk, and settles this one meanwhile.
                drop(parcel);
                return Ok(());
            }
        };
        let Some(source) = guard.as_mut() else {
            if let Some(parcel) = &parcel {
                parcel.fail();
            }
            return Err(Error::Closed);
        };
        drop(parcel);
        Ok(source.settle_processed()?)
    }

    /// Gives the chunk back, to be delivered again. If it goes to the quarantine after too many
    /// attempts, the reason is kept with it.
    pub fn give_back(mut self, reason: impl Into<Box<str>>) {
        if let Some(parcel) = self.parcel.take() {
            parcel.fail_because(reason);
        }
    }
}

impl<T> Drop for Batch<T> {
    fn drop(&mut self) {
        if let Some(parcel) = self.parcel.take() {
            parcel.fail_because("the batch was dropped without an acknowledgement");
        }
    }
}

impl<'a, T> IntoIterator for &'a Batch<T> {
    type Item = &'a T;
    type IntoIter = slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T> fmt::Debug for Batch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("records", &self.records.len())
            .field("identity", &self.identity())
            .field("origin", &self.origin())
            .finish_non_exhaustive()
    }
}
