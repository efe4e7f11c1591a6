//! The contract of media, and records that pass through each addition.

use std::error::Error;
use std::path::Path;
use std::time::Duration;

use baler::container::{Compression, NativeSerializer};
use baler::transport::uri::Uri;
use baler::transport::{ChunkReader, ChunkWriter};
use baler::{ConsumerConfig, Controller, ControllerConfig, Record};
use baler_connector_testkit::TestMedium;
use baler_extend::{JSON_LINES, LZ4_FILE, LinesDeserializer, LinesSerializer};
use tempfile::TempDir;

/// The medium in a folder of its own.
struct Lz4File(TempDir);

impl Lz4File {
    fn uri(&self, settings: &str) -> Uri {
        let path = self.0.path().join("chunks");
        Uri::parse(&format!("lz4+file://{}?{settings}", path.display())).unwrap()
    }
}

impl TestMedium for Lz4File {
    fn fresh() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn writer(&mut self) -> Box<dyn ChunkWriter> {
        let uri = self.uri("max_chunk_bytes=16KiB&window_chunks=16");
        (LZ4_FILE.writer)(uri).unwrap()
    }

    fn reader(&mut self) -> Box<dyn ChunkReader> {
        let receiver = (LZ4_FILE.receiver)(self.uri("consumer=contract"), true);
        receiver.unwrap().open().unwrap().reader
    }
}

mod contract {
    baler_connector_testkit::contract_tests!(super::Lz4File: reads redelivers);
}

#[derive(Debug, Clone, PartialEq, Record)]
struct Order {
    id: u64,
    balance: i64,
    price: f64,
    item: String,
}

/// Sends orders in this container, and returns the orders that a consumer gets.
fn consumed(
    folder: &Path,
    is_native: bool,
    orders: &[Order],
) -> Result<Vec<Order>, Box<dyn Error>> {
    let uri = Uri::parse(&format!("lz4+file://{}", folder.display()))?;
    let media = baler::media().with(LZ4_FILE);
    let mut config = ControllerConfig::new(uri.clone());
    config.media = media.clone();
    let native = NativeSerializer::new(Compression::None)?.with_format(JSON_LINES)?;
    let controller = Controller::with(config, |it| match is_native {
        true => it.serializer(native),
        false => it.serializer(LinesSerializer),
    })?;
    for order in orders {
        controller.emit(order);
    }
    let report = controller.shutdown(Duration::from_secs(20));
    assert!(report.adds_up() && report.dropped().is_empty(), "{report}");

    let mut config = ConsumerConfig::new(uri);
    config.media = media;
    let decoder = config.decoder.with_format(JSON_LINES);
    config.decoder = decoder.with_deserializer(LinesDeserializer);
    let mut found = Vec::new();
    for batch in baler::consume::<Order>(config)? {
        let mut batch = batch?;
        assert!(batch.identity().is_some());
        found.append(&mut batch.take_records());
        batch.ack()?;
    }
    Ok(found)
}

#[test]
fn records_come_back_by_an_added_format_container_and_medium() {
    let order = |id: u64| Order {
        id: u64::MAX - id,
        balance: -5,
        price: 0.1 + 1.0 / (id + 1) as f64,
        item: format!("tea \"{id}\"\n"),
    };
    let orders: Vec<_> = (0..2_000).map(order).collect();
    for is_native in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let found = consumed(folder.path(), is_native, &orders).unwrap();
        assert_eq!(found, orders, "native: {is_native}");
    }
}

#[test]
fn each_addition_has_at_most_100_lines_of_code() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for name in ["container.rs", "json_lines.rs", "medium.rs"] {
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        let code = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
        let lines = text.lines().filter(code).count();
        assert!(lines <= 100, "{name} has {lines} lines");
    }
}
