//! A subscriber with the layer, and its records as plain values.

use std::collections::BTreeMap;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use baler_common::container::ChunkDecoder;
use baler_common::record::{DynamicRecord, FieldType, Value};
use baler_common::transport::{ChunkReader as _, Received, Verdict};
use baler_connector_kieker::types::WELL_KNOWN_TYPES;
use baler_connector_testkit::{MemoryLimits, MemoryMedium};
use baler_monitoring::{Clock, Controller, TestClock};
use baler_tracing::{BalerLayer, Lost, layer};
use tokio::runtime::Runtime;
use tracing::dispatcher::{self, DefaultGuard};
use tracing::{Dispatch, Subscriber};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry;

/// There is one controller in a process, and `cargo test` runs many tests in one.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Far longer than any step here.
const PATIENCE: Duration = Duration::from_secs(10);

/// Records from its creation to [`Recording::finish`], on the thread that made it.
pub(crate) struct Recording {
    pub(crate) controller: Controller,
    pub(crate) clock: TestClock,
    pub(crate) dispatch: Dispatch,
    pub(crate) lost: Lost,
    medium: MemoryMedium,
    default: DefaultGuard,
    _alone: MutexGuard<'static, ()>,
}

/// A record.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) type_name: String,
    pub(crate) fields: BTreeMap<String, (FieldType, Value)>,
}

impl Recording {
    /// Starts at the time 1,000 ns, with the layer alone.
    pub(crate) fn start() -> Self {
        Self::with(|layer| registry().with(layer))
    }

    pub(crate) fn with<S>(subscriber: impl FnOnce(BalerLayer) -> S) -> Self
    where
        S: Subscriber + Send + Sync + 'static,
    {
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let clock = TestClock::new(1_000);
        let medium = MemoryMedium::new(MemoryLimits::default());
        let controller = Controller::builder(Box::new(medium.writer()))
            .clock(Clock::Test(clock.clone()))
            .hostname("test-host")
            .metadata_record(false)
            .start()
            .unwrap();
        controller.install();
        let layer = layer(controller.clone());
        let lost = layer.lost();
        let dispatch = Dispatch::new(subscriber(layer));
        Self {
            controller,
            clock,
            lost,
            medium,
            default: dispatcher::set_default(&dispatch),
            dispatch,
            _alone: alone,
        }
    }

    /// Returns a runtime whose threads record.
    pub(crate) fn runtime(&self, threads: usize) -> Runtime {
        let dispatch = self.dispatch.clone();
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .enable_all()
            .on_thread_start(move || mem::forget(dispatcher::set_default(&dispatch)))
            .build()
            .unwrap()
    }

    /// Returns all records. Those of a thread are in the order of their emission.
    pub(crate) fn finish(self) -> Records {
        assert_eq!(self.lost.count(), 0);
        self.finish_with_losses()
    }

    pub(crate) fn finish_with_losses(self) -> Records {
        drop(self.default);
        let stats = self.controller.shutdown(PATIENCE).stats;
        assert_eq!(stats.emitted, stats.delivered, "{stats:?}");
        let records = drain(&self.medium);
        assert_eq!(u64::try_from(records.0.len()).unwrap(), stats.delivered);
        records
    }
}

fn drain(medium: &MemoryMedium) -> Records {
    medium.end();
    let mut reader = medium.reader();
    reader.set_demand(usize::MAX);
    let mut decoder = ChunkDecoder::default().with_well_known_types(&WELL_KNOWN_TYPES);
    let mut records = Vec::new();
    loop {
        match reader.receive(Instant::now() + PATIENCE).unwrap() {
            Received::Chunk(delivery) => {
                let batch = decoder.decode(&delivery.bytes).unwrap().batch;
                records.extend(batch.records().map(DynamicRecord::from).map(Entry::of));
                reader.settle(delivery.token, Verdict::Ack).unwrap();
            }
            Received::End => return Records(records),
            other => panic!("{other:?}"),
        }
    }
}

