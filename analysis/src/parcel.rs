//! The records of one chunk on their way through the stages, and the receipt that goes with them.

use std::sync::{Arc, OnceLock};

use baler_common::container::{ChunkSummary, Compression, DecodedChunk};
use baler_common::record::{Field, RecordBatch, RecordRef, Schema};
use baler_common::transport::{ChunkIdentity, ContainerKind, Delivery, Origin, Token, Verdict};
use crossbeam_channel::Sender;

use crate::filters::Counts;

/// The records of one chunk, or a selection of them. Cloning shares.
///
/// When the last clone is dropped the chunk is settled: acknowledged, or given back if a stage
/// failed or panicked while it held one.
#[derive(Debug, Clone)]
pub struct Parcel {
    chunk: Arc<ParcelContent>,
    /// Positions of the selected records in ascending order, or all.
    selection: Option<Arc<[u32]>>,
}

#[derive(Debug)]
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

/// A delivery that the last stage has let go of.
#[derive(Debug)]
pub(crate) struct Processed {
    pub(crate) token: Token,
    pub(crate) verdict: Verdict,
    /// Why it is given back, if it is.
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
        // Nobody listens any more when the source is gone: the medium then delivers again.
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
    /// A parcel that belongs to no delivery: for stages fed by hand.
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

    /// A parcel of records that were in no chunk, those of a log for instance.
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

    /// The chunk, whatever is selected of it.
    pub fn chunk(&self) -> &DecodedChunk {
        &self.chunk.chunk
    }

    /// The chunk's identity; with a record's position it names the record. `None` when neither the
    /// container nor the medium has it.
    pub fn identity(&self) -> Option<ChunkIdentity> {
        self.chunk.identity
    }

    /// Where the chunk came from.
    pub fn origin(&self) -> Option<&Origin> {
        self.chunk.origin.as_ref()
    }

    /// Whether the medium marked the chunk as delivered before.
    pub fn is_redelivered(&self) -> bool {
        self.chunk.is_redelivered
    }

    /// The positions in the chunk of the selected records, in ascending order; `None` if it is all.
    pub fn selection(&self) -> Option<&[u32]> {
        self.selection.as_deref()
    }

    /// How many records are selected.
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

    /// A parcel with the selected records that `keep` accepts; `self` if it accepts all.
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
    #[must_use]
    pub fn narrowed(&self, keep: impl FnMut(&Schema, &Field) -> bool) -> Self {
        let content = &*self.chunk;
        Self {
            chunk: Arc::new(ParcelContent {
                chunk: DecodedChunk {
                    summary: content.chunk.summary.clone(),
                    batch: content.chunk.batch.narrowed(keep),
                },
                identity: content.identity,
                origin: content.origin.clone(),
                is_redelivered: content.is_redelivered,
                receipt: content.receipt.clone(),
            }),
            selection: self.selection.clone(),
        }
    }

    /// A parcel of the same delivery without records, for stages that only keep its receipt.
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

    /// Marks the delivery as not processed: it will be given back. For errors of a stage.
    pub fn fail(&self) {
        self.fail_because("a stage did not process it");
    }

    /// As [`fail`](Self::fail), with the reason, which the quarantine shows when the chunk fails too
    /// often. The first reason counts.
    pub fn fail_because(&self, reason: impl Into<Box<str>>) {
        if let Some(receipt) = &self.chunk.receipt {
            receipt.failure.set(reason.into()).ok();
        }
    }
}

/// Parcels that are not processed yet: output that waits in a buffer, messages in a pipe.
///
/// When it is dropped without [`Held::release_all`], its parcels go back to the medium: nothing is
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

    /// How many parcels it holds.
    pub fn len(&self) -> usize {
        self.parcels.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.parcels.is_empty()
    }

    /// The parcels, oldest first.
    pub fn parcels(&self) -> impl Iterator<Item = &Parcel> {
        self.parcels.iter()
    }

    /// Lets go of the parcels, since they are processed, and goes on empty.
    pub fn release_all(&mut self) {
        self.parcels.clear();
    }

    /// Counts the records of the parcels as written, lets go of them, and goes on empty.
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
