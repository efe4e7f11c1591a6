//! The records of probes, for measurements that read them in the process that makes them.

use std::mem;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use baler_common::mutex::lock;
use baler_common::record::{RecordBatch, Table};
use baler_common::transport::{
    Capability, Chunk, ChunkWriter, CloseReport, DeliveryReport, Notify, Rejected, TransportError,
};
use baler_connector_null::{NullConfig, NullWriter};

/// The calls of a record, and their times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Time {
    pub(crate) calls: u64,
    /// The time that they took together.
    pub(crate) ns: u64,
    pub(crate) min_ns: u64,
    pub(crate) max_ns: u64,
}

impl Time {
    /// One call.
    pub(crate) const fn of_call(ns: u64) -> Self {
        Self {
            calls: 1,
            ns,
            min_ns: ns,
            max_ns: ns,
        }
    }
}

/// Returns the operation and the time of each record; `None` if the type has no such fields.
pub(crate) fn times_of<'a>(table: &Table, batch: &'a RecordBatch) -> Option<Vec<(&'a str, Time)>> {
    let ids = table.column("operationSignature")?.string_ids()?;
    let operations = ids.iter().map(|id| batch.strings().get(*id));
    let times: Vec<Time> = match table.column("tin") {
        // One call.
        Some(begins) => {
            let ends = table.column("tout")?.signed()?;
            let both = begins.signed()?.iter().zip(ends);
            // A clock may step back.
            let time = |(begin, end): (&i64, &i64)| Time::of_call((end - begin).max(0) as u64);
            both.map(time).collect()
        }
        // Many calls.
        None => {
            let column = |name| table.column(name)?.unsigned();
            let (calls, sums) = (column("count")?, column("sum")?);
            let (min, max) = (column("min")?, column("max")?);
            let time = |row: usize| Time {
                calls: calls[row],
                ns: sums[row],
                min_ns: min[row],
                max_ns: max[row],
            };
            (0..table.len()).map(time).collect()
        }
    };
    let both = operations.zip(times);
    both.map(|(operation, time)| Some((operation?, time)))
        .collect()
}

/// The chunks of a writer, to be decoded after a measurement. Decoding on the collector's thread would
/// take its time, and a processor from the measurement.
#[derive(Debug, Default)]
pub(crate) struct WrittenChunks(Arc<Mutex<Vec<Chunk>>>);

impl WrittenChunks {
    /// Returns a writer that keeps its chunks here.
    pub(crate) fn writer(&self) -> Box<dyn ChunkWriter> {
        let chunks = Arc::clone(&self.0);
        watched(move |chunk| lock(&chunks).push(chunk))
    }

    /// Takes the chunks so far.
    pub(crate) fn take(&self) -> Vec<Chunk> {
        mem::take(&mut lock(&self.0))
    }
}

/// Returns a writer that passes each chunk to a function on the collector's thread, and then to no
/// medium.
pub(crate) fn watched(see: impl FnMut(Chunk) + Send + 'static) -> Box<dyn ChunkWriter> {
    Box::new(Watched {
        discarding: NullWriter::new(NullConfig::default()),
        see,
    })
}

struct Watched<F> {
    discarding: NullWriter,
    see: F,
}

impl<F: FnMut(Chunk) + Send> ChunkWriter for Watched<F> {
    fn capability(&self) -> &Capability {
        self.discarding.capability()
    }

    fn offer(&mut self, chunk: Chunk) -> Result<(), Rejected> {
        let seen = chunk.clone();
        self.discarding.offer(chunk)?;
        (self.see)(seen);
        Ok(())
    }

    fn delivery_reports(&mut self, out: &mut Vec<DeliveryReport>) -> Result<(), TransportError> {
        self.discarding.delivery_reports(out)
    }

    fn set_notify(&mut self, notify: Arc<dyn Notify>) {
        self.discarding.set_notify(notify);
    }

    fn reopen(&mut self, by: Instant) -> Result<(), TransportError> {
        self.discarding.reopen(by)
    }

    fn close(self: Box<Self>, by: Instant) -> CloseReport {
        Box::new(self.discarding).close(by)
    }
}
