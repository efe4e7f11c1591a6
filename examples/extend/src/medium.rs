//! A medium: a folder as for `file:`, but each chunk is compressed as a whole, in any container.
//! `lz4+file:FOLDER` has the settings of `file:`.

use std::{num::NonZeroUsize, sync::Arc, time::Instant};

use baler::transport::{uri::*, *};

/// The medium, for programs that open media by URI.
pub const LZ4_FILE: Medium = Medium {
    schemes: &["lz4+file"],
    writer: |uri| {
        let writer = baler::media().writer(inner(uri)?)?;
        let mut capability = writer.capability().clone();
        // Incompressible data grows by less than a tenth.
        let bytes = capability.max_chunk_bytes.get() / 10 * 9;
        capability.max_chunk_bytes = NonZeroUsize::new(bytes).unwrap_or(NonZeroUsize::MIN);
        Ok(Box::new(Lz4Writer { writer, capability }))
    },
    receiver: |uri, follow| {
        let receiver = baler::media().receiver(inner(uri)?, follow)?;
        let open = move || receiver.open().map(|open| Lz4Reader(open.reader));
        Ok(ReaderFactory::new(Readership::OneProcess, open))
    },
    browser: None,
};

/// Returns the URI of the folder without this medium.
fn inner(uri: Uri) -> Result<Uri, UriError> {
    Uri::parse(uri.to_string().trim_start_matches("lz4+"))
}

struct Lz4Writer {
    writer: Box<dyn ChunkWriter>,
    capability: Capability,
}

impl ChunkWriter for Lz4Writer {
    fn capability(&self) -> &Capability {
        &self.capability
    }

    fn offer(&mut self, chunk: Chunk) -> Result<(), Rejected> {
        if chunk.bytes.len() > self.capability.max_chunk_bytes.get() {
            return Err(Rejected::too_large(chunk, &self.capability));
        }
        let mut compressed = chunk.clone();
        compressed.bytes = lz4_flex::compress_prepend_size(&chunk.bytes).into();
        let offered = self.writer.offer(compressed);
        offered.map_err(|rejected| Rejected { chunk, ..rejected })
    }

    fn delivery_reports(&mut self, out: &mut Vec<DeliveryReport>) -> Result<(), TransportError> {
        self.writer.delivery_reports(out)
    }

    fn set_notify(&mut self, notify: Arc<dyn Notify>) {
        self.writer.set_notify(notify);
    }

    // `set_probes` is not passed on: nobody switches probes at the other end of a folder.

    fn set_awaited(&mut self, awaited: bool) {
        self.writer.set_awaited(awaited);
    }

    fn stats(&self) -> WriterStats {
        self.writer.stats()
    }

    fn reopen(&mut self, by: Instant) -> Result<(), TransportError> {
        self.writer.reopen(by)
    }

    fn close(self: Box<Self>, by: Instant) -> CloseReport {
        self.writer.close(by)
    }
}

struct Lz4Reader(Box<dyn ChunkReader>);

impl ChunkReader for Lz4Reader {
    fn capability(&self) -> &ReaderCapability {
        self.0.capability()
    }

    fn set_demand(&mut self, chunks: usize) {
        self.0.set_demand(chunks);
    }

    fn receive(&mut self, by: Instant) -> Result<Received, TransportError> {
        let mut delivery = match self.0.receive(by)? {
            Received::Chunk(delivery) => delivery,
            other => return Ok(other),
        };
        if let Some(bytes) = decompress(&delivery.bytes, self.capability().max_chunk_bytes.get()) {
            delivery.bytes = bytes.into();
            return Ok(Received::Chunk(delivery));
        }
        self.0.settle(delivery.token, Verdict::Reject)?;
        Ok(Received::Damaged(Damaged {
            token: None,
            bytes: delivery.bytes,
            origin: delivery.origin,
            reason: "it is not compressed by lz4, or too large".into(),
            peer: None,
        }))
    }

    fn waits_for(&self) -> Option<&'static str> {
        self.0.waits_for()
    }

    fn stats(&self) -> ReaderStats {
        self.0.stats()
    }

    fn settle(&mut self, token: Token, verdict: Verdict) -> Result<Settled, TransportError> {
        self.0.settle(token, verdict)
    }

    fn close(self: Box<Self>, by: Instant) -> ReaderCloseReport {
        self.0.close(by)
    }
}

/// Returns the chunk, if it has at most this many bytes.
fn decompress(bytes: &[u8], limit: usize) -> Option<Vec<u8>> {
    let fits = lz4_flex::block::uncompressed_size(bytes).is_ok_and(|(size, _)| size <= limit);
    fits.then(|| lz4_flex::decompress_size_prepended(bytes).ok())?
}
