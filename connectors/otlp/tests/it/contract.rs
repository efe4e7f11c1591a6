//! The contract of every connector, as far as OTLP goes: chunks travel as the body of a log record.

use std::sync::Arc;
use std::time::Instant;

use baler_common::non_zero;
use baler_common::record::{AnyValue, RecordBatch};
use baler_common::transport::uri::Uri;
use baler_common::transport::{
    Capability, Chunk, ChunkMeta, ChunkReader, ChunkWriter, CloseReport, ContainerKind, Delivery,
    DeliveryReport, Notify, ReaderCapability, ReaderCloseReport, Received, Rejected, Settled,
    Token, TransportError, Verdict,
};
use baler_connector_otlp::types::Log;
use baler_connector_otlp::{
    OtlpReader, OtlpReaderConfig, OtlpWriter, OtlpWriterConfig, SCHEME_GRPC, SCHEME_HTTP,
    SCHEME_HTTPS, SCHEME_TLS,
};
use baler_connector_testkit::faults::TcpProxy;
use baler_connector_testkit::{PATIENCE, TestMedium, certificates};
use tempfile::TempDir;

use crate::support::{chunk_of, decoded};

/// A receiver after a proxy, by gRPC or by HTTP, with TLS or without.
struct Otlp<const GRPC: bool, const TLS: bool> {
    proxy: TcpProxy,
    folder: TempDir,
}

impl<const GRPC: bool, const TLS: bool> Otlp<GRPC, TLS> {
    /// The URI of one end, with this certificate if there is TLS.
    fn uri(&self, port: u16, certificate: &str) -> Uri {
        let scheme = match (GRPC, TLS) {
            (true, true) => SCHEME_TLS,
            (true, false) => SCHEME_GRPC,
            (false, true) => SCHEME_HTTPS,
            (false, false) => SCHEME_HTTP,
        };
        let (authority, own) = match TLS {
            true => (Some("authority"), Some(certificate)),
            false => (None, None),
        };
        let settings = certificates::settings(self.folder.path(), authority, own);
        Uri::parse(&format!("{scheme}://127.0.0.1:{port}?{settings}")).unwrap()
    }
}

impl<const GRPC: bool, const TLS: bool> TestMedium for Otlp<GRPC, TLS> {
    fn fresh() -> Self {
        let folder = tempfile::tempdir().unwrap();
        if TLS {
            certificates::issue(folder.path());
        }
        Self {
            proxy: TcpProxy::start().unwrap(),
            folder,
        }
    }

    fn writer(&mut self) -> Box<dyn ChunkWriter> {
        let uri = self.uri(self.proxy.address().port(), "two");
        let mut config = OtlpWriterConfig::from_uri(uri).unwrap();
        config.window.chunks = non_zero!(32);
        // Room for three of the largest chunks, and for what is around them.
        config.window.bytes = non_zero!(65_000);
        config.max_requests = non_zero!(32);
        // A busy machine may take its time, and the contract counts breaks.
        config.timeout = PATIENCE;
        let writer = OtlpWriter::new(config);
        let mut capability = writer.capability().clone();
        capability.max_chunk_bytes = non_zero!(20_000);
        capability.window_bytes = non_zero!(60_000);
        capability.readable = true;
        Box::new(ByLog { capability, writer })
    }

    fn reader(&mut self) -> Box<dyn ChunkReader> {
        let config = OtlpReaderConfig::from_uri(self.uri(0, "one")).unwrap();
        let reader = OtlpReader::bind(config).unwrap();
        self.proxy.set_target(reader.local_addr());
        Box::new(OfLog(reader))
    }

    fn break_connections(&mut self) {
        self.proxy.cut();
    }

    fn stall(&mut self) {
        self.proxy.set_frozen(true);
    }

    fn resume(&mut self) {
        self.proxy.set_frozen(false);
    }
}

/// A writer that sends a chunk as the body of a log record.
struct ByLog {
    capability: Capability,
    writer: OtlpWriter,
}

