//! The counted calls. Each case runs in a process of its own.

use std::fs::File;
use std::hint::black_box;
use std::io::{BufWriter, Write as _};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use baler::container::{
    ChunkHeader, ChunkSerializer, Compression, KiekerSerializer, NativeSerializer,
};
use baler::monitoring::Overflow;
use baler::record::kieker::OperationExecutionRecord;
use baler::record::{BatchBuilder, RecordBatch};
use baler::transport::uri::Uri;
use baler::transport::{
    Chunk, ChunkIdentity, ChunkMeta, ChunkReader, ContainerKind, Epoch, Notify, Outbox,
    OutboxSettings, ProducerId, Received, Verdict,
};
use baler::{Controller, Record};
use baler_analysis::sinks::JsonLines;
use baler_analysis::traces::{TraceAnalysis, TraceSettings};
use baler_analysis::{Parcel, Stage as _};
use baler_connector_file::lines::{LinesConfig, LinesReader};
use baler_connector_kieker::adaptive::Bridge;
use baler_connector_kieker::container::{self, KiekerStream, KiekerStreamEncoder};
use baler_connector_kieker::pattern::{Dialect, PatternList};
use baler_connector_kieker::types::{
    self, AfterOperationEvent, BeforeOperationEvent, TraceMetadata, WELL_KNOWN_TYPES,
};
use baler_connector_kieker::{KiekerLogConfig, KiekerLogReader, KiekerTcpConfig, KiekerTcpReader};
use baler_connector_null::{NullConfig, NullWriter};
use baler_rig::Failure;
use baler_rig::instructions::{UNCOUNTED_ROUNDS, count_last_round};
use baler_rig::workload::{Call, Executions, PlainCall, Workload};
use serde::Serialize;

/// The variants of `overhead` whose instructions are counted. If `none` grows, the application
/// around the probe grows, and all other variants with it.
pub(super) const PROBES: &[&str] = &[
    "none",
    "clock",
    "deactivated",
    "deactivated-pattern",
    "operation",
    "duration",
    "aggregated",
    "aggregated-histogram",
    "emit-flat",
];

/// The other cases.
pub(super) const CASES: &[Case] = &[
    Case {
        name: "emit",
        unit: "a record",
        times: EMITTED,
        run: emit,
    },
    Case {
        name: "encode",
        unit: "a record",
        times: ENCODED,
        run: || encode(&mut serializer()?),
    },
    Case {
        name: "decode",
        unit: "a record",
        times: ENCODED,
        run: || decode(&mut serializer()?, |_| Ok(())),
    },
    Case {
        name: "decode-rows",
        unit: "a record",
        times: ENCODED,
        run: || decode(&mut serializer()?, read_rows),
    },
    Case {
        name: "kieker-encode",
        unit: "a record",
        times: ENCODED,
        run: || encode(&mut KiekerSerializer::new()),
    },
    Case {
        name: "kieker-decode",
        unit: "a record",
        times: ENCODED,
        run: || decode(&mut KiekerSerializer::new(), |_| Ok(())),
    },
    Case {
        name: "kieker-text-log",
        unit: "a record",
        times: ENCODED,
        run: || read_log("text"),
    },
    Case {
        name: "kieker-binary-log",
        unit: "a record",
        times: ENCODED,
        run: || read_log("binary"),
    },
    Case {
        name: "kieker-tcp",
        unit: "a record",
        times: ENCODED,
        run: read_stream,
    },
    Case {
        name: "analyze",
        unit: "a call",
        times: ENCODED,
        run: || analyze(batches()?),
    },
    Case {
        name: "analyze-events",
        unit: "an event",
        times: ENCODED,
        run: || analyze(event_batches()?),
    },
    Case {
        name: "outbox",
        unit: "a chunk",
        times: EMITTED,
        run: pass_chunks,
    },
    Case {
        name: "json-line",
        unit: "a line",
        times: LINES,
        run: parse_lines,
    },
    Case {
        name: "json-line-out",
        unit: "a line",
        times: ENCODED,
        run: write_lines,
    },
];

/// A probe and two ways of `emit`, through the crate `baler`.
pub(super) const BY_FACADE: Case = Case {
    name: "by-facade",
    unit: "a call",
    times: 3 * EMITTED,
    run: || with_controller(facade::calls),
};

/// The same calls through `baler-monitoring`.
pub(super) const BY_MONITORING: Case = Case {
    name: "by-monitoring",
    run: || with_controller(|controller| monitoring::calls(controller)),
    ..BY_FACADE
};

