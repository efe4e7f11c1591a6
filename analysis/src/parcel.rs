//! The records of one chunk on their way through the stages, and the receipt of their delivery.

use std::iter;
use std::sync::{Arc, OnceLock};

use baler_common::container::{ChunkSummary, Compression, DecodedChunk};
use baler_common::record::{Field, ReadError, RecordBatch, RecordRef, Records, Schema};
use baler_common::transport::{ChunkIdentity, ContainerKind, Delivery, Origin, Token, Verdict};
use crossbeam_channel::Sender;

use crate::filters::Counts;
use crate::json_text::opened_batch;

/// The records of one chunk, or a selection of them. Clones share the records.
///
/// When the last clone is dropped, the chunk is settled: acknowledged, or given back if a stage
/// failed or panicked while it held one.
#[derive(Debug, Clone)]
pub struct Parcel {
    chunk: Arc<ParcelContent>,
    /// Positions of the selected records in ascending order, or all.
    selection: Option<Arc<[u32]>>,
}

#[derive(Debug, Clone)]
struct ParcelContent {
    chunk: DecodedChunk,
    identity: Option<ChunkIdentity>,
    origin: Option<Origin>,
    is_redelivered: bool,
    /// Copies with fewer fields share it.
    receipt: Option<Arc<Receipt>>,
}

/// Reports the verdict on a delivery when it is dropped.
#[derive(Debug)]
struct Receipt {
    token: Token,
    failure: OnceLock<Box<str>>,
    done: Sender<Processed>,
}

/// A delivery that the last stage has released.
#[derive(Debug)]
pub(crate) struct Processed {
    pub(crate) token: Token,
    pub(crate) verdict: Verdict,
    /// The reason why it is given back, if it is.
    pub(crate) failure: Option<Box<str>>,
}

impl Drop for Receipt {
    fn drop(&mut self) {
        let panicked = || std::thread::panicking().then(|| "a stage panicked".into());
        let failure = self.failure.take().or_else(panicked);
        let verdict = match failure {
            Some(_) => Verdict::Retry,
            None => Verdict::Ack,
        };
        // If the source is gone, nothing receives this, and the medium delivers again.
        let token = self.token;
        self.done
            .send(Processed {
                token,
                verdict,
                failure,
            })
            .ok();
    }
}

impl Parcel {
    /// Creates a parcel that belongs to no delivery: for stages that are fed by hand.
    pub fn new(chunk: DecodedChunk) -> Self {
        let identity = chunk.summary.identity();
        Self::with_content(ParcelContent {
            chunk,
            identity,
            origin: None,
            is_redelivered: false,
            receipt: None,
        })
    }

    /// Creates a parcel of records that were in no chunk, for example records of a log.
    pub fn of_batch(batch: RecordBatch) -> Self {
        let summary = ChunkSummary {
            container: ContainerKind::Native,
            format: "columnar",
            compression: Compression::None,
            bytes: 0,
            checksum: 0,
            records: Some(batch.len()),
            time_span: batch.time_span(),
            header: None,
        };
        Self::new(DecodedChunk { summary, batch })
    }

    pub(crate) fn delivered(
        chunk: DecodedChunk,
        identity: Option<ChunkIdentity>,
        delivery: Delivery,
        done: Sender<Processed>,
    ) -> Self {
        Self::with_content(ParcelContent {
            chunk,
            identity,
            origin: Some(delivery.origin),
            is_redelivered: delivery.redelivered,
            receipt: Some(Arc::new(Receipt {
                token: delivery.token,
                failure: OnceLock::new(),
                done,
            })),
        })
    }

    fn with_content(content: ParcelContent) -> Self {
        Self {
            chunk: Arc::new(content),
            selection: None,
        }
    }

    /// Returns the whole chunk, regardless of the selection.
    pub fn chunk(&self) -> &DecodedChunk {
        &self.chunk.chunk
    }