impl Entry {
    fn of(record: DynamicRecord) -> Self {
        let fields = record.schema().fields().iter().zip(record.values());
        Self {
            type_name: record.schema().name().to_owned(),
            fields: fields
                .map(|(field, value)| {
                    let typed = (field.field_type().clone(), value.clone());
                    (field.name().to_owned(), typed)
                })
                .collect(),
        }
    }

    pub(crate) fn has(&self, field: &str) -> bool {
        self.fields.contains_key(field)
    }

    pub(crate) fn value(&self, field: &str) -> &Value {
        let found = self.fields.get(field);
        &found.unwrap_or_else(|| panic!("no {field} in {self:?}")).1
    }

    pub(crate) fn unsigned(&self, field: &str) -> u64 {
        match self.value(field) {
            Value::Unsigned(value) => *value,
            other => panic!("{field} is {other:?}"),
        }
    }

    pub(crate) fn signed(&self, field: &str) -> i64 {
        match self.value(field) {
            Value::Signed(value) => *value,
            other => panic!("{field} is {other:?}"),
        }
    }

    pub(crate) fn text(&self, field: &str) -> &str {
        match self.value(field) {
            Value::String(value) => value,
            other => panic!("{field} is {other:?}"),
        }
    }

    /// The trace in all processes.
    pub(crate) fn trace(&self) -> u128 {
        let (high, low) = (self.unsigned("w3cTraceHigh"), self.unsigned("w3cTraceLow"));
        (u128::from(high) << 64) | u128::from(low)
    }

    pub(crate) fn id(&self) -> u64 {
        self.unsigned("spanId")
    }

    pub(crate) fn parent(&self) -> u64 {
        self.unsigned("parentSpanId")
    }

    /// The place in the trace.
    pub(crate) fn place(&self) -> (i64, i64, i64) {
        (
            self.signed("traceId"),
            self.signed("eoi"),
            self.signed("ess"),
        )
    }
}

/// All records of a test.
#[derive(Debug)]
pub(crate) struct Records(pub(crate) Vec<Entry>);

impl Records {
    pub(crate) fn starts(&self) -> Vec<&Entry> {
        let starts = |it: &&Entry| it.has("parentSpanId") && !it.has("tout");
        self.0.iter().filter(starts).collect()
    }

    pub(crate) fn ends(&self) -> Vec<&Entry> {
        let ends = |it: &&Entry| it.has("parentSpanId") && it.has("tout");
        self.0.iter().filter(ends).collect()
    }

    pub(crate) fn events(&self) -> Vec<&Entry> {
        self.0.iter().filter(|it| it.has("message")).collect()
    }

    pub(crate) fn of_type(&self, name: &str) -> Vec<&Entry> {
        self.0.iter().filter(|it| it.type_name == name).collect()
    }

    /// The records of calls that `#[probe]` made.
    pub(crate) fn calls(&self) -> Vec<&Entry> {
        let calls = |it: &&Entry| it.has("sessionId") && it.has("tout");
        self.0.iter().filter(calls).collect()
    }

    /// The only span with this name, at its end.
    pub(crate) fn end(&self, name: &str) -> &Entry {
        let mut ends = self.ends();
        ends.retain(|it| it.text("name") == name);
        assert_eq!(ends.len(), 1, "spans {name} in {self:#?}");
        ends[0]
    }

    /// Fails unless each span has one start, and at most one end in the same place.
    pub(crate) fn assert_paired(&self) {
        let mut starts = BTreeMap::new();
        for start in self.starts() {
            let before = starts.insert((start.trace(), start.id()), start);
            assert!(before.is_none(), "two starts: {before:?} and {start:?}");
        }
        for end in self.ends() {
            let start = starts.remove(&(end.trace(), end.id())).unwrap();
            for field in ["name", "target", "level", "hostname", "tin"] {
                assert_eq!(start.value(field), end.value(field));
            }
            assert_eq!(start.place(), end.place());
            assert_eq!(start.parent(), end.parent());
        }
    }
}