/// Calls of a probe that a pattern of the program deactivates.
pub(super) const OFF_BY_PATTERN: Case = Case {
    name: "off-by-pattern",
    unit: "a call",
    times: EMITTED,
    run: || deactivated("null:", |controller| controller.deactivate("*").is_ok()),
};

/// The same calls, which a bridge deactivates. The program stays connected to it.
pub(super) const OFF_BY_BRIDGE: Case = Case {
    name: "off-by-bridge",
    run: off_by_bridge,
    ..OFF_BY_PATTERN
};

/// The emitted records of a round, for each of up to three calls. They fit into the queue, so no
/// call waits: valgrind runs one thread at a time.
const EMITTED: u64 = 2_000;

/// The records of a round, in chunks of the usual size. The encoder chooses the layouts of columns
/// in every sixteenth chunk, so this happens once in a round.
const ENCODED: u64 = 16 * 1_024;
const CHUNK_RECORDS: usize = 1_024;

/// The lines of a round.
const LINES: u64 = 1_024;

/// The time limit for delivering queues.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is counted.
pub(super) struct Case {
    pub(super) name: &'static str,
    /// The unit of [`times`](Self::times) in the file with the figures.
    pub(super) unit: &'static str,
    /// How many of these a round makes.
    pub(super) times: u64,
    /// Makes the calls in the process that is counted.
    pub(super) run: fn() -> Result<(), Failure>,
}

/// Returns the case with this name.
pub(super) fn find(name: &str) -> Option<&'static Case> {
    let pairs = [&BY_FACADE, &BY_MONITORING, &OFF_BY_PATTERN, &OFF_BY_BRIDGE];
    let cases = CASES.iter().chain(pairs);
    cases.into_iter().find(|case| case.name == name)
}

#[derive(Record)]
struct Order {
    id: u64,
    item: String,
    price: f64,
    is_paid: bool,
}

fn emit() -> Result<(), Failure> {
    let mut order = Order {
        id: 0,
        item: "Darjeeling, first flush".into(),
        price: 12.5,
        is_paid: true,
    };
    with_controller(|_| {
        for id in 0..EMITTED {
            order.id = id;
            baler::emit(&order);
        }
    })
}

/// The same calls by the names of one of two crates.
macro_rules! calls {
    ($name:ident, $krate:ident, $controller:ty) => {
        mod $name {
            use super::{EMITTED, Id, black_box};

            #[$krate::probe]
            fn probed(id: u64) -> u64 {
                black_box(id)
            }

            pub(super) fn calls(controller: &$controller) {
                for id in 0..EMITTED {
                    probed(id);
                    controller.emit(&Id { id });
                    $krate::emit(&Id { id });
                }
            }
        }
    };
}

#[derive(Record)]
struct Id {
    id: u64,
}

calls!(facade, baler, baler::Controller);
calls!(monitoring, baler_monitoring, baler_monitoring::Controller);

/// Makes calls with an installed controller that discards what it gets.
fn with_controller(mut calls: impl FnMut(&Controller)) -> Result<(), Failure> {
    let controller = Controller::with("null:", |builder| builder.metadata_record(false));
    let controller = controller.map_err(Failure::cannot("start a controller"))?;
    controller.install();
    let mut round = || {
        calls(&controller);
        Ok(())
    };
    count_last_round(&mut round, &|| {
        // The report below has what could not be delivered.
        controller.flush(PATIENCE).ok();
    })?;
    let report = controller.shutdown(PATIENCE);
    match report.adds_up() && report.dropped().total() == 0 {
        true => Ok(()),
        false => Err(Failure::new(report.to_string())),
    }
}

fn off_by_bridge() -> Result<(), Failure> {
    let (patterns, _) = PatternList::parse("- *", Dialect::Strict);
    let bridge = Arc::new(Bridge::new(patterns));
    let reader = KiekerTcpReader::bind_with(KiekerTcpConfig::new("127.0.0.1", 0), bridge);
    let reader = reader.map_err(Failure::cannot("listen"))?;
    let address = reader.local_addr();
    deactivated(&format!("kieker+tcp://{address}?adaptive=true"), |_| true)
}

#[baler::probe]
fn off(id: u64) -> u64 {
    black_box(id)
}

