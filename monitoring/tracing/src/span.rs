//! The data of an open span.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use baler_monitoring::TraceCall;

use crate::records::SpanStartRecord;
use crate::site::Site;

/// The number of the layer and the id of the span, because registries do not have different ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SpanKey(pub(crate) u64, pub(crate) u64);

/// The layer's data of a span: shared by the extensions of the registry and the threads in it.
#[derive(Debug)]
pub(crate) struct SpanData {
    pub(crate) key: SpanKey,
    pub(crate) site: &'static Site,
    pub(crate) call: TraceCall,
    /// The record of its start. The one of its end has the same fields.
    pub(crate) start: SpanStartRecord,
    /// The time that threads spent in the span, in nanoseconds.
    pub(crate) busy: AtomicU64,
    /// The registry may have given its id to another span by now.
    pub(crate) is_closed: AtomicBool,
}

impl SpanData {
    /// Whether it is the open span with this key.
    pub(crate) fn is(&self, key: SpanKey) -> bool {
        self.key == key && !self.is_closed.load(Ordering::Relaxed)
    }
}
