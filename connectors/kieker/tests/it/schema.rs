//! Record types beside Kieker's own, from `.irl` files.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use baler_common::record::irl::{self, IrlSource};
use baler_common::record::{BatchBuilder, Catalog, DynamicRecord, RecordBatch, Schema, Value};
use baler_common::transport::{
    ChunkReader, ChunkWriter, ContainerKind, Outcome, Received, Verdict,
};
use baler_connector_kieker::container;
use baler_connector_kieker::types;
use baler_connector_kieker::types::KIEKER_TYPES;
use baler_connector_kieker::{
    KiekerLogConfig, KiekerLogReader, KiekerLogWriter, KiekerLogWriterConfig, KiekerTcpConfig,
    KiekerTcpReader, KiekerTcpWriter, KiekerTcpWriterConfig,
};
use baler_connector_testkit::within_patience;

use crate::chunks::{assert_written, chunk, soon, write_all};
use crate::support::{Heard, reader};

const OWN: &str = "package app.orders
    import kieker.common.record.flow.trace.operation.BeforeOperationEvent
    enum State { OPEN, PAID }
    event OrderEvent extends BeforeOperationEvent {
        State state  string[] items  double total  char mark  short count
    }";

fn kiekers_files() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/irl")
}

/// The `.irl` files of a folder and of its sub-folders: name and text.
fn texts(folder: &Path) -> Vec<(String, String)> {
    let mut texts = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            texts.extend(self::texts(&path));
        } else {
            let text = fs::read_to_string(&path).unwrap();
            texts.push((path.display().to_string(), text));
        }
    }
    texts
}

#[test]
fn kiekers_own_files_describe_its_types() {
    let mut texts = texts(&kiekers_files());
    let opad =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../irl/tests/fixtures/right/opad.irl");
    texts.push(("opad.irl".to_owned(), fs::read_to_string(opad).unwrap()));
    let sources = texts.iter().map(|(name, text)| IrlSource { name, text });
    let sources: Vec<_> = sources.collect();
    let mut catalog = Catalog::new();
    irl::read(&mut catalog, &sources).unwrap();
    let shown = |schema: &Arc<Schema>| format!("{schema:?}");
    let read: Vec<_> = catalog.schemas().into_iter().map(shown).collect();
    let known: Vec<_> = KIEKER_TYPES.iter().map(|it| shown(it())).collect();
    assert_eq!(read.len(), 72);
    assert!(read == known, "{read:#?}");
    // To Kieker's own catalog they add nothing.
    let mut catalog = types::catalog();
    irl::read(&mut catalog, &sources).unwrap();
    for schema in KIEKER_TYPES {
        assert!(Arc::ptr_eq(catalog.get(schema().name()).unwrap(), schema()));
    }
}

/// A file with an own type, and records of this type among others.
fn own(folder: &Path) -> (PathBuf, RecordBatch) {
    let path = folder.join("own.irl");
    fs::write(&path, OWN).unwrap();
    let mut catalog = types::catalog();
    let source = IrlSource {
        name: "own.irl",
        text: OWN,
    };
    irl::read(&mut catalog, &[source]).unwrap();
    let order = catalog.get("app.orders.OrderEvent").unwrap();
    let empty = catalog.get(crate::support::EMPTY).unwrap();
    let mut builder = BatchBuilder::new();
    for number in 0..10 {
        let text = |text: &str| Value::String(text.into());
        let values = [
            Value::Signed(number),
            Value::Signed(7),
            Value::Signed(-1),
            text("app.Order.pay()"),
            text("app.Order"),
            Value::Variant(1),
            Value::List(vec![text("bread"), text("milk")]),
            Value::F64(1.5),
            Value::Char('é'),
            Value::Signed(-3),
        ];
        for record in [
            DynamicRecord::new(Arc::clone(order), Some(number), values),
            DynamicRecord::new(Arc::clone(empty), Some(number), []),
        ] {
            builder.push_dynamic(&record.unwrap()).unwrap();
        }
    }
    (path, builder.take())
}