/// Makes calls of a probe that is deactivated, or will be soon.
fn deactivated(uri: &str, deactivate: fn(&Controller) -> bool) -> Result<(), Failure> {
    let controller = Controller::with(uri, |builder| builder.metadata_record(false));
    let controller = controller.map_err(Failure::cannot("start a controller"))?;
    controller.install();
    if !deactivate(&controller) {
        return Err(Failure::new("the pattern is wrong"));
    }
    let by = Instant::now() + PATIENCE;
    loop {
        let before = controller.stats().emitted;
        off(0);
        if controller.stats().emitted == before {
            break;
        }
        if by < Instant::now() {
            return Err(Failure::new("the probe stays active"));
        }
        thread::park_timeout(Duration::from_millis(10));
    }
    let mut round = || {
        for id in 0..EMITTED {
            off(id);
        }
        Ok(())
    };
    count_last_round(&mut round, &|| {})?;
    controller.shutdown(PATIENCE);
    Ok(())
}

fn encode(serializer: &mut dyn ChunkSerializer) -> Result<(), Failure> {
    let batches = batches()?;
    let mut chunk = Vec::new();
    let mut round = || {
        for batch in &batches {
            chunk.clear();
            let written = serializer.serialize(batch, &header(), &mut chunk);
            written.map_err(Failure::cannot("encode a chunk"))?;
            black_box(&chunk);
        }
        Ok(())
    };
    count_last_round(&mut round, &|| {})
}

fn decode(
    serializer: &mut dyn ChunkSerializer,
    read: fn(&RecordBatch) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut chunks = Vec::new();
    for batch in batches()? {
        let mut chunk = Vec::new();
        let written = serializer.serialize(&batch, &header(), &mut chunk);
        written.map_err(Failure::cannot("encode a chunk"))?;
        chunks.push(chunk);
    }
    let mut decoder = container::decoder();
    let mut round = || {
        for chunk in &chunks {
            let decoded = decoder.decode(chunk);
            let decoded = decoded.map_err(Failure::cannot("decode a chunk"))?;
            read(black_box(&decoded.batch))?;
        }
        Ok(())
    };
    count_last_round(&mut round, &|| {})
}

fn read_rows(batch: &RecordBatch) -> Result<(), Failure> {
    for record in batch.read::<OperationExecutionRecord>() {
        black_box(record.map_err(Failure::cannot("read a record"))?);
    }
    Ok(())
}

/// As `analyze` makes traces, and adds them up.
fn analyze(batches: Vec<RecordBatch>) -> Result<(), Failure> {
    let parcels: Vec<Parcel> = batches.into_iter().map(Parcel::of_batch).collect();
    let mut round = || {
        let mut analysis = TraceAnalysis::new(TraceSettings::default());
        for parcel in &parcels {
            analysis.accept(parcel, |_, _| {});
        }
        analysis.finish(|_, _| {});
        match black_box(analysis.profile()).counts().valid {
            0 => Err(Failure::new("no trace is valid")),
            _ => Ok(()),
        }
    };
    count_last_round(&mut round, &|| {})
}

/// As `receive --format lines` writes.
fn write_lines() -> Result<(), Failure> {
    let parcels: Vec<Parcel> = batches()?.into_iter().map(Parcel::of_batch).collect();
    let mut round = || {
        let mut lines = JsonLines::new(std::io::sink(), "nothing").as_lines();
        let written = parcels.iter().try_for_each(|it| lines.accept(it.clone()));
        let written = written.and_then(|()| lines.flush());
        written.map_err(Failure::cannot("write lines"))
    };
    count_last_round(&mut round, &|| {})
}

/// Each turn drives the outbox, so nothing needs to be notified.
struct Unwatched;

impl Notify for Unwatched {
    fn notify(&self) {}
}

/// Most of what a relay does with a chunk: an outbox passes it to a writer, and gets its fate.
fn pass_chunks() -> Result<(), Failure> {
    let writer = Box::new(NullWriter::new(NullConfig::default()));
    let settings = OutboxSettings::default();
    let mut outbox = Outbox::new(writer, settings, Arc::new(Unwatched));
    let identity = header().identity;
    let mut chunk = Chunk {
        ticket: 0,
        meta: ChunkMeta {
            container: ContainerKind::Native,
            records: 1,
            identity,
        },
        bytes: vec![0; 1_024].into(),
    };
    let mut fates = Vec::new();
    let mut round = || {
        for _ in 0..EMITTED {
            let now = Instant::now();
            chunk.ticket += 1;
            outbox.push(chunk.clone(), now);
            outbox.drive(now, None, &mut fates);
            black_box(fates.drain(..).count());
        }
        match outbox.is_empty() {
            true => Ok(()),
            false => Err(Failure::new("a chunk has no fate")),
        }
    };
    count_last_round(&mut round, &|| {})
}

