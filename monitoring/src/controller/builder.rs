//! Setting up a controller, and the identity of its process.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use baler_common::container::{ChunkSerializer, NativeSerializer};
use baler_common::random::random;
use baler_common::record::Interned;
use baler_common::transport::{
    ChunkIdentity, ChunkWriter, Epoch, Notify, Outbox, ProducerId, RetryPolicy,
};
#[cfg(feature = "sampling")]
use baler_connector_kieker::pattern::PatternList;
use baler_connector_kieker::types::KiekerMetadataRecord;
use baler_connector_kieker::types::WELL_KNOWN_TYPES;

use super::Controller;
use super::settings::{Settings, StartError};
use crate::adaptive::{self, Sites};
use crate::clock::Clock;
use crate::collector::{CollectorConfig, ControllerState, Event, Hooks, Quarantined, Waker, spawn};
use crate::queue::{Overflow, QueueSet};

/// Sets up a [`Controller`]; made by [`Controller::builder`].
///
/// [`start`](Self::start) checks the settings. Its error names the wrong one.
#[must_use = "nothing runs before `start`"]
pub struct ControllerBuilder {
    writer: Box<dyn ChunkWriter>,
    serializer: Box<dyn ChunkSerializer>,
    producer: Option<ProducerId>,
    application: Box<str>,
    hostname: Option<Box<str>>,
    experiment_id: i32,
    clock: Clock,
    settings: Settings,
    pub(super) adaptive: adaptive::Settings,
    #[cfg(feature = "samplers")]
    pub(super) samplers: Vec<crate::samplers::Task>,
    #[cfg(feature = "sampling")]
    pub(super) sampled_sites: PatternList,
    hooks: Hooks,
}

impl ControllerBuilder {
    pub(super) fn new(writer: Box<dyn ChunkWriter>) -> Self {
        let mut settings = Settings::default();
        settings.outbox.retry.seed = random();
        Self {
            writer,
            serializer: Box::new(
                NativeSerializer::default().with_well_known_types(&WELL_KNOWN_TYPES),
            ),
            producer: None,
            application: "<no-controller-name>".into(),
            hostname: None,
            experiment_id: 0,
            clock: Clock::default(),
            settings,
            adaptive: adaptive::Settings::default(),
            #[cfg(feature = "samplers")]
            samplers: Vec::new(),
            #[cfg(feature = "sampling")]
            sampled_sites: PatternList::new(),
            hooks: Hooks::default(),
        }
    }

    /// How often the totals of probes with `record = aggregated` are recorded: one record for each
    /// thread and call site that was called since the last time. Default 1 s.
    ///
    /// A flush and the shutdown record them as well.
    pub fn aggregation_interval(mut self, interval: Duration) -> Self {
        self.settings.aggregation_interval = interval;
        self
    }

    /// The application's name, `controllerName` in the metadata record. Default
    /// `<no-controller-name>`, as in Kieker.
    pub fn application(mut self, name: impl Into<Box<str>>) -> Self {
        self.application = name.into();
        self
    }

    /// Lets the collector choose chunk size, wait time and poll interval for the present rate. It
    /// makes chunks as large and as late as costs least, so that a record is confirmed within this
    /// time after it was emitted. Replaces [`chunk_records`](Self::chunk_records); the later of the
    /// two calls counts.
    ///
    /// Records wait for at most half of this time. The other half is for the medium: a medium that
    /// takes longer breaks the limit. [`wait_time`](Self::wait_time), if it is set, limits the
    /// choice, and so does [`chunk_bytes`](Self::chunk_bytes).
    pub fn auto_chunks(mut self, max_latency: Duration) -> Self {
        self.settings.max_latency = Some(max_latency);
        self
    }

    /// The desired size of an encoded chunk in bytes. A chunk is closed when it is about to reach
    /// it. Default 256 KiB; larger chunks hardly compress better. This is neither the hard limit
    /// ([`max_chunk_bytes`](Self::max_chunk_bytes)) nor the medium's limit.
    pub fn chunk_bytes(mut self, bytes: usize) -> Self {
        self.settings.chunk_bytes = bytes;
        self
    }

    /// The number of records in a chunk. Default 1,024.
    ///
    /// Kieker's `chunkSize` is 16 and the paper's best was 32 (Knoche, table 2). There, each record
    /// is encoded by itself. Here a chunk carries the schemas of its types, and longer columns pack
    /// better, so small chunks cost more for each record.
    pub fn chunk_records(mut self, records: usize) -> Self {
        self.settings.chunk_records = records;
        self.settings.max_latency = None;
        self
    }

    /// The source of the time of records without a timestamp. Default [`Clock::Ticks`], the
    /// processor's counter if it can be trusted, otherwise the operating system's clock.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Whether records are accepted from the start. Default true (`kieker.monitoring.enabled`).
    pub fn enabled(mut self, enabled: bool) -> Self {
        self.settings.enabled = enabled;
        self
    }