impl ChunkWriter for ByLog {
    fn capability(&self) -> &Capability {
        &self.capability
    }

    fn offer(&mut self, chunk: Chunk) -> Result<(), Rejected> {
        if chunk.bytes.len() > self.capability.max_chunk_bytes.get() {
            return Err(Rejected::too_large(chunk, &self.capability));
        }
        let record = Log {
            body: Some(AnyValue::Bytes(chunk.bytes.to_vec().into())),
            event_name: chunk.meta.identity.to_string(),
            flags: chunk.meta.records,
            ..Log::default()
        };
        let sent = self.writer.offer(chunk_of(chunk.ticket, &[record]));
        sent.map_err(|rejected| Rejected {
            chunk,
            reason: rejected.reason,
        })
    }

    fn delivery_reports(&mut self, out: &mut Vec<DeliveryReport>) -> Result<(), TransportError> {
        self.writer.delivery_reports(out)
    }

    fn set_notify(&mut self, notify: Arc<dyn Notify>) {
        self.writer.set_notify(notify);
    }

    fn set_awaited(&mut self, awaited: bool) {
        self.writer.set_awaited(awaited);
    }

    fn reopen(&mut self, by: Instant) -> Result<(), TransportError> {
        self.writer.reopen(by)
    }

    fn close(self: Box<Self>, by: Instant) -> CloseReport {
        let mut report = Box::new(self.writer).close(by);
        // The contract's pump expects an order here, which the medium does not have.
        report.delivery_reports.sort_by_key(|it| it.ticket);
        report
    }
}

/// A reader of such chunks.
struct OfLog(OtlpReader);

fn restored(delivery: &Delivery) -> Delivery {
    let batch: RecordBatch = decoded(&delivery.bytes);
    let record: Log = batch.read().next().unwrap().unwrap();
    let Some(AnyValue::Bytes(bytes)) = record.body else {
        panic!("{record:?}");
    };
    Delivery {
        bytes: bytes.into_owned().into(),
        meta: Some(ChunkMeta {
            container: ContainerKind::Kieker,
            records: record.flags,
            identity: record.event_name.parse().unwrap(),
        }),
        ..delivery.clone()
    }
}

impl ChunkReader for OfLog {
    fn capability(&self) -> &ReaderCapability {
        self.0.capability()
    }

    fn set_demand(&mut self, chunks: usize) {
        self.0.set_demand(chunks);
    }

    fn receive(&mut self, by: Instant) -> Result<Received, TransportError> {
        Ok(match self.0.receive(by)? {
            Received::Chunk(delivery) => Received::Chunk(restored(&delivery)),
            other => other,
        })
    }

    fn settle(&mut self, token: Token, verdict: Verdict) -> Result<Settled, TransportError> {
        self.0.settle(token, verdict)
    }

    fn waits_for(&self) -> Option<&'static str> {
        self.0.waits_for()
    }

    fn close(self: Box<Self>, by: Instant) -> ReaderCloseReport {
        Box::new(self.0).close(by)
    }
}

/// The cases of the group `reads` but that of the order, which requests on their way at the same time
/// do not have.
macro_rules! cases {
    ($medium:ty: $($group:ident: $($case:ident)*;)*) => {
        $($(
            #[test]
            fn $case() {
                baler_connector_testkit::$group::$case::<$medium>();
            }
        )*)*
    };
}

macro_rules! contract {
    ($name:ident, $medium:ty) => {
        mod $name {
            baler_connector_testkit::contract_tests!($medium: redelivers breaks stalls threads many_writers);
            cases! {
                $medium:
                reading: chunk_at_the_limit_passes everything_confirmed_is_readable
                    paused_reader_gets_nothing;
                failing: rejected_chunk_is_not_delivered_again stale_token_is_told;
                closing: reader_closes_within_its_deadline;
            }
        }
    };
}

contract!(grpc, crate::contract::Otlp<true, false>);
contract!(http, crate::contract::Otlp<false, false>);
contract!(tls, crate::contract::Otlp<true, true>);