/// Opens a log of Kieker and reads it to its end. The program writes the log before.
fn read_log(format: &str) -> Result<(), Failure> {
    let folder = tempfile::tempdir().map_err(Failure::cannot("make a folder"))?;
    let log = format!("kieker-log:{}", folder.path().display());
    let controller = Controller::with(format!("{log}?format={format}"), |builder| {
        builder.metadata_record(false).overflow(Overflow::Block)
    });
    let controller = controller.map_err(Failure::cannot("start a controller"))?;
    let (workload, calls) = calls(ENCODED);
    let mut executions = Executions::new(workload.names());
    for call in &calls {
        controller.emit(executions.of(call));
    }
    let report = controller.shutdown(PATIENCE);
    if report.delivered() != ENCODED {
        return Err(Failure::new(report.to_string()));
    }
    let mut round = || {
        let uri = Uri::parse(&log);
        let config = uri.and_then(|uri| KiekerLogConfig::from_uri(uri, false));
        let config = config.map_err(Failure::cannot("name the log"))?;
        let mut reader = KiekerLogReader::open(config).map_err(Failure::cannot("open the log"))?;
        take(&mut reader, ENCODED)
    };
    count_last_round(&mut round, &|| {})
}

/// Makes chunks of a stream of Kieker's TCP writer, as the thread of a receiver does.
fn read_stream() -> Result<(), Failure> {
    let (mut strings, mut records) = (Vec::new(), Vec::new());
    let mut encoder = KiekerStreamEncoder::new();
    for batch in &batches()? {
        let register =
            |id, text: &str| KiekerStreamEncoder::push_registration(id, text, &mut strings);
        let encoded = encoder.encode(batch, register, &mut records);
        encoded.map_err(Failure::cannot("encode a stream"))?;
    }
    let sent = [strings, records].concat();
    let catalog = types::shared_catalog();
    let mut round = || {
        let mut stream = KiekerStream::new(Arc::clone(&catalog));
        let mut next = header().identity;
        let (mut start, mut taken) = (0, 0);
        while taken < ENCODED {
            let (bytes, step) = stream.cut(sent.get(start..).unwrap_or_default());
            step.map_err(Failure::cannot("read a stream"))?;
            start += bytes;
            let chunk = stream.take_chunk();
            let chunk = chunk.ok_or_else(|| Failure::new("the stream ends early"))?;
            taken += u64::from(chunk.records);
            black_box(chunk.for_every_consumer(&catalog, &mut next));
        }
        Ok(())
    };
    count_last_round(&mut round, &|| {})
}

/// Takes chunks until there were this many records.
fn take(reader: &mut dyn ChunkReader, records: u64) -> Result<(), Failure> {
    let mut taken = 0;
    while taken < records {
        let received = reader.receive(Instant::now());
        match received.map_err(Failure::cannot("read a chunk"))? {
            Received::Chunk(chunk) => {
                taken += chunk.meta.map_or(0, |meta| u64::from(meta.records));
                let settled = reader.settle(chunk.token, Verdict::Ack);
                settled.map_err(Failure::cannot("settle a chunk"))?;
                black_box(chunk.bytes);
            }
            other => return Err(Failure::new(format!("{other:?} is no chunk"))),
        }
    }
    Ok(())
}

fn calls(number: u64) -> (Workload, Vec<Call>) {
    let mut workload = Workload::new(1);
    let calls = (0..number).zip(&mut workload).map(|(_, call)| call);
    let calls = calls.collect();
    (workload, calls)
}

fn batches() -> Result<Vec<RecordBatch>, Failure> {
    let (workload, calls) = calls(ENCODED);
    let mut executions = Executions::new(workload.names());
    let mut builder = BatchBuilder::new();
    let mut batches = Vec::new();
    for calls in calls.chunks(CHUNK_RECORDS) {
        for call in calls {
            let pushed = builder.push(executions.of(call));
            pushed.map_err(Failure::cannot("make the records"))?;
        }
        batches.push(builder.take());
    }
    Ok(batches)
}

