//! Every metric of the program: the list that METRICS.md, the dashboard and the rules are checked
//! against.

/// The kind of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Only grows while the process lives.
    Counter,
    /// Goes up and down.
    Gauge,
}

/// A metric by name.
#[derive(Debug)]
pub(crate) struct Metric {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// The labels, in the order in which values are given.
    pub(crate) labels: &'static [&'static str],
    pub(crate) help: &'static str,
}

/// Declares the metrics, and the list of all of them.
macro_rules! metrics {
    ($($id:ident = $kind:ident $name:literal [$($label:literal),*] $help:literal;)*) => {
        $(pub(crate) const $id: Metric = Metric {
            name: $name,
            kind: Kind::$kind,
            labels: &[$($label),*],
            help: $help,
        };)*

        /// Every metric, in the order of METRICS.md.
        pub(crate) const ALL: &[&Metric] = &[$(&$id),*];
    };
}

metrics! {
    // Sending: the controller and its queues.
    RECORDS_EMITTED = Counter "baler_records_emitted_total" []
        "Records emitted, taken or not.";
    RECORDS_DELIVERED = Counter "baler_records_delivered_total" []
        "Records in chunks that the medium confirmed.";
    RECORDS_SPOOLED = Counter "baler_records_spooled_total" []
        "Records put on local disk while the medium was away.";
    RECORDS_DROPPED = Counter "baler_records_dropped_total" ["reason"]
        "Records lost before they were sent, by reason.";
    RECORDS_PUT_ASIDE = Counter "baler_records_put_aside_total" []
        "Records that cannot be sent; part of those dropped.";
    RECORDS_QUEUED = Gauge "baler_records_queued" []
        "Records in the queues.";
    QUEUE_BYTES = Gauge "baler_queue_bytes" []
        "Memory of the queues' blocks.";
    CHUNKS_CLOSED = Counter "baler_chunks_closed_total" ["trigger"]
        "Chunks closed, by what closed them.";
    CHUNKS_ENCODED = Counter "baler_chunks_encoded_total" []
        "Chunks made.";
    CHUNKS_SPLIT = Counter "baler_chunks_split_total" []
        "Chunks that were too large and had to be taken apart.";
    CHUNK_RECORDS = Gauge "baler_chunk_records" []
        "Records that a chunk is to have: as set, or as chosen for the rate of the moment.";
    CHUNK_WAIT = Gauge "baler_chunk_wait_seconds" []
        "How long a record waits for its chunk to be closed at most: as set, or as chosen.";
    ROW_BYTES = Counter "baler_row_bytes_total" []
        "Bytes of records before encoding, each distinct string of a chunk counted once.";
    ENCODED_BYTES = Counter "baler_encoded_bytes_total" []
        "Bytes of chunks after encoding and compression.";
    COLLECTOR_PANICS = Counter "baler_collector_panics_total" []
        "Panics of serializers and of the collector that were caught.";
    // Sending: chunks on their way.
    CHUNKS_CONFIRMED = Counter "baler_chunks_confirmed_total" []
        "Chunks that the medium confirmed.";
    CONFIRMED_BYTES = Counter "baler_confirmed_bytes_total" []
        "Bytes of chunks that the medium confirmed.";
    CHUNKS_UNCONFIRMED = Gauge "baler_chunks_unconfirmed" []
        "Chunks without a fate: in flight, or waiting to be.";
    UNCONFIRMED_BYTES = Gauge "baler_unconfirmed_bytes" []
        "Bytes of chunks without a fate.";
    OLDEST_UNCONFIRMED = Gauge "baler_oldest_unconfirmed_seconds" []
        "How long the oldest chunk without a fate has waited; 0 when there is none.";
    CHUNKS_IN_FLIGHT = Gauge "baler_chunks_in_flight" []
        "Chunks that the writer has taken and not confirmed.";
    IN_FLIGHT_BYTES = Gauge "baler_in_flight_bytes" []
        "Bytes that the writer has taken and not confirmed.";
    CHUNK_RETRIES = Counter "baler_chunk_retries_total" []
        "Times that a chunk was offered once more.";
    WRITER_CONNECTED = Gauge "baler_writer_connected" []
        "1 while the connection to the medium is open.";
    WRITER_STATE = Gauge "baler_writer_state" ["state"]
        "1 for the state of the connection, 0 for the others.";
    WRITER_BLOCKED = Gauge "baler_writer_blocked" []
        "1 while the medium asks to wait.";
    WRITER_THROTTLED = Counter "baler_writer_throttled_seconds_total" []
        "How long brokers held the writer back because of a quota, those that did so at a time added up.";
    WRITER_ALTERED = Counter "baler_writer_altered_values_total" []
        "Values that are not in the medium as they are in the records, because its format has no form for them.";
    WRITER_LOSSES = Counter "baler_writer_losses_total" []
        "Times that the medium turned out to have lost confirmed chunks: a topic was deleted and created again.";
    WRITER_LOST_CHUNKS = Counter "baler_writer_lost_chunks_total" []
        "Confirmed chunks that the medium lost, as far as their number is known, those of other writers included.";
    WRITER_EVENTS = Counter "baler_writer_events_total" ["event"]
        "What only some media count: partitions that were added, limits that were lowered.";
    WRITER_RECONNECTS = Counter "baler_writer_reconnects_total" []
        "Times that the writer was opened again after the first time.";
    WRITER_FAILURES = Counter "baler_writer_failures_total" []
        "Times that the connection broke or could not be made.";
    // The spool.
    SPOOL_CHUNKS = Counter "baler_spool_chunks_total" []
        "Chunks put on local disk.";
    SPOOL_RECORDS = Counter "baler_spool_records_total" []
        "Records put on local disk.";
    SPOOL_REPLAYED_CHUNKS = Counter "baler_spool_replayed_chunks_total" []
        "Chunks sent on from disk and confirmed, those of earlier lives included.";
    SPOOL_REPLAYED_RECORDS = Counter "baler_spool_replayed_records_total" []
        "Records sent on from disk and confirmed, those of earlier lives included.";
    SPOOL_WAITING_CHUNKS = Gauge "baler_spool_waiting_chunks" []
        "Chunks on disk now.";
    SPOOL_WAITING_BYTES = Gauge "baler_spool_waiting_bytes" []
        "Bytes of the chunks on disk now.";
    SPOOL_ROUTE = Gauge "baler_spool_route" ["route"]
        "1 for the way that chunks go, 0 for the others; absent without a spool.";
    SPOOL_REFUSED_CHUNKS = Counter "baler_spool_refused_chunks_total" []
        "Chunks from disk that the medium refused for good; absent without a spool.";
    SPOOL_LOST_CHUNKS = Counter "baler_spool_lost_chunks_total" []
        "Chunks that were on disk and cannot be read back; absent without a spool.";
    SPOOL_DISK_FAILURES = Counter "baler_spool_disk_failures_total" []
        "Times that the disk did not take a chunk: full, at the bound, forbidden; absent without a spool.";
    // Receiving.
    CHUNKS_RECEIVED = Counter "baler_chunks_received_total" ["worker"]
        "Chunks decoded and handed on, or passed on as they are.";
    RECORDS_RECEIVED = Counter "baler_records_received_total" ["worker"]
        "Records in chunks received.";
    RECEIVED_BYTES = Counter "baler_received_bytes_total" ["worker"]
        "Bytes of chunks received.";
    CHUNKS_OUTSIDE_TIME = Counter "baler_chunks_outside_time_total" ["worker"]
        "Chunks without a record between --since and --until; acknowledged without being decoded.";
    CHUNKS_ACKNOWLEDGED = Counter "baler_chunks_acknowledged_total" ["worker"]
        "Chunks settled as processed.";
    CHUNKS_GIVEN_BACK = Counter "baler_chunks_given_back_total" ["worker"]
        "Chunks given back because they could not be processed now.";
    CHUNKS_QUARANTINED = Counter "baler_chunks_quarantined_total" ["worker"]
        "Chunks, or bytes that should have been one, that were put aside.";
    POISON_NOT_KEPT = Counter "baler_poison_not_kept_total" ["worker", "reason"]
        "Of what was put aside, and of bad connections: those of which only this count is left, by reason.";
    CHUNKS_REDELIVERED = Counter "baler_chunks_redelivered_total" ["worker"]
        "Deliveries that the medium marked as repeated.";
    CHUNKS_DUPLICATE = Counter "baler_chunks_duplicate_total" ["worker"]
        "Copies of chunks that this reader had settled before; not processed again.";
    CHUNKS_SHARED = Counter "baler_chunks_duplicate_across_readers_total" ["worker"]
        "Copies of chunks that another reader of this process had settled.";
    CHUNKS_TWICE = Counter "baler_chunks_processed_twice_total" ["worker"]
        "Those of the duplicates across readers that were processed: both were in work at once.";
    CHUNKS_CONFLICTING = Counter "baler_chunks_conflicting_total" ["worker"]
        "Chunks with the identity of a settled chunk and another checksum; put into quarantine.";
    CHUNKS_UNVERIFIABLE = Counter "baler_chunks_unverifiable_total" ["worker"]
        "Chunks too late to tell whether they were settled before; processed.";
    CHUNKS_IN_WORK = Gauge "baler_chunks_in_work" ["worker"]
        "Chunks received and not settled.";
    CHUNKS_MISSING = Gauge "baler_chunks_missing" ["worker", "explained"]
        "Chunks whose successors came and they did not; explained when their producer gave them up.";
    SETTLEMENTS_STALE = Counter "baler_settlements_stale_total" ["worker"]
        "Settlements that came too late: the delivery had gone to another reader.";
    READER_CONNECTED = Gauge "baler_reader_connected" ["worker"]
        "1 while the reader reaches its medium; absent where it cannot tell.";
    READER_ERRORS = Counter "baler_reader_errors_total" ["worker"]
        "Failures of the medium from which the reader recovers by itself.";
    READER_RECONNECTS = Counter "baler_reader_reconnects_total" ["worker"]
        "Times that the reader connected again after the first time.";
    READER_THROTTLED = Counter "baler_reader_throttled_seconds_total" ["worker"]
        "How long brokers held the reader back because of a quota, those that did so at a time added up.";
    READER_REBALANCES = Counter "baler_reader_rebalances_total" ["worker"]
        "Times that lanes were assigned or taken away after the first assignment.";
    READER_REMOVALS = Counter "baler_reader_removals_total" ["worker"]
        "Times that chunks were removed before the reader got them: by the medium's limits, or because it was made anew.";
    CHUNKS_REMOVED = Counter "baler_chunks_removed_total" ["worker"]
        "Chunks that were removed before the reader got them, as far as their number is known.";
    READER_EVENTS = Counter "baler_reader_events_total" ["worker", "event"]
        "What only some media count: lines that are no records or too long, rotated and lost files.";
    LANES_ASSIGNED = Gauge "baler_lanes_assigned" ["worker"]
        "Lanes of the medium that the reader owns; absent where the medium assigns none.";
    LANE_LAG = Gauge "baler_lane_lag_chunks" ["worker", "lane"]
        "Chunks of a lane that were written and not yet settled, where the medium says.";
    LAG = Gauge "baler_lag_chunks" []
        "Chunks of all lanes of this process that were written and not yet settled; of a lane that several workers tell of, the largest figure.";
    PRODUCER_LANES = Gauge "baler_producer_lanes" ["worker"]
        "Producers' lanes seen.";
    PRODUCER_LANES_ENDED = Gauge "baler_producer_lanes_ended" ["worker"]
        "Producers' lanes whose last chunk was seen.";
    PRODUCER_LOSSES = Counter "baler_producer_records_lost_total" ["worker", "reason"]
        "Records that producers lost before they were sent, as they told, by reason.";
    RECORDS_UNDECIDED = Counter "baler_records_undecided_total" ["field", "type"]
        "Records that --where cannot judge, by the field and the type of its value; part of those filtered.";
    // The process.
    TAPS = Gauge "baler_taps" []
        "Taps that look at passing chunks now.";
    TAP_SKIPPED = Counter "baler_tap_skipped_chunks_total" []
        "Chunks that no tap was shown because they would not have fitted into the tap's memory.";
    BUILD_INFO = Gauge "baler_build_info" ["version", "command"]
        "1, labelled with the program's version and the command that runs.";
    ENDPOINT_INFO = Gauge "baler_endpoint_info" ["role", "endpoint"]
        "1, labelled with an endpoint, without its secrets, and what it is used for.";
    CPU_SECONDS = Counter "process_cpu_seconds_total" []
        "CPU time of all threads.";
    RESIDENT_BYTES = Gauge "process_resident_memory_bytes" []
        "Resident memory.";
    OPEN_FDS = Gauge "process_open_fds" []
        "Open file descriptors.";
    START_TIME = Gauge "process_start_time_seconds" []
        "When the command began, in seconds since 1970.";
}

#[cfg(test)]
mod tests;
