//! The way straight to the medium: nothing but a note of what is unconfirmed.

use std::collections::VecDeque;

use baler_common::transport::{
    Chunk, ChunkWriter, Confirmation, Outcome, RejectReason, Rejected, RetryClass, TransportError,
};

/// The medium's writer, open, with what it has and what it is still to get.
pub(crate) struct Direct {
    pub(crate) inner: Box<dyn ChunkWriter>,
    /// Taken while the medium was away and not offered since.
    backlog: VecDeque<Chunk>,
    /// By ascending ticket. The bytes are shared with the owner's and the writer's.
    unconfirmed: VecDeque<Chunk>,
    /// Confirmed since it was opened.
    pub(crate) confirmed: u64,
}

/// Why the direct way ends.
pub(crate) enum Broken {
    /// The medium is away.
    Away(TransportError),
    /// The medium takes less than it did when a chunk of the backlog was taken: only the owner
    /// can split it.
    Shrunk(TransportError),
}

impl Direct {
    pub(crate) fn new(inner: Box<dyn ChunkWriter>, backlog: VecDeque<Chunk>) -> Self {
        Self {
            inner,
            backlog,
            unconfirmed: VecDeque::new(),
            confirmed: 0,
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.backlog.is_empty() && self.unconfirmed.is_empty()
    }

    /// Offers a chunk behind all before it.
    pub(crate) fn offer(&mut self, chunk: Chunk) -> Result<(), Rejected> {
        if !self.backlog.is_empty() {
            let reason = match self.offer_backlog() {
                Ok(()) if self.backlog.is_empty() => return self.pass(chunk),
                Ok(()) => RejectReason::Full,
                Err(Broken::Away(error) | Broken::Shrunk(error)) => {
                    RejectReason::Broken(Box::new(error))
                }
            };
            return Err(Rejected { chunk, reason });
        }
        self.pass(chunk)
    }

    fn pass(&mut self, chunk: Chunk) -> Result<(), Rejected> {
        let kept = chunk.clone();
        self.inner.offer(chunk)?;
        self.unconfirmed.push_back(kept);
        Ok(())
    }

    /// Offers what waited, as far as the window goes.
    pub(crate) fn offer_backlog(&mut self) -> Result<(), Broken> {
        while let Some(chunk) = self.backlog.pop_front() {
            let Err(Rejected { chunk, reason }) = self.pass(chunk) else {
                continue;
            };
            self.backlog.push_front(chunk);
            return match reason {
                RejectReason::Full => Ok(()),
                RejectReason::Broken(error) => Err(Broken::Away(*error)),
                RejectReason::TooLarge { max_chunk_bytes } => {
                    let medium = self.inner.capability().medium;
                    let message = format!(
                        "it takes {max_chunk_bytes} bytes a chunk, less than it said before it was \
                         away"
                    );
                    let error = TransportError::new("write to", medium, RetryClass::Retry, message);
                    Err(Broken::Shrunk(error))
                }
            };
        }
        Ok(())
    }

    /// Takes the writer's confirmations.
    pub(crate) fn confirmations(&mut self, out: &mut Vec<Confirmation>) -> Result<(), Broken> {
        let before = out.len();
        let result = self.inner.confirmations(out);
        for Confirmation { ticket, outcome } in out.iter().skip(before) {
            self.settled(*ticket);
            let confirmed = matches!(outcome, Outcome::Confirmed | Outcome::Spooled);
            self.confirmed = self.confirmed.saturating_add(u64::from(confirmed));
        }
        result.map_err(Broken::Away)?;
        match self.backlog.is_empty() {
            true => Ok(()),
            false => self.offer_backlog(),
        }
    }

    fn settled(&mut self, ticket: u64) {
        // Nearly always the oldest.
        if self
            .unconfirmed
            .front()
            .is_some_and(|it| it.ticket == ticket)
        {
            self.unconfirmed.pop_front();
        } else if let Ok(at) = self
            .unconfirmed
            .binary_search_by_key(&ticket, |chunk| chunk.ticket)
        {
            self.unconfirmed.remove(at);
        }
    }

    /// The writer, and what it has not confirmed, in order.
    pub(crate) fn into_parts(self) -> (Box<dyn ChunkWriter>, VecDeque<Chunk>) {
        let Self {
            inner,
            backlog,
            mut unconfirmed,
            ..
        } = self;
        unconfirmed.extend(backlog);
        (inner, unconfirmed)
    }
}
