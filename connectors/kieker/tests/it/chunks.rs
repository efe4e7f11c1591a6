//! Chunks of real records, for writers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use baler_common::container::{ChunkHeader, ChunkSerializer, Compression, NativeSerializer};
use baler_common::record::{BatchBuilder, DynamicRecord, Record as _, RecordBatch};
use baler_common::transport::{
    Capability, Chunk, ChunkIdentity, ChunkMeta, ChunkWriter, CloseReport, ContainerKind,
    DeliveryReport, Epoch, Notify, Outcome, ProducerId, Rejected, TransportError,
};
use baler_connector_kieker::container::{self, KiekerSerializer, KiekerStream, StreamStep};
use baler_connector_kieker::types;
use baler_connector_kieker::types::EmptyRecord;

pub(crate) fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

/// The batches of a recorded stream over one socket.
pub(crate) fn batches(stream: &[u8]) -> Vec<RecordBatch> {
    let mut cutter = KiekerStream::new(types::shared_catalog());
    let mut decoder = container::decoder();
    let mut batches = Vec::new();
    let mut left = stream;
    loop {
        let (taken, step) = cutter.cut(left);
        left = &left[taken..];
        let step = step.unwrap();
        let chunk = cutter.take_chunk();
        batches.extend(chunk.map(|chunk| decoder.decode(&chunk.bytes).unwrap().batch));
        if matches!(step, StreamStep::More(_)) {
            assert!(left.is_empty());
            return batches;
        }
    }
}

/// A batch as a chunk of a container.
pub(crate) fn chunk(ticket: u64, container: ContainerKind, batch: &RecordBatch) -> Chunk {
    let identity = ChunkIdentity {
        producer: ProducerId::new(1),
        epoch: Epoch {
            start_unix_ns: 2,
            random: 3,
        },
        lane: 0,
        sequence: ticket,
    };
    let header = ChunkHeader::new(identity);
    let mut bytes = Vec::new();
    let mut native = NativeSerializer::new(Compression::None).unwrap();
    let mut kieker = KiekerSerializer::new();
    let serializer: &mut dyn ChunkSerializer = match container {
        ContainerKind::Kieker => &mut kieker,
        _ => &mut native,
    };
    serializer.serialize(batch, &header, &mut bytes).unwrap();
    Chunk {
        ticket,
        meta: ChunkMeta {
            container,
            records: u32::try_from(batch.len()).unwrap(),
            identity,
        },
        bytes: bytes.into(),
    }
}

/// Batches as chunks, of each container in turn.
pub(crate) fn chunks(batches: &[RecordBatch]) -> Vec<Chunk> {
    let containers = [ContainerKind::Native, ContainerKind::Kieker];
    let containers = containers.into_iter().cycle();
    (0..)
        .zip(batches.iter().zip(containers))
        .map(|(ticket, (batch, container))| chunk(ticket, container, batch))
        .collect()
}

/// Opens a writer, writes chunks, and closes it.
pub(crate) fn write_all(
    mut writer: Box<dyn ChunkWriter>,
    chunks: Vec<Chunk>,
) -> (Vec<DeliveryReport>, CloseReport) {
    struct Nobody;
    impl Notify for Nobody {
        fn notify(&self) {}
    }
    writer.set_notify(Arc::new(Nobody));
    writer.reopen(soon()).unwrap();
    for chunk in chunks {
        writer.offer(chunk).unwrap();
    }
    let mut report = writer.close(soon());
    (std::mem::take(&mut report.delivery_reports), report)
}

/// Asserts that each of these chunks was written.
pub(crate) fn assert_written(
    delivery_reports: &[DeliveryReport],
    report: &CloseReport,
    chunks: usize,
) {
    assert!(
        report.error.is_none() && report.unconfirmed.is_empty(),
        "{report:?}"
    );
    assert_eq!(delivery_reports.len(), chunks);
    for (ticket, confirmation) in (0..).zip(delivery_reports) {
        assert_eq!(confirmation.ticket, ticket);
        assert!(
            matches!(confirmation.outcome, Outcome::Confirmed),
            "{confirmation:?}"
        );
    }
}

/// Gives a writer a chunk of records in place of each chunk of the contract, of the same length.
pub(crate) struct RealChunks(pub(crate) Box<dyn ChunkWriter>);

impl ChunkWriter for RealChunks {
    fn capability(&self) -> &Capability {
        self.0.capability()
    }

    fn offer(&mut self, offered: Chunk) -> Result<(), Rejected> {
        let mut real = one_empty_record(offered.ticket);
        // Kieker's container may have bytes before its last four that mean nothing.
        let mut bytes = real.bytes.to_vec();
        let trailer = bytes.split_off(bytes.len() - 4);
        bytes.resize(offered.bytes.len() - 4, 0);
        bytes.extend(trailer);
        real.bytes = bytes.into();
        self.0.offer(real).map_err(|rejected| Rejected {
            chunk: offered,
            reason: rejected.reason,
        })
    }

    fn delivery_reports(&mut self, out: &mut Vec<DeliveryReport>) -> Result<(), TransportError> {
        self.0.delivery_reports(out)
    }

    fn set_notify(&mut self, notify: Arc<dyn Notify>) {
        self.0.set_notify(notify);
    }

    fn reopen(&mut self, by: Instant) -> Result<(), TransportError> {
        self.0.reopen(by)
    }

    fn close(self: Box<Self>, by: Instant) -> CloseReport {
        self.0.close(by)
    }
}

pub(crate) fn one_empty_record(ticket: u64) -> Chunk {
    let mut builder = BatchBuilder::new();
    let record = DynamicRecord::new(EmptyRecord::schema().clone(), Some(7), []).unwrap();
    builder.push_dynamic(&record).unwrap();
    chunk(ticket, ContainerKind::Kieker, &builder.take())
}
