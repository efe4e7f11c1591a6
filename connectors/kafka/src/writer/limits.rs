//! How large a message may be: what the user sets, what the topic says, what was found out.

use std::time::Instant;

use crate::client::admin::Admin;
use crate::config::{KafkaConfig, LEAST_MESSAGE_MAX_BYTES, chunk_of};
use baler_common::transport::Failure;

/// What was known of a topic's limit.
#[derive(Debug, Default)]
pub(super) struct Limits {
    asked: bool,
    /// What the cluster says.
    topic: Option<u32>,
    /// What was found out from messages that were refused.
    found: Option<u32>,
}

/// What the topic took for too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TooLarge {
    /// A batch of several chunks.
    Batch,
    /// A chunk of so many bytes, alone.
    Chunk { bytes: usize },
}

impl Limits {
    /// What the cluster says.
    pub(super) fn topic(&self) -> Option<u32> {
        self.topic
    }

    /// The largest message, in bytes. The cluster is asked when the writer opens first, and when
    /// something was too large; not at every reopening, which shall be quick.
    pub(super) fn learn(
        &mut self,
        config: &KafkaConfig,
        too_large: Option<TooLarge>,
        by: Instant,
    ) -> Result<u32, Failure> {
        // The embedded cluster has no limits.
        let answers = config.embedded.is_none() && config.can_administer();
        if answers && (!self.asked || too_large.is_some()) {
            let settings = Admin::start(config)?.settings(&config.topic, by);
            let settings = settings.unwrap_or_default();
            self.topic = settings.max_message_bytes.or(self.topic);
            let policy = settings.cleanup_policy.unwrap_or_default();
            if policy.split(',').any(|policy| policy.trim() == "compact") {
                let topic = &config.topic;
                let message = format!(
                    "topic {topic} has cleanup.policy={policy}, which keeps only the last chunk of \
                     each key and deletes the others; set cleanup.policy=delete for it, or choose \
                     another topic"
                );
                return Err(Failure::last("open", message));
            }
        }
        let first = !std::mem::replace(&mut self.asked, true);
        let most = config.max_message_bytes.get();
        if let (true, true, Some(limit)) = (first, config.max_message_is_set, self.topic)
            && most > limit
        {
            let topic = &config.topic;
            let message = format!(
                "message.max.bytes={most} conflicts with max.message.bytes={limit} of topic \
                 {topic}: the topic takes no such message; lower the one or raise the other"
            );
            return Err(Failure::last("open", message));
        }
        if let Some(TooLarge::Chunk { bytes }) = too_large {
            self.too_large(bytes);
        }
        let limits = [self.topic, self.found];
        Ok(limits.into_iter().flatten().fold(most, u32::min))
    }

    /// Halves what the writer takes if the cluster did not explain why a chunk was too large.
    fn too_large(&mut self, bytes: usize) {
        let explained = self
            .topic
            .is_some_and(|limit| bytes > chunk_of(limit).get());
        if !explained {
            let half = u32::try_from(bytes / 2).unwrap_or(u32::MAX);
            // The rest of a message comes on top.
            let half = half.saturating_add(LEAST_MESSAGE_MAX_BYTES / 2);
            self.found = Some(half.max(LEAST_MESSAGE_MAX_BYTES));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn chunk_that_is_too_large_without_a_known_reason_halves_the_limit() {
        let config = KafkaConfig::new("nobody:1", "topic");
        let mut limits = Limits {
            asked: true,
            ..Limits::default()
        };
        let mut bytes = config.max_chunk_bytes().get();
        for _ in 0..20 {
            limits.too_large(bytes);
            let next = chunk_of(limits.found.unwrap()).get();
            assert!(next < bytes || next == chunk_of(LEAST_MESSAGE_MAX_BYTES).get());
            bytes = next;
        }
        assert_eq!(bytes, chunk_of(LEAST_MESSAGE_MAX_BYTES).get());
    }

    #[test]
    fn settings_count_where_the_cluster_cannot_be_asked() {
        let settings = [
            ("sasl.mechanism", "OAUTHBEARER"),
            ("enable.sasl.oauthbearer.unsecure.jwt", "true"),
        ];
        let config = KafkaConfig::new("nobody:1", "topic")
            .client_settings(&settings)
            .unwrap();
        let began = Instant::now();
        let by = began + Duration::from_secs(60);
        let learnt = Limits::default().learn(&config, None, by).unwrap();
        assert_eq!(learnt, config.max_message_bytes.get());
        let took = began.elapsed();
        assert!(took < Duration::from_millis(1500), "it waited for {took:?}");
    }

    #[test]
    fn limit_that_explains_it_counts() {
        let mut limits = Limits {
            topic: Some(10_512),
            ..Limits::default()
        };
        limits.too_large(10_001);
        assert_eq!(limits.found, None);
        limits.too_large(9_000);
        assert_eq!(limits.found, Some(5_000));
    }
}