    /// Returns the chunk's identity. Together with a record's position it names the record. `None`
    /// if neither the container nor the medium has it.
    pub fn identity(&self) -> Option<ChunkIdentity> {
        self.chunk.identity
    }

    /// Returns the origin of the chunk.
    pub fn origin(&self) -> Option<&Origin> {
        self.chunk.origin.as_ref()
    }

    /// Whether the medium marked the chunk as delivered before.
    pub fn is_redelivered(&self) -> bool {
        self.chunk.is_redelivered
    }

    /// Returns the positions of the selected records in the chunk, in ascending order; `None` for
    /// all.
    pub fn selection(&self) -> Option<&[u32]> {
        self.selection.as_deref()
    }

    /// Returns the number of selected records.
    pub fn len(&self) -> usize {
        match &self.selection {
            Some(selection) => selection.len(),
            None => self.chunk.chunk.batch.len(),
        }
    }

    /// Whether no record is selected.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The selected records with their positions in the chunk, in order.
    pub fn records(&self) -> impl Iterator<Item = (u32, RecordRef<'_>)> {
        let mut wanted = self
            .selection
            .as_deref()
            .map(|selection| selection.iter().peekable());
        let records = (0_u32..).zip(self.chunk.chunk.batch.records());
        records.filter(move |(position, _)| match &mut wanted {
            None => true,
            Some(wanted) => wanted.next_if(|next| *next == position).is_some(),
        })
    }

    /// The selected records of the types of `R` as values, in order; see [`RecordBatch::read`].
    pub fn read<R: Records>(&self) -> impl Iterator<Item = Result<R, ReadError>> {
        let mut typed = self.chunk.chunk.batch.read::<R>();
        let is_selected = |position: Option<usize>| match self.selection() {
            None => true,
            Some(selection) => position
                .and_then(|it| u32::try_from(it).ok())
                .is_some_and(|it| selection.binary_search(&it).is_ok()),
        };
        iter::from_fn(move || {
            loop {
                let record = typed.next()?;
                if is_selected(typed.last_position()) {
                    return Some(record);
                }
            }
        })
    }

