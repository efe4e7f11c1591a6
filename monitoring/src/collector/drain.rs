//! Taking rows out of all queues.

use std::sync::Arc;
use std::time::Instant;

use baler_common::record::{Schema, WordRows};

use super::expand::{Expander, Row};
#[cfg(feature = "enable")]
use crate::probe;
use crate::queue::{BlockWords, PieceReader, QueueSet, ReadBuffer, ThreadQueue};
#[cfg(feature = "enable")]
use crate::queue::{CALL_WORDS, Stored};

/// Goes round the threads' queues; the rows of one thread stay in order.
#[derive(Debug)]
pub(super) struct Drain {
    set: Arc<QueueSet>,
    queues: Vec<Arc<ThreadQueue>>,
    /// The change of the set that `queues` shows.
    known: u64,
    /// The queue being visited, and how far it was filled when the visit began.
    next: usize,
    mark: Option<u64>,
    /// Whether somebody found no room before this round.
    is_pressed: bool,
    /// What is being read; it stays charged to the budget until it is read to its end.
    reader: Option<PieceReader>,
    buffer: ReadBuffer,
    expander: Expander,
}

/// Makes timestamps of the times of rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowTimes<'a> {
    expander: &'a Expander,
    are_ticks: bool,
}

impl RowTimes<'_> {
    /// Nanoseconds since the Unix epoch.
    #[inline(always)]
    pub(super) fn unix_ns(self, time: u64) -> i64 {
        if self.are_ticks {
            self.expander.unix_ns(time)
        } else {
            time.cast_signed()
        }
    }
}

/// How far the queues were filled at some time.
#[derive(Debug)]
pub(super) struct Marks(Vec<(Arc<ThreadQueue>, u64)>);

impl Drain {
    pub(super) fn new(set: Arc<QueueSet>, expander: Expander) -> Self {
        Self {
            set,
            queues: Vec::new(),
            known: 0,
            next: 0,
            mark: None,
            is_pressed: false,
            reader: None,
            buffer: ReadBuffer::default(),
            expander,
        }
    }

    /// Queues what calls have added up to, to be found by the next round.
    pub(super) fn take_aggregates(&mut self, now: Instant) {
        self.expander.refresh(now);
        #[cfg(feature = "enable")]
        self.queue_aggregates();
    }

    #[cfg(feature = "enable")]
    fn queue_aggregates(&mut self) {
        let (set, expander) = (&self.set, &mut self.expander);
        probe::take_all(set.key(), |site, content| {
            set.push_own(&expander.aggregate(site, &content));
        });
    }

    /// Learns of new queues and starts a round; the queue beside the threads' comes first.
    ///
    /// A round takes from each queue what was in it when its turn came. It ends however fast the
    /// threads are, and what the next round finds was emitted after this one began.
    pub(super) fn start_round(&mut self, now: Instant) {
        self.is_pressed = self.set.begin_round(&mut self.known, &mut self.queues);
        self.expander.refresh(now);
        self.next = 0;
        self.mark = None;
    }

    /// Hands the next row to `take`; `None` when the round is over.
    ///
    /// The row counts as taken even if `take` panics.
    #[inline]
    pub(super) fn next_row<T>(&mut self, take: impl FnOnce(Row<'_>) -> T) -> Option<T> {
        loop {
            if let Some(reader) = &mut self.reader {
                if let Some(stored) = reader.next_row(&mut self.buffer) {
                    return Some(take(self.expander.expand(stored)));
                }
                self.reader = None;
            }
            if !self.claim_next() {
                return None;
            }
        }
    }

    /// The kind of row that is next in what is being read; 0 if none is.
    #[cfg(feature = "enable")]
    #[inline]
    pub(super) fn next_kind(&self) -> u64 {
        self.reader.as_ref().map_or(0, PieceReader::next_kind)
    }

    /// Hands the compact rows of a kind to `take` that are next in what is being read, so many at
    /// most, as long as it wants more.
    #[cfg(feature = "enable")]
    #[inline]
    pub(super) fn compact<const N: usize>(
        &mut self,
        kind: u64,
        most: usize,
        mut take: impl FnMut(&mut Expander, [u64; N]) -> bool,
    ) {
        if let Some(reader) = &mut self.reader {
            reader.compact(kind, most, |row| take(&mut self.expander, row));
        }
    }

    /// The row that a batch takes for a compact one.
    #[cfg(feature = "enable")]
    pub(super) fn expand(&mut self, call: [u64; CALL_WORDS]) -> Row<'_> {
        self.expander.expand(Stored::Call(call))
    }

    /// Whether [`Self::words`] has any.
    #[inline]
    pub(super) fn are_words_next(&self) -> bool {
        self.reader
            .as_ref()
            .is_some_and(PieceReader::are_words_next)
    }

    /// Hands rows of words of one type to `take` that are next in what is being read, so many at
    /// most and of hardly more bytes than these; those behind the number that it yields stay.
    ///
    /// All of them count as taken if `take` panics.
    pub(super) fn words(
        &mut self,
        most: (usize, usize),
        take: impl FnOnce(&Arc<Schema>, BlockWords<'_>, &WordRows<'_>, RowTimes<'_>) -> usize,
    ) {
        if let Some(reader) = &mut self.reader {
            let expander = &self.expander;
            reader.words(&mut self.buffer, most, |schema, words, rows, are_ticks| {
                let times = RowTimes {
                    expander,
                    are_ticks,
                };
                take(schema, words, rows, times)
            });
        }
    }

    /// Finds something to read; `false` when the round is over.
    fn claim_next(&mut self) -> bool {
        self.buffer.forget();
        // Claimed piece by piece: those that are not can be evicted to make room.
        while let Some(queue) = self.queues.get(self.next) {
            self.reader = queue.claim(&self.set, &mut self.mark, self.is_pressed);
            if self.reader.is_some() {
                return true;
            }
            self.mark = None;
            self.next = self.next.saturating_add(1);
        }
        self.set.end_round();
        false
    }

    /// Whether something is being read.
    pub(super) fn is_reading(&self) -> bool {
        self.reader.is_some()
    }

    /// How far the queues are filled now.
    pub(super) fn marks(&mut self) -> Marks {
        self.set.refresh(&mut self.known, &mut self.queues);
        let marks = self.queues.iter();
        Marks(
            marks
                .map(|queue| (Arc::clone(queue), queue.appended()))
                .collect(),
        )
    }

    /// Whether everything up to the marks was handed out.
    pub(super) fn has_passed(&self, marks: &Marks) -> bool {
        !self.is_reading() && marks.0.iter().all(|(queue, mark)| queue.taken() >= *mark)
    }
}
