//! Chunks that were cut from a stream.

use std::sync::Arc;

use baler_common::container::{ChunkHeader, ChunkSerializer as _, NativeSerializer};
use baler_common::record::Catalog;
use baler_common::transport::{ChunkIdentity, ChunkMeta, ContainerKind};

use crate::types::WELL_KNOWN_TYPES;

/// A complete chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamChunk {
    /// The container.
    pub bytes: Vec<u8>,
    /// The number of its records.
    pub records: u32,
    /// Whether all records have Kieker's own types. Otherwise a consumer needs the stream's
    /// catalog.
    pub has_only_kiekers_types: bool,
}

impl StreamChunk {
    /// Converts the chunk to a container that every consumer can decode. A chunk with only Kieker's
    /// types stays as it is. Any other becomes a native chunk, which contains its schemas.
    ///
    /// A chunk that does not decode stays as it is, so that its consumer puts it into quarantine.
    /// The chunk gets the identity `next`, whose number then increases by one.
    pub fn for_every_consumer(
        self,
        catalog: &Arc<Catalog>,
        next: &mut ChunkIdentity,
    ) -> (ChunkMeta, Vec<u8>) {
        let identity = *next;
        next.sequence += 1;
        let make_native = || {
            let decoded = super::decoder()
                .with_catalog(Arc::clone(catalog))
                .decode(&self.bytes)
                .ok()?;
            let mut bytes = Vec::new();
            let mut serializer =
                NativeSerializer::default().with_well_known_types(&WELL_KNOWN_TYPES);
            let header = ChunkHeader::new(identity);
            let written = serializer.serialize(&decoded.batch, &header, &mut bytes);
            written.is_ok().then_some(bytes)
        };
        let native = match self.has_only_kiekers_types {
            true => None,
            false => make_native(),
        };
        let (container, bytes) = match native {
            Some(bytes) => (ContainerKind::Native, bytes),
            None => (ContainerKind::Kieker, self.bytes),
        };
        let meta = ChunkMeta {
            container,
            records: self.records,
            identity,
        };
        (meta, bytes)
    }
}