    /// Returns a parcel with the selected records that `keep` accepts.
    #[must_use]
    pub fn select(&self, mut keep: impl FnMut(RecordRef<'_>) -> bool) -> Self {
        let kept: Vec<u32> = self
            .records()
            .filter(|(_, record)| keep(*record))
            .map(|(position, _)| position)
            .collect();
        if kept.len() == self.len() {
            return self.clone();
        }
        Self {
            chunk: Arc::clone(&self.chunk),
            selection: Some(kept.into()),
        }
    }

    /// A parcel of the same delivery and selection, with a copy of the fields that `keep` accepts.
    /// Fields inside JSON text count, too ([`opened`](crate::json_text::opened)).
    #[must_use]
    pub fn narrowed(&self, keep: impl FnMut(&Schema, &Field) -> bool) -> Self {
        let batch = &self.chunk.chunk.batch;
        self.with_batch(match opened_batch(batch) {
            Some(opened) => opened.narrowed(keep),
            None => batch.narrowed(keep),
        })
    }

    /// A parcel of the same delivery and selection, whose records are
    /// [`opened`](crate::json_text::opened) if they have JSON text.
    #[must_use]
    pub fn opened(&self) -> Self {
        let opened = opened_batch(&self.chunk.chunk.batch);
        opened.map_or_else(|| self.clone(), |opened| self.with_batch(opened))
    }

    /// A parcel of the same delivery and selection, with other forms of its records.
    fn with_batch(&self, batch: RecordBatch) -> Self {
        let content = &*self.chunk;
        Self {
            chunk: Arc::new(ParcelContent {
                chunk: DecodedChunk {
                    summary: content.chunk.summary.clone(),
                    batch,
                },
                identity: content.identity,
                origin: content.origin.clone(),
                is_redelivered: content.is_redelivered,
                receipt: content.receipt.clone(),
            }),
            selection: self.selection.clone(),
        }
    }

    /// Returns a parcel of the same delivery without records, for stages that only keep its
    /// receipt.
    #[must_use]
    pub fn without_records(&self) -> Self {
        let content = &*self.chunk;
        Self::with_content(ParcelContent {
            chunk: DecodedChunk {
                summary: content.chunk.summary.clone(),
                batch: RecordBatch::default(),
            },
            identity: content.identity,
            origin: None,
            is_redelivered: content.is_redelivered,
            receipt: content.receipt.clone(),
        })
    }

    /// Returns all records of the chunk, selected or not, and a parcel that only keeps the receipt.
    /// If a clone has the records as well, they are copied.
    pub fn into_batch(self) -> (RecordBatch, Self) {
        let receipt = self.without_records();
        let content = Arc::unwrap_or_clone(self.chunk);
        (content.chunk.batch, receipt)
    }

    /// Marks the delivery as not processed: it will be given back. For errors of a stage.
    pub fn fail(&self) {
        self.fail_because("a stage did not process it");
    }

    /// As [`fail`](Self::fail), with a reason. The quarantine shows it if the chunk fails too
    /// often. The first reason counts.
    pub fn fail_because(&self, reason: impl Into<Box<str>>) {
        if let Some(receipt) = &self.chunk.receipt {
            receipt.failure.set(reason.into()).ok();
        }
    }
}

/// Returns the row and the position of each selected record, table by table. `None` selects all
/// records.
///
/// # Panics
///
/// The selection is not in ascending order, or has a position that no record has.
pub(crate) fn rows_by_table(
    batch: &RecordBatch,
    selection: Option<&[u32]>,
) -> Vec<Vec<(u32, u32)>> {
    let mut selected = vec![Vec::new(); batch.tables().len()];
    let mut next = vec![0; selected.len()];
    let mut wanted = selection.map(|selection| selection.iter().peekable());
    // Without an order there is only one table.
    let order = batch.order().iter().copied().chain(iter::repeat(0));
    for (position, table) in (0..).zip(order).take(batch.len()) {
        let table = table as usize;
        let is_wanted = match &mut wanted {
            None => true,
            Some(wanted) => wanted.next_if(|next| **next == position).is_some(),
        };
        if is_wanted {
            selected[table].push((next[table], position));
        }
        next[table] += 1;
    }
    assert!(
        wanted.is_none_or(|mut wanted| wanted.next().is_none()),
        "the selection is not in order, or a position is outside of the batch"
    );
    selected
}

/// Parcels that are not processed yet: buffered output, or messages in a pipe.
///
/// If it is dropped without [`Held::release_all`], its parcels go back to the medium. So nothing is
/// acknowledged because a pipeline ended early.
#[derive(Debug, Default)]
pub struct Held {
    parcels: Vec<Parcel>,
}

impl Held {
    /// Holds one parcel.
    pub fn of(parcel: Parcel) -> Self {
        Self {
            parcels: vec![parcel],
        }
    }

    /// Holds one more.
    pub fn push(&mut self, parcel: Parcel) {
        self.parcels.push(parcel);
    }

    /// Returns the number of its parcels.
    pub fn len(&self) -> usize {
        self.parcels.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.parcels.is_empty()
    }

    /// Returns the parcels, oldest first.
    pub fn parcels(&self) -> impl Iterator<Item = &Parcel> {
        self.parcels.iter()
    }

    /// Releases the parcels because they are processed. It is empty afterwards.
    pub fn release_all(&mut self) {
        self.parcels.clear();
    }

    /// Counts the records of the parcels as written, and releases them. It is empty afterwards.
    pub fn release_into(&mut self, written: &Counts) {
        self.parcels
            .drain(..)
            .for_each(|parcel| written.parcel(&parcel));
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.parcels.iter().for_each(Parcel::fail);
    }
}
