//! What librdkafka's statistics say that both ends tell.

use std::time::Duration;

use rdkafka::statistics::Statistics;

/// For how long brokers held the client back since the statistics before, because it was above a
/// quota: the sum of the `throttle_time_ms` in their answers. It is the broker that holds back, by
/// not reading from the connection for so long (KIP-219).
pub(crate) fn throttled(statistics: &Statistics) -> Duration {
    let windows = statistics
        .brokers
        .values()
        .filter_map(|it| it.throttle.as_ref());
    let millis = windows.map(|window| u64::try_from(window.sum).unwrap_or(0));
    Duration::from_millis(millis.fold(0, u64::saturating_add))
}
