//! What `relay` did, as JSON and as text.

use std::net::SocketAddr;
use std::time::Duration;

use baler_relay::{Ended, RelayStats};
use serde::Serialize;

use crate::exit::Code;
use crate::output;

/// Why it stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::commands) enum EndedBy {
    /// `--count-chunks` was reached.
    Count,
    /// The source has nothing more.
    End,
    /// See the message.
    Error,
    /// Nothing came for `--idle-timeout`.
    IdleTimeout,
    /// SIGINT or SIGTERM.
    Signal,
}

impl EndedBy {
    /// Why a relay ended.
    pub(in crate::commands) fn of<E>(ended: &Result<Ended, E>) -> Self {
        match ended {
            Err(_) => Self::Error,
            Ok(Ended::Count) => Self::Count,
            Ok(Ended::End) => Self::End,
            Ok(Ended::IdleTimeout) => Self::IdleTimeout,
            Ok(Ended::Stopped) => Self::Signal,
        }
    }
}

/// What `relay` did: `received` is `forwarded`, `spooled`, `quarantined` and `given_back` together.
/// The names are part of the program's interface.
#[derive(Debug, Serialize)]
pub(in crate::commands) struct Summary {
    from: String,
    to: String,
    received: u64,
    forwarded: u64,
    spooled: u64,
    quarantined: u64,
    given_back: u64,
    received_bytes: u64,
    forwarded_bytes: u64,
    refused: u64,
    damaged: u64,
    redelivered: u64,
    identities_made: u64,
    stale: u64,
    source_errors: u64,
    retries: u64,
    reconnects: u64,
    seconds: f64,
    chunks_per_second: f64,
    ended_by: EndedBy,
    #[serde(skip_serializing_if = "Option::is_none")]
    listened_on: Option<SocketAddr>,
}

impl Summary {
    /// Collects the figures.
    pub(in crate::commands) fn new(
        (from, to): (String, String),
        stats: &RelayStats,
        ended_by: EndedBy,
        listened_on: Option<SocketAddr>,
        elapsed: Duration,
    ) -> Self {
        Self {
            from,
            to,
            received: stats.received,
            forwarded: stats.forwarded,
            spooled: stats.spooled,
            quarantined: stats.quarantined,
            given_back: stats.given_back,
            received_bytes: stats.received_bytes,
            forwarded_bytes: stats.forwarded_bytes,
            refused: stats.refused,
            damaged: stats.damaged,
            redelivered: stats.redelivered,
            identities_made: stats.identities_made,
            stale: stats.stale,
            source_errors: stats.source_errors,
            retries: stats.outbox.retries,
            reconnects: stats.outbox.reopened,
            seconds: (elapsed.as_secs_f64() * 1e3).round() / 1e3,
            chunks_per_second: output::per_second(stats.forwarded, elapsed),
            ended_by,
            listened_on,
        }
    }

    /// With which code the command ends.
    pub(in crate::commands) fn code(&self) -> Code {
        if self.quarantined > 0 || self.damaged > 0 {
            Code::Data
        } else if self.given_back > 0 {
            Code::Incomplete
        } else {
            Code::Done
        }
    }

    /// The figures for people.
    pub(in crate::commands) fn text(&self) -> String {
        let number = output::number;
        let mut rows = vec![
            ("from", self.from.clone()),
            ("to", self.to.clone()),
            (
                "chunks",
                format!(
                    "{} received = {} forwarded + {} spooled + {} quarantined + {} given back",
                    number(self.received),
                    number(self.forwarded),
                    number(self.spooled),
                    number(self.quarantined),
                    number(self.given_back),
                ),
            ),
            (
                "bytes",
                format!(
                    "{} received, {} forwarded",
                    output::bytes(self.received_bytes),
                    output::bytes(self.forwarded_bytes),
                ),
            ),
            (
                "time",
                format!(
                    "{:.2} s, {} chunks/s",
                    self.seconds,
                    output::rate(self.chunks_per_second)
                ),
            ),
        ];
        for (name, count) in [
            ("refused", self.refused),
            ("damaged", self.damaged),
            ("redelivered", self.redelivered),
            ("identities made", self.identities_made),
            ("settled too late", self.stale),
            ("source's errors", self.source_errors),
            ("sent again", self.retries),
            ("reconnects", self.reconnects),
        ] {
            if count > 0 {
                rows.push((name, number(count)));
            }
        }
        output::two_columns(&rows)
    }
}