    /// The `experimentId` of the metadata record. Default 0.
    pub fn experiment_id(mut self, id: i32) -> Self {
        self.experiment_id = id;
        self
    }

    /// The machine's name, in the metadata record and the probes' records. Default: the operating
    /// system's name of the machine (`kieker.monitoring.hostname`).
    pub fn hostname(mut self, name: impl Into<Box<str>>) -> Self {
        self.hostname = Some(name.into());
        self
    }

    /// The number of lanes. The number of a record's trace (an integer field `traceId` or
    /// `trace_id`) decides its lane. Records without one go to the first lane. Default 1.
    ///
    /// A lane has chunks and an order of its own. A medium with partitions may give each lane a
    /// partition (`partition_by=trace` of the Kafka connector). Then several consumers share the
    /// records of one producer, and each still sees whole traces. Every lane fills a chunk of its
    /// own, so with `n` lanes, chunks of the same size take `n` times longer to fill.
    pub fn lanes(mut self, lanes: usize) -> Self {
        self.settings.lanes = lanes;
        self
    }

    /// The hard limit of an encoded chunk, in bytes. A chunk above it is split, and a single record
    /// above it goes to quarantine. Default 960 KiB, within the 1,048,588 bytes of Kafka's
    /// `message.max.bytes` and librdkafka's 1,000,000. A smaller limit of the medium takes
    /// precedence.
    pub fn max_chunk_bytes(mut self, bytes: usize) -> Self {
        self.settings.max_chunk_bytes = bytes;
        self
    }

    /// One memory budget in bytes for the queues, the batches being filled, and the chunks in
    /// flight and in retry. Default none: each has its own limit.
    ///
    /// Half of it is for the queues. The rest, less the batches, is for the chunks.
    /// [`queue_bytes`](Self::queue_bytes) and [`unconfirmed_bytes`](Self::unconfirmed_bytes) move
    /// these borders. A client library may copy its chunks in flight; the connector's `window`
    /// limits that.
    pub fn memory(mut self, bytes: usize) -> Self {
        self.settings.memory = Some(bytes);
        self
    }

    /// Whether the first record is a `KiekerMetadataRecord`. Default true
    /// (`kieker.monitoring.metadata`).
    pub fn metadata_record(mut self, wanted: bool) -> Self {
        self.settings.metadata_record = wanted;
        self
    }

    /// Sets a hook for events: dropped records, lost chunks, a lost connection, quarantined
    /// records. The hook runs on the collector's thread and must be short. Records that it emits
    /// are dropped.
    pub fn on_event(mut self, hook: impl FnMut(&Event) + Send + 'static) -> Self {
        self.hooks.event = Some(Box::new(hook));
        self
    }

    /// What happens to a record when the queues are full. Default [`Overflow::DropNewest`].
    ///
    /// Kieker's default (`RecordQueueInsertBehavior` 1) blocks, so a slow medium stops the
    /// application. Here you have to choose that.
    pub fn overflow(mut self, overflow: Overflow) -> Self {
        self.settings.overflow = overflow;
        self
    }

    /// The identity of this application instance, the same over restarts. Default a random one.
    pub fn producer(mut self, producer: ProducerId) -> Self {
        self.producer = Some(producer);
        self
    }

    /// Sets a hook for records that cannot be sent, with their bytes. It runs on the collector's
    /// thread.
    pub fn quarantine(mut self, hook: impl FnMut(&Quarantined) + Send + 'static) -> Self {
        self.hooks.quarantine = Some(Box::new(hook));
        self
    }

    /// The bytes that all threads' queues hold together. Default 16 MiB. A thread uses blocks of 1
    /// to 128 KiB: the more threads and the smaller this budget, the smaller the blocks.
    ///
    /// While a thread finds no room, other threads' open blocks do not count if they are read to
    /// their end.
    ///
    /// Together with the batches and [`unconfirmed_bytes`](Self::unconfirmed_bytes) this limits the
    /// memory of monitoring. [`memory`](Self::memory) sets all of them at once.
    pub fn queue_bytes(mut self, bytes: usize) -> Self {
        self.settings.queue_bytes = Some(bytes);
        self
    }

    /// The time limit of one attempt to open the writer. Default 2 s. The collector waits for it,
    /// while the queues fill.
    pub fn reopen_timeout(mut self, timeout: Duration) -> Self {
        self.settings.outbox.reopen_timeout = timeout;
        self
    }

