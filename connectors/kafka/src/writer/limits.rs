//! How large a message may be: what the user sets, what the topic says, what was found out.

use std::time::Instant;

use baler_common::transport::Failure;

use crate::client::admin::Admin;
use crate::config::{KafkaConfig, LEAST_MESSAGE_MAX_BYTES, chunk_of};

/// What is known of a topic's limit.
#[derive(Debug, Default)]
pub(super) struct Limits {
    /// Whether the cluster was asked since the last chunk that was too large.
    pub(super) is_known: bool,
    /// Whether the settings were compared with what the cluster says.
    pub(super) is_checked: bool,
    /// What the cluster says.
    pub(super) topic: Option<u32>,
    /// What follows from a chunk that was refused.
    pub(super) found: Option<u32>,
    /// The bytes of a chunk that was refused, alone in its batch.
    pub(super) refused: Option<usize>,
}

impl Limits {
    /// The size in bytes of a chunk that was refused because it, or its batch, was too large.
    pub(super) fn too_large(&mut self, bytes: usize, alone: bool) {
        self.is_known = false;
        self.refused = alone.then_some(bytes);
    }

    /// The largest message, in bytes. The cluster is asked when the writer opens first, and when
    /// something was too large; not at every reopening, which shall be quick.
    pub(super) fn learn(&mut self, config: &KafkaConfig, by: Instant) -> Result<u32, Failure> {
        // The embedded cluster has no limits.
        let answers = config.embedded.is_none() && config.can_administer();
        if answers && !self.is_known {
            self.ask(config, by)?;
        }
        self.is_known = true;
        let most = config.message_bytes();
        let first = !std::mem::replace(&mut self.is_checked, true);
        if let (true, Some(_), Some(limit)) = (first, config.max_message_bytes, self.topic) {
            if most > limit {
                let topic = &config.topic;
                let message = format!(
                    "message.max.bytes={most} conflicts with max.message.bytes={limit} of topic \
                 {topic}: the topic takes no such message; lower the one or raise the other"
                );
                return Err(Failure::last("open", message));
            }
        }
        if let Some(bytes) = self.refused.take() {
            self.halve(bytes);
        }
        let limits = [self.topic, self.found];
        Ok(limits.into_iter().flatten().fold(most, u32::min))
    }

    /// Asks for the topic's limit, and refuses a topic that would delete chunks.
    fn ask(&mut self, config: &KafkaConfig, by: Instant) -> Result<(), Failure> {
        let settings = Admin::start(config)?.settings(&config.topic, by);
        let settings = settings.unwrap_or_default();
        self.topic = settings.max_message_bytes.or(self.topic);
        let policy = settings.cleanup_policy.unwrap_or_default();
        if !policy.split(',').any(|policy| policy.trim() == "compact") {
            return Ok(());
        }
        let topic = &config.topic;
        let message = format!(
            "topic {topic} has cleanup.policy={policy}, which keeps only the last chunk of each \
             key and deletes the others; set cleanup.policy=delete for it, or choose another topic"
        );
        Err(Failure::last("open", message))
    }

    /// Halves what the writer takes if the cluster did not explain why a chunk was too large.
    pub(super) fn halve(&mut self, bytes: usize) {
        let is_explained = |limit| bytes > chunk_of(limit).get();
        if !self.topic.is_some_and(is_explained) {
            let half = u32::try_from(bytes / 2).unwrap_or(u32::MAX);
            // The rest of a message comes on top.
            let half = half.saturating_add(LEAST_MESSAGE_MAX_BYTES / 2);
            self.found = Some(half.max(LEAST_MESSAGE_MAX_BYTES));
        }
    }
}
