//! Since when a medium owes progress.

use std::sync::Arc;
use std::time::Instant;

use super::error::TransportError;
use super::reader::Received;

/// Since when nothing moved at a medium although something should, and why.
///
/// Only a chunk that moves ends a wait, not a connection: a medium that can be opened again and
/// again, and takes or hands out nothing, is as good as one that is away. The patience with a
/// medium counts from [`since`](Self::since).
///
/// The owner of a [`ChunkWriter`](super::ChunkWriter) or [`ChunkReader`](super::ChunkReader) keeps
/// one. It holds a point in time rather than an age, so that a copy goes on ageing while the owner
/// is blocked.
#[derive(Debug, Clone, Default)]
pub struct Waiting {
    since: Option<Instant>,
    what: Option<&'static str>,
    error: Option<Arc<TransportError>>,
}

impl Waiting {
    /// Begins a wait, or goes on with it. `what` names the cause, where it is known.
    pub fn go_on(&mut self, now: Instant, what: Option<&'static str>) {
        self.since.get_or_insert(now);
        self.what = what;
    }

    /// Notes what a reader returned. `waits_for` is what it
    /// [waits for](super::ChunkReader::waits_for) then, or nothing while its owner has no room for
    /// more; neither that nor the time is asked for after a chunk.
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

    /// Notes what went wrong. It is the reason of the wait that goes on, or of the next one.
    pub fn failed(&mut self, error: Arc<TransportError>) {
        self.error = Some(error);
    }

    /// Something moved, or nothing needs to: the wait is over.
    pub fn end(&mut self) {
        *self = Self::default();
    }

    /// The same wait, begun no earlier than at this time.
    #[must_use]
    pub fn not_before(mut self, time: Instant) -> Self {
        self.since = self.since.map(|since| since.max(time));
        self
    }

    /// When the wait began; `None` while nobody waits.
    pub fn since(&self) -> Option<Instant> {
        self.since
    }

    /// What is waited for, where that is known.
    pub fn what(&self) -> Option<&'static str> {
        self.what
    }

    /// What went wrong last during this wait.
    pub fn error(&self) -> Option<&Arc<TransportError>> {
        self.error.as_ref()
    }
}
