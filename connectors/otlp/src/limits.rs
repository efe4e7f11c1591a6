//! Limits, the memory of requests, and the counts of both ends.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The largest body of a request, compressed and decompressed.
pub(crate) const MAX_BODY_BYTES: usize = 64 << 20;

/// The largest message of a span, log record, metric, resource or scope. In memory a hostile one
/// takes up to 60 times as much, and one is decoded at a time.
pub(crate) const MAX_RECORD_BYTES: usize = 4 << 20;

/// The largest answer of a receiver. The specification demands this limit of clients.
pub(crate) const MAX_ANSWER_BYTES: usize = 4 << 20;

/// The largest chunk.
pub(crate) const MAX_CHUNK_BYTES: usize = 16 << 20;

/// The memory of all requests.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: usize,
    used: AtomicUsize,
}

impl Budget {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        let used = AtomicUsize::new(0);
        Arc::new(Self { limit, used })
    }

    /// Returns a share without bytes.
    pub(crate) fn share(self: &Arc<Self>) -> Share {
        Share {
            budget: Arc::clone(self),
            bytes: 0,
        }
    }
}

/// The memory of one request. It returns when the share is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Share {
    /// Takes more memory. Returns whether there was enough; alone, every request has enough.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        let used = self.budget.used.fetch_add(bytes, Ordering::Relaxed);
        self.bytes += bytes;
        used + bytes <= self.budget.limit || used + bytes == self.bytes
    }

    /// Sets the memory of the share, which may exceed the limit.
    pub(crate) fn set(&mut self, bytes: usize) {
        self.budget.used.fetch_add(bytes, Ordering::Relaxed);
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
        self.bytes = bytes;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// Counts since a reader or writer was created, over all its reopenings.
#[derive(Debug, Default)]
pub(crate) struct Counts(Mutex<BTreeMap<&'static str, u64>>);

impl Counts {
    pub(crate) fn add(&self, name: &'static str, more: u64) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry(name).or_default() += more;
    }

    pub(crate) fn all(&self) -> Vec<(&'static str, u64)> {
        let counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.iter().map(|(name, count)| (*name, *count)).collect()
    }
}
