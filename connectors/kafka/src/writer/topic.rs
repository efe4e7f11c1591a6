//! The topic as the cluster describes it. Each change while a writer runs is logged once and counted.

use std::num::NonZeroU64;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use baler_common::transport::{Failure, WriterStats};
use rdkafka::statistics::Statistics;

use crate::client::{REQUEST_TIMEOUT, TopicSettings, topic_settings};
use crate::config::{KafkaConfig, PartitionBy};
use crate::settings::REFRESH;

/// The last known state of the topic, and its changes so far.
#[derive(Debug)]
pub(super) struct TopicWatch {
    pub(super) name: Box<str>,
    pub(super) endpoint: Box<str>,
    partition_by: PartitionBy,
    state: Mutex<TopicState>,
}

#[derive(Debug, Default)]
struct TopicState {
    /// The number of partitions, 0 before the writer opens first.
    partitions: i32,
    /// The largest message in bytes, 0 before the writer opens first.
    message_bytes: u32,
    /// Whether the topic was found to take smaller messages than the writer knows.
    has_lower_limit: bool,
    is_compacted: bool,
    partitions_added: u64,
    limits_lowered: u64,
    compacted: u64,
    losses: u64,
    lost_chunks: u64,
}

impl TopicWatch {
    pub(super) fn new(config: &KafkaConfig) -> Self {
        Self {
            name: config.topic.clone(),
            endpoint: config.endpoint.clone(),
            partition_by: config.partition_by,
            state: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, TopicState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of its partitions.
    pub(super) fn partitions(&self) -> i32 {
        self.lock().partitions
    }

    /// Notes the number of partitions.
    pub(super) fn set_partitions(&self, count: i32) {
        let mut state = self.lock();
        let before = std::mem::replace(&mut state.partitions, count);
        // A topic that was made anew may have fewer.
        if before == 0 || count <= before {
            return;
        }
        state.partitions_added += u64::from(count.abs_diff(before));
        drop(state);
        let then = match self.partition_by {
            PartitionBy::Producer | PartitionBy::Lane => {
                "new lanes use them, and each lane stays on its partition"
            }
            PartitionBy::RoundRobin => "the writer uses them from now on",
            PartitionBy::Trace => "the writer uses them when it opens again",
        };
        let endpoint = &*self.endpoint;
        tracing::warn!(
            endpoint,
            before,
            count,
            "the topic has more partitions: {then}"
        );
    }

    /// Notes the number of partitions in the client's statistics, unless the client does not know
    /// the topic at the moment.
    pub(super) fn take_statistics(&self, statistics: &Statistics) {
        let Some(topic) = statistics.topics.get(&*self.name) else {
            return;
        };
        // Messages without a partition are under a negative number.
        let partitions = topic.partitions.values().filter(|it| it.partition >= 0);
        let known = partitions.clone().filter(|it| !it.unknown).count();
        if let Ok(count @ 1..) = i32::try_from(known) {
            if known == partitions.count() {
                self.set_partitions(count);
            }
        }
    }

    /// Notes the largest message that the writer sends.
    pub(super) fn set_message_bytes(&self, bytes: u32) {
        let mut state = self.lock();
        let before = std::mem::replace(&mut state.message_bytes, bytes);
        if bytes >= before {
            return;
        }
        state.limits_lowered += 1;
        drop(state);
        let endpoint = &*self.endpoint;
        tracing::warn!(
            endpoint,
            before,
            bytes,
            "the topic's largest message is smaller than before: larger chunks are split, and a \
             record that does not fit is dropped as too large"
        );
    }

    /// Whether the topic was found to take smaller messages since the last call.
    pub(super) fn take_lower_limit(&self) -> bool {
        std::mem::take(&mut self.lock().has_lower_limit)
    }

    /// Notes settings that were read while the writer runs.
    fn take_settings(&self, settings: &TopicSettings) {
        let known = self.lock().message_bytes;
        // A limit that was raised counts when the writer opens again.
        if let Some(bytes) = settings.max_message_bytes.filter(|bytes| *bytes < known) {
            self.lock().has_lower_limit = true;
            self.set_message_bytes(bytes);
        }
        let compacts = settings.compacts();
        let mut state = self.lock();
        let was_compacted = std::mem::replace(&mut state.is_compacted, compacts.is_some());
        let (Some(policy), false) = (compacts, was_compacted) else {
            return;
        };
        state.compacted += 1;
        drop(state);
        let endpoint = &*self.endpoint;
        tracing::warn!(
            endpoint,
            policy,
            "the topic is compacted now: Kafka deletes all chunks but the last one of each key; set \
             cleanup.policy=delete for it"
        );
    }

    /// Counts confirmed messages that a partition has lost before `offset`. Returns the error.
    pub(super) fn lose(&self, partition: i32, offset: i64, messages: u64) -> Failure {
        let mut state = self.lock();
        state.losses += 1;
        state.lost_chunks += messages;
        drop(state);
        let message = format!(
            "partition {partition} went back by {messages} messages to offset {offset}: the topic \
             was deleted and created again, or a replica without them became its leader; confirmed \
             chunks that nobody has read are lost"
        );
        tracing::warn!(endpoint = &*self.endpoint, "{message}");
        Failure::retry("write to", message)
    }

    /// Adds its figures.
    pub(super) fn add_to(&self, stats: &mut WriterStats) {
        let state = self.lock();
        stats.losses = state.losses;
        stats.lost_chunks = state.lost_chunks;
        stats.counts = vec![
            ("compacted", state.compacted),
            ("limits_lowered", state.limits_lowered),
            ("partitions_added", state.partitions_added),
        ];
    }
}

/// Reads the topic's settings at intervals on a thread of its own, until the returned end is dropped.
/// Returns nothing if the settings turn that off.
pub(super) fn watch(
    config: &KafkaConfig,
    topic: &Arc<TopicWatch>,
) -> Result<Option<Sender<()>>, Failure> {
    let (name, default) = REFRESH;
    let interval = config.client.value(name).unwrap_or(default);
    // librdkafka turns it off with -1, and has checked the number.
    let Ok(interval) = interval.parse::<NonZeroU64>() else {
        return Ok(None);
    };
    let interval = Duration::from_millis(interval.get());
    let (stop, stopped) = channel();
    let (config, topic) = (config.clone(), Arc::clone(topic));
    let watching = move || {
        while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
            // A cluster that does not answer now is asked again at the next time.
            if let Ok(Some(settings)) = topic_settings(&config, Instant::now() + REQUEST_TIMEOUT) {
                topic.take_settings(&settings);
            }
        }
    };
    let thread = thread::Builder::new().name("baler-kafka-topic".into());
    let started = thread.spawn(watching);
    started.map_err(|error| Failure::retry("open", error.to_string()))?;
    Ok(Some(stop))
}

#[cfg(test)]
mod tests;