    /// How often and how long to retry. Default without end; meanwhile the overflow policy of the
    /// queues applies.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.settings.outbox.retry = policy;
        self
    }

    /// The serializer of chunks. Default [`NativeSerializer`] without compression.
    ///
    /// It names Kieker's types by number ([`WELL_KNOWN_TYPES`]), if its container has such numbers.
    pub fn serializer(mut self, mut serializer: impl ChunkSerializer + 'static) -> Self {
        serializer.set_well_known_types(&WELL_KNOWN_TYPES);
        self.serializer = Box::new(serializer);
        self
    }

    /// The bytes of unconfirmed chunks at which the collector stops emptying the queues. Default 8
    /// MiB.
    pub fn unconfirmed_bytes(mut self, bytes: usize) -> Self {
        self.settings.unconfirmed_bytes = Some(bytes);
        self
    }

    /// The number of unconfirmed chunks at which the collector stops emptying the queues. Default
    /// 1,024; [`unconfirmed_bytes`](Self::unconfirmed_bytes) limits large chunks.
    pub fn unconfirmed_chunks(mut self, chunks: usize) -> Self {
        self.settings.outbox.max_chunks = chunks;
        self
    }

    /// The longest time that a record waits before its chunk is closed. Default 500 ms, as Kieker's
    /// `deferredWriteDelay`. With [`auto_chunks`](Self::auto_chunks) the default is half of its
    /// limit.
    pub fn wait_time(mut self, time: Duration) -> Self {
        self.settings.wait_time = Some(time);
        self
    }

    /// Starts the collector. Does not wait for the medium: it may be down.
    ///
    /// Without the feature `enable` nothing is started: the settings are checked, the writer is
    /// dropped without having been opened, and the controller accepts no records.
    ///
    /// # Errors
    ///
    /// See [`StartError`].
    pub fn start(self) -> Result<Controller, StartError> {
        let mut settings = self.settings;
        let memory = settings.check()?;
        let tuning = settings.tuning(&memory);
        #[cfg(feature = "samplers")]
        super::sampling::check(&self.samplers)?;
        settings.outbox.max_bytes = memory.unconfirmed_bytes;
        let hostname = self.hostname.unwrap_or_else(hostname);
        let producer = self.producer.unwrap_or_else(ProducerId::random);
        let waker = Arc::new(Waker::default());
        let notify: Arc<dyn Notify> = Arc::<Waker>::clone(&waker);
        let queues = Arc::new(QueueSet::new(
            self.clock.key(),
            memory.queue_bytes,
            settings.overflow,
            Arc::clone(&notify),
        ));
        let identity = ChunkIdentity {
            producer,
            // A clock before 1970 counts as 1970.
            epoch: Epoch::new(self.clock.unix_ns().max(0).unsigned_abs()),
            lane: 0,
            sequence: 0,
        };
        let shared = Arc::new(ControllerState::new(
            queues,
            self.clock,
            Interned::leaked(&hostname),
            waker,
        ));
        let metadata = settings.metadata_record.then(|| KiekerMetadataRecord {
            version: concat!("baler ", env!("CARGO_PKG_VERSION")).into(),
            controller_name: (*self.application).into(),
            hostname: (*hostname).into(),
            experiment_id: self.experiment_id,
            debug_mode: false,
            time_offset: 0,
            time_unit: "NANOSECONDS".into(),
            number_of_records: 0,
        });
        let (switch, upkeep) = self.adaptive.start();
        let sites = Sites {
            application: self.application,
            shared: Arc::clone(&shared),
            switch: Arc::clone(&switch),
        };
        let controller = Controller::new(
            Arc::clone(&shared),
            metadata,
            hostname,
            identity,
            settings.whole_batches(),
            switch,
        );
        if !cfg!(feature = "enable") {
            controller.never_run();
            return Ok(controller);
        }
        if settings.enabled {
            // Before the collector runs, so that the metadata record is the first one that it
            // finds.
            controller.enable();
        }
        let mut writer = self.writer;
        writer.set_probes(Arc::new(sites));
        let outbox = Outbox::new(writer, settings.outbox.clone(), notify);
        let plan = CollectorConfig {
            serializer: self.serializer,
            identity,
            settings,
            tuning,
            hooks: self.hooks,
            upkeep,
        };
        spawn(shared, outbox, plan)?;
        #[cfg(feature = "samplers")]
        controller.start_samplers(&self.samplers)?;
        #[cfg(feature = "sampling")]
        controller.set_sampled_sites(self.sampled_sites);
        Ok(controller)
    }
}

impl std::fmt::Debug for ControllerBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ControllerBuilder")
            .field("writer", &self.writer.capability().medium)
            .field("container", &self.serializer.container())
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// Returns the machine's name, or `localhost` if it cannot be found.
pub(super) fn hostname() -> Box<str> {
    let told = fs::read_to_string("/proc/sys/kernel/hostname")
        .or_else(|_| fs::read_to_string("/etc/hostname"))
        .ok()
        .or_else(|| std::env::var("HOSTNAME").ok())
        .or_else(|| std::env::var("COMPUTERNAME").ok());
    match told.as_deref().map(str::trim) {
        Some(name) if !name.is_empty() => name.into(),
        _ => "localhost".into(),
    }
}
