//! The last chunk of each producer's lane below the position of the group, as text.
//!
//! Brokers keep a text beside each committed offset. The next reader of the partition learns from
//! it the chunk at which each lane goes on, and so notices chunks that are missing.

use baler_common::transport::ChunkIdentity;

/// The longest text that brokers keep by default (`offset.metadata.max.bytes`).
const MAX_BYTES: usize = 4_096;

/// The most lanes. Hardly more fit into the text.
const MAX_LANES: usize = 64;

/// The last chunks of the lanes that moved last, at most [`MAX_LANES`].
#[derive(Debug, Clone, Default)]
pub(super) struct LastChunks {
    /// The lane that moved last comes last.
    chunks: Vec<LastChunk>,
}

#[derive(Debug, Clone)]
struct LastChunk {
    identity: ChunkIdentity,
    text: String,
}

impl LastChunks {
    /// Reads the text beside a committed offset. Other programs may have written other text there,
    /// so words that are no identity are ignored.
    pub(super) fn parse(text: &str) -> Self {
        let mut read = Self::default();
        let words = text.rsplit(' ').filter_map(|word| word.parse().ok());
        words.for_each(|identity| read.note(identity));
        read
    }

    /// Records a settled chunk.
    pub(super) fn note(&mut self, mut identity: ChunkIdentity) {
        let lane = |it: &ChunkIdentity| (it.producer, it.epoch, it.lane);
        let mut all = self.chunks.iter();
        if let Some(at) = all.rposition(|it| lane(&it.identity) == lane(&identity)) {
            // A copy of an earlier chunk may come late.
            let known = self.chunks.remove(at).identity.sequence;
            identity.sequence = identity.sequence.max(known);
        } else if self.chunks.len() >= MAX_LANES {
            self.chunks.remove(0);
        }
        let text = identity.to_string();
        self.chunks.push(LastChunk { identity, text });
    }

    /// Returns the text for the broker: as many lanes as fit, the one that moved last first.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for LastChunk { text: chunk, .. } in self.chunks.iter().rev() {
            if text.len() + 1 + chunk.len() > MAX_BYTES {
                break;
            }
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(chunk);
        }
        text
    }

    /// Returns the last chunks.
    pub(super) fn identities(&self) -> impl Iterator<Item = ChunkIdentity> {
        self.chunks.iter().map(|chunk| chunk.identity)
    }
}