/// Two events a call, trace by trace.
fn event_batches() -> Result<Vec<RecordBatch>, Failure> {
    let (workload, mut calls) = calls(ENCODED / 2);
    calls.sort_by_key(|call| (call.trace_id, call.eoi));
    let mut events = Events::default();
    let mut open: Vec<&Call> = Vec::new();
    for call in &calls {
        let calls_it = |caller: &&Call| caller.trace_id == call.trace_id && caller.ess < call.ess;
        while let Some(ended) = open.pop_if(|last| !calls_it(last)) {
            events.add(workload.names().plain(ended), false)?;
        }
        open.push(call);
        events.add(workload.names().plain(call), true)?;
    }
    for ended in open.iter().rev() {
        events.add(workload.names().plain(ended), false)?;
    }
    events.batches.push(events.builder.take());
    Ok(events.batches)
}

/// Events. The metadata of each trace come before its events.
#[derive(Default)]
struct Events {
    batches: Vec<RecordBatch>,
    builder: BatchBuilder,
    /// The trace of the last event, and the number of the next one.
    trace: (i64, i32),
}

impl Events {
    /// Adds the beginning of a call, or its end.
    fn add(&mut self, call: PlainCall<'_>, begins: bool) -> Result<(), Failure> {
        if self.trace.0 != call.trace_id {
            self.trace = (call.trace_id, 0);
            let metadata = TraceMetadata {
                trace_id: call.trace_id,
                thread_id: 1,
                session_id: call.session_id.into(),
                hostname: call.hostname.into(),
                parent_trace_id: -1,
                parent_order_id: -1,
            };
            let pushed = self.builder.push(&metadata);
            pushed.map_err(Failure::cannot("make the events"))?;
        }
        let event = BeforeOperationEvent {
            timestamp: if begins { call.tin } else { call.tout },
            trace_id: call.trace_id,
            order_index: self.trace.1,
            operation_signature: call.operation_signature.into(),
            class_signature: String::new(),
        };
        self.trace.1 += 1;
        let pushed = match begins {
            true => self.builder.push(&event),
            false => self.builder.push(&AfterOperationEvent {
                timestamp: event.timestamp,
                trace_id: event.trace_id,
                order_index: event.order_index,
                operation_signature: event.operation_signature,
                class_signature: event.class_signature,
            }),
        };
        pushed.map_err(Failure::cannot("make the events"))?;
        if self.builder.len() >= CHUNK_RECORDS {
            self.batches.push(self.builder.take());
        }
        Ok(())
    }
}

fn serializer() -> Result<NativeSerializer, Failure> {
    let serializer = NativeSerializer::new(Compression::None);
    let serializer = serializer.map_err(Failure::cannot("make an encoder"))?;
    Ok(serializer.with_well_known_types(&WELL_KNOWN_TYPES))
}

fn header() -> ChunkHeader {
    ChunkHeader::new(ChunkIdentity {
        producer: ProducerId::new(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef),
        epoch: Epoch {
            start_unix_ns: 1_700_000_000_000_000_000,
            random: 0x0123_4567,
        },
        lane: 0,
        sequence: 1_000,
    })
}

/// As `send --from jsonl:FILE` reads.
fn parse_lines() -> Result<(), Failure> {
    let folder = tempfile::tempdir().map_err(Failure::cannot("make a folder"))?;
    let path = folder.path().join("calls");
    let file = File::create(&path).map_err(Failure::cannot("make a file"))?;
    let mut file = BufWriter::new(file);
    let (workload, calls) = calls(LINES * (UNCOUNTED_ROUNDS + 1));
    for call in &calls {
        let line = Line {
            kind: "call",
            call: workload.names().plain(call),
        };
        let written = serde_json::to_writer(&mut file, &line);
        written.map_err(Failure::cannot("write a line"))?;
        writeln!(file).map_err(Failure::cannot("write a line"))?;
    }
    file.flush().map_err(Failure::cannot("write lines"))?;
    let uri = Uri::parse(&format!("jsonl:{}", path.display()));
    let config = uri.and_then(|uri| LinesConfig::from_uri(uri, false));
    let config = config.map_err(Failure::cannot("name the lines"))?;
    let reader = LinesReader::open(config);
    let mut reader = reader.map_err(Failure::cannot("open the lines"))?;
    count_last_round(&mut || take(&mut reader, LINES), &|| {})
}

#[derive(Serialize)]
struct Line<'a> {
    /// The field that names the type of a line.
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(flatten)]
    call: PlainCall<'a>,
}
