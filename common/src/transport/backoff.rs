//! The pauses between failed attempts.

use std::time::Duration;

/// How often and how long to retry, and with which pauses.
///
/// Pauses grow exponentially with full jitter. The n-th pause is random between 0 and
/// `min_delay * 2^n`, at most `max_delay`. So a thousand producers that lost the same broker do not
/// come back at the same time (Brooker, "Exponential Backoff And Jitter").
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// The upper end of the first pause. Default 100 ms, as Kafka's `retry.backoff.ms`.
    pub min_delay: Duration,
    /// The upper end of every pause. Default 2 s, so that a recovered medium is used within 5 s;
    /// librdkafka's `reconnect.backoff.max.ms` is 10 s.
    pub max_delay: Duration,
    /// How many failures a chunk survives; `None`, the default, means no limit.
    pub max_attempts: Option<u32>,
    /// How long a chunk is kept; `None`, the default, means for ever. (Kafka's
    /// `delivery.timeout.ms`.)
    pub max_elapsed: Option<Duration>,
    /// The seed of the pauses' random numbers. Each process should have its own.
    pub seed: u64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            min_delay: Duration::from_millis(100),
            max_delay: Duration::from_secs(2),
            max_attempts: None,
            max_elapsed: None,
            seed: 0,
        }
    }
}

impl RetryPolicy {
    /// Returns the pause after `failures` earlier failures in a row. `draw` counts all pauses so
    /// far.
    ///
    /// The same policy and arguments yield the same pause.
    pub fn delay(&self, failures: u32, draw: u64) -> Duration {
        let doubled = self.min_delay.saturating_mul(1 << failures.min(31));
        let most = doubled.min(self.max_delay).as_nanos();
        // splitmix64 (Steele and others 2014): numbers of 64 bits, drawn evenly.
        let mut random = (self.seed ^ draw.wrapping_mul(0x9e37_79b9_7f4a_7c15))
            .wrapping_add(0x9e37_79b9_7f4a_7c15);
        random = (random ^ (random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        random = (random ^ (random >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        random ^= random >> 31;
        let nanos = most.saturating_mul(u128::from(random)) >> 64;
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// Counts failed attempts, and says how long to wait before the next one.
///
/// The owner of a medium keeps one: an outbox, a spool, a reader that connects again.
#[derive(Debug, Default)]
pub struct Backoff {
    /// Failed attempts since the last success.
    failures: u32,
    draws: u64,
}

impl Backoff {
    /// Counts a failure. Returns the pause before the next attempt.
    pub fn pause(&mut self, policy: &RetryPolicy) -> Duration {
        let pause = self.pause_after(self.failures, policy);
        self.failures = self.failures.saturating_add(1);
        pause
    }

    /// Returns the pause of something that has failed this number of times before, for an owner
    /// that counts other failures as well.
    pub fn pause_after(&mut self, failures: u32, policy: &RetryPolicy) -> Duration {
        self.draws = self.draws.wrapping_add(1);
        policy.delay(failures, self.draws)
    }

    /// Forgets the failures after a success.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// Whether the last attempt failed.
    pub fn is_failing(&self) -> bool {
        self.failures > 0
    }
}

#[cfg(test)]
mod tests;
