//! What `relay` did, as JSON and as text.

use std::net::SocketAddr;
use std::time::Duration;

use baler_relay::{Ended, RelayStats};
use baler_spool::SpoolWatch;
use serde::Serialize;

use crate::exit::Code;
use crate::output;
use crate::shipping::SpoolFigures;

/// Why it stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::commands) enum EndedBy {
    /// `--count` or `--count-chunks` was reached.
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
/// What became of the spooled chunks is in `spool`. The names are part of the program's interface.
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
    /// What the spool did and holds, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    spool: Option<SpoolFigures>,
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
            spool: None,
        }
    }

    /// The summary of a run with a spool.
    pub(in crate::commands) fn with_spool(mut self, spool: Option<&SpoolWatch>) -> Self {
        self.spool = spool.map(|spool| SpoolFigures::new(&spool.status()));
        self
    }

    /// With which code the command ends.
    pub(in crate::commands) fn code(&self) -> Code {
        let refused_later = self.spool.as_ref().is_some_and(SpoolFigures::has_refused);
        if self.quarantined > 0 || self.damaged > 0 || refused_later {
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
        rows.extend(self.spool.iter().flat_map(SpoolFigures::rows));
        output::two_columns(&rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shipping::agreement::{assert_every_count_is_shown, spool_figures};

    #[test]
    fn text_and_json_say_the_same() {
        let mut stats = RelayStats::default();
        stats.received = 3_001;
        stats.received_bytes = 3_000_000_002;
        stats.forwarded = 3_003;
        stats.forwarded_bytes = 4_000_000_004;
        stats.spooled = 3_005;
        stats.quarantined = 3_006;
        stats.given_back = 3_007;
        stats.refused = 3_008;
        stats.damaged = 3_009;
        stats.redelivered = 3_010;
        stats.identities_made = 3_011;
        stats.stale = 3_012;
        stats.source_errors = 3_013;
        stats.outbox.retries = 3_014;
        stats.outbox.reopened = 3_015;
        let ends = ("null:".to_owned(), "null:".to_owned());
        let second = Duration::from_secs(1);
        let mut summary = Summary::new(ends, &stats, EndedBy::End, None, second);
        summary.spool = Some(spool_figures());
        assert_every_count_is_shown(&summary, &summary.text());
        assert_eq!(summary.code(), Code::Data);
    }

    #[test]
    fn chunks_that_the_medium_refused_after_they_were_spooled_are_no_success() {
        let ends = || ("null:".to_owned(), "null:".to_owned());
        let stats = RelayStats::default();
        let mut summary = Summary::new(ends(), &stats, EndedBy::End, None, Duration::ZERO);
        assert_eq!(summary.code(), Code::Done);
        summary.spool = Some(spool_figures());
        assert_eq!(summary.code(), Code::Data);
    }
}