#[test]
fn types_of_ones_own_pass_both_ways_and_every_consumer_decodes_them() {
    let folder = tempfile::tempdir().unwrap();
    let (path, batch) = own(folder.path());
    let mut config = KiekerTcpConfig::new("127.0.0.1", 0);
    config.schema = Some(path.clone());
    let mut reader = KiekerTcpReader::bind(config).unwrap();
    let mut config = KiekerTcpWriterConfig::new("127.0.0.1", reader.local_addr().port());
    config.schema = Some(path);
    let writer = Box::new(KiekerTcpWriter::new(config));
    let sent = vec![chunk(0, ContainerKind::Native, &batch)];
    let (delivery_reports, report) = write_all(writer, sent);
    assert_written(&delivery_reports, &report, 1);
    let delivery = within_patience("the chunk", || match reader.receive(soon()).unwrap() {
        Received::Chunk(delivery) => Some(delivery),
        other => panic!("{other:?}"),
    });
    let meta = delivery.meta.unwrap();
    assert_eq!((meta.container, meta.records), (ContainerKind::Native, 20));
    let decoded = container::decoder().decode(&delivery.bytes).unwrap();
    assert_eq!(decoded.summary.identity(), Some(meta.identity));
    assert_eq!(decoded.batch, batch);
    reader.settle(delivery.token, Verdict::Ack).unwrap();
}

#[test]
fn without_the_schema_the_class_is_named_on_both_sides() {
    let folder = tempfile::tempdir().unwrap();
    let (path, batch) = own(folder.path());
    let mut reader = reader("");
    let mut config = KiekerTcpWriterConfig::new("127.0.0.1", reader.local_addr().port());
    let sent = || vec![chunk(0, ContainerKind::Native, &batch)];
    let (delivery_reports, _) = write_all(Box::new(KiekerTcpWriter::new(config.clone())), sent());
    let Outcome::Refused(error) = &delivery_reports[0].outcome else {
        panic!("{delivery_reports:?}");
    };
    let what = "Kieker has no record type app.orders.OrderEvent; name its definition with schema=";
    assert!(error.message.contains(what), "{error}");
    config.schema = Some(path);
    let (delivery_reports, report) = write_all(Box::new(KiekerTcpWriter::new(config)), sent());
    assert_written(&delivery_reports, &report, 1);
    let damaged = Heard::damage(&mut reader);
    let what = "the record type app.orders.OrderEvent is not in the catalog (--schemas PATH, or schema=PATH in the URI, adds types)";
    assert!(damaged.reason.contains(what), "{}", damaged.reason);
}

#[test]
fn logs_take_types_of_ones_own_too() {
    let folder = tempfile::tempdir().unwrap();
    let (path, batch) = own(folder.path());
    let mut config = KiekerLogWriterConfig::new(folder.path().join("logs"));
    config.schema = Some(path.clone());
    let sent = vec![chunk(0, ContainerKind::Kieker, &batch)];
    let (delivery_reports, report) = write_all(Box::new(KiekerLogWriter::new(config)), sent);
    assert_written(&delivery_reports, &report, 1);
    let log = fs::read_dir(folder.path().join("logs"))
        .unwrap()
        .next()
        .unwrap();
    let mut texts = Vec::new();
    for entry in fs::read_dir(log.unwrap().path()).unwrap() {
        texts.push(fs::read_to_string(entry.unwrap().path()).unwrap());
    }
    let line = "$0;3;3;7;-1;app.Order.pay();app.Order;1;2;bread;milk;1.5;é;-3\n";
    assert!(texts.concat().contains(line), "{texts:?}");
    let mut config = KiekerLogConfig::new(folder.path().join("logs"));
    config.schema = Some(path);
    let mut reader = KiekerLogReader::open(config).unwrap();
    let Received::Chunk(delivery) = reader.receive(soon()).unwrap() else {
        panic!("the log has records");
    };
    let decoded = container::decoder().decode(&delivery.bytes).unwrap();
    assert_eq!(decoded.batch, batch);
}

#[test]
fn a_wrong_schema_is_a_final_error_that_says_where() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = folder.path().join("wrong.irl");
    fs::write(&wrong, "package p\n\nevent E { wrong a }").unwrap();
    for (schema, message) in [
        (wrong, "wrong.irl:3:11: wrong is not defined"),
        (folder.path().join("missing.irl"), "missing.irl"),
        (
            folder.path().to_owned(),
            "wrong.irl:3:11: wrong is not defined",
        ),
    ] {
        let mut config = KiekerTcpConfig::new("127.0.0.1", 0);
        config.schema = Some(schema.clone());
        let error = KiekerTcpReader::bind(config).unwrap_err();
        assert!(
            !error.is_retryable() && error.message.contains(message),
            "{error}"
        );
        let mut config = KiekerLogWriterConfig::new(folder.path().join("logs"));
        config.schema = Some(schema);
        let error = KiekerLogWriter::new(config).reopen(soon()).unwrap_err();
        assert!(
            !error.is_retryable() && error.message.contains(message),
            "{error}"
        );
    }
}
