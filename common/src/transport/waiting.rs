//! Since when a medium should have made progress.

use std::sync::Arc;
use std::time::Instant;

use super::error::TransportError;
use super::reader::Received;

/// Since when nothing has moved at a medium although something should, and why.
///
/// Only a chunk that moves ends a wait, not a connection. A medium that can be opened again and
/// again, but takes or delivers nothing, counts as away. A timeout for the medium counts from
/// [`since`](Self::since).
///
/// The owner of a [`ChunkWriter`](super::ChunkWriter) or [`ChunkReader`](super::ChunkReader) keeps
/// one. It holds a point in time and not an age, so the age of a copy grows even while the owner is
/// blocked.
#[derive(Debug, Clone, Default)]
pub struct Waiting {
    since: Option<Instant>,
    what: Option<&'static str>,
    error: Option<Arc<TransportError>>,
}

impl Waiting {
    /// Begins or continues a wait. `what` is the cause, if it is known.
    pub fn go_on(&mut self, now: Instant, what: Option<&'static str>) {
        self.since.get_or_insert(now);
        self.what = what;
    }

    /// Records the result of a reader. `waits_for` returns what the reader [waits
    /// for](super::ChunkReader::waits_for), or `None` while its owner has no room for more. After a
    /// chunk, neither `waits_for` nor the time is requested.
    pub fn received(
        &mut self,
        received: &Result<Received, TransportError>,
        waits_for: impl FnOnce() -> Option<&'static str>,
        now: impl FnOnce() -> Instant,
    ) {
        match received {
            Ok(Received::Chunk(_) | Received::Damaged(_) | Received::End) => self.end(),
            Ok(Received::Idle | Received::Assigned { .. } | Received::Revoked { .. }) => {
                match waits_for() {
                    Some(what) => self.go_on(now(), Some(what)),
                    None => self.end(),
                }
            }
            Err(error) => {
                self.failed(Arc::new(error.again()));
                self.go_on(now(), None);
            }
        }
    }

    /// Records an error. It is the reason of the current wait, or of the next one.
    pub fn failed(&mut self, error: Arc<TransportError>) {
        self.error = Some(error);
    }

    /// Something moved, or nothing needs to move: the wait is over.
    pub fn end(&mut self) {
        *self = Self::default();
    }

    /// Returns the same wait, but begun no earlier than at this time.
    #[must_use]
    pub fn not_before(mut self, time: Instant) -> Self {
        self.since = self.since.map(|since| since.max(time));
        self
    }

    /// Returns when the wait began; `None` if there is no wait.
    pub fn since(&self) -> Option<Instant> {
        self.since
    }

    /// Returns the cause of the wait, if it is known.
    pub fn what(&self) -> Option<&'static str> {
        self.what
    }

    /// Returns the last error during this wait.
    pub fn error(&self) -> Option<&Arc<TransportError>> {
        self.error.as_ref()
    }
}
