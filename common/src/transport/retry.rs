//! How often and how long to try again.

use std::time::Duration;

/// How often and how long to try again, and with which pauses.
///
/// Pauses grow exponentially with full jitter: the n-th one is drawn evenly from 0 to
/// `min_delay * 2^n`, at most `max_delay`, so that a thousand producers that lost the same broker
/// do not come back in step (Brooker, "Exponential Backoff And Jitter").
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// The upper end of the first pause. Default 100 ms, that of Kafka's `retry.backoff.ms`.
    pub min_delay: Duration,
    /// The upper end of every pause. Default 2 s, so that a medium that is back is used within
    /// 5 s; librdkafka's `reconnect.backoff.max.ms` is 10 s.
    pub max_delay: Duration,
    /// How many failures a chunk survives; `None`, the default, is without limit.
    pub max_attempts: Option<u32>,
    /// How long a chunk is kept at all; `None`, the default, is for ever.
    /// (Kafka's `delivery.timeout.ms`.)
    pub max_elapsed: Option<Duration>,
    /// Where the pauses' random numbers start. Each process should have its own.
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
    /// The pause after `failures` earlier failures in a row; `draw` numbers the pauses ever drawn.
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

#[cfg(test)]
mod tests;
