//! Users' sessions.
//!
//! Kieker's package `kieker.common.record.session`.

use crate::record::Record;

/// A session ended.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.session.SessionEndEvent",
    rename_all = "camelCase"
)]
pub struct SessionEndEvent {
    /// When it happened, in nanoseconds since the Unix epoch.
    #[record(unix_nanos, default)]
    pub timestamp: i64,
    /// The host.
    #[record(default)]
    pub hostname: String,
    /// The session.
    #[record(default)]
    pub session_id: String,
}

/// A session began.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.session.SessionStartEvent",
    rename_all = "camelCase"
)]
pub struct SessionStartEvent {
    /// When it happened, in nanoseconds since the Unix epoch.
    #[record(unix_nanos, default)]
    pub timestamp: i64,
    /// The host.
    #[record(default)]
    pub hostname: String,
    /// The session.
    #[record(default)]
    pub session_id: String,
}
