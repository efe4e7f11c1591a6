//! From the calls of `tracing` to records.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use baler_common::record::{Interned, Record, Schema};
use baler_monitoring::{Controller, TraceCall, TraceContext, TraceParent};
use tracing_core::span::{Attributes, Id, Record as NewValues};
use tracing_core::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::{LookupSpan, SpanRef};

use crate::attributes::{self, Attribute, Values};
use crate::frames;
use crate::propagation::take_remote_parent;
use crate::records::{EventRecord, SpanLinkRecord, SpanRecord, SpanStartRecord};
use crate::site::{Layout, Site};
use crate::span::{SpanData, SpanKey};

/// Makes a layer that records spans and events through this controller.
///
/// See the [crate's documentation](crate).
pub fn layer(controller: Controller) -> BalerLayer {
    static LAYERS: AtomicU64 = AtomicU64::new(0);
    BalerLayer {
        hostname: Interned::leaked(controller.hostname()),
        number: LAYERS.fetch_add(1, Ordering::Relaxed),
        lost: Lost::default(),
        controller,
    }
}

/// Records spans and events through a [`Controller`]. A registry has room for one such layer.
#[derive(Debug)]
pub struct BalerLayer {
    controller: Controller,
    hostname: Interned,
    number: u64,
    lost: Lost,
}

/// Counts spans, links and attributes that the layer could not record.
///
/// Records that the layer made and the controller dropped are counted by the controller instead.
#[derive(Debug, Clone, Default)]
pub struct Lost(Arc<AtomicU64>);

impl Lost {
    /// Returns their number since the layer was made.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl BalerLayer {
    /// Returns the count of what the layer could not record. Take it before the layer is moved into
    /// its subscriber.
    pub fn lost(&self) -> Lost {
        self.lost.clone()
    }

    #[inline]
    fn now(&self) -> i64 {
        self.controller.clock().unix_ns()
    }

    /// Emits a record with the attributes of its call site, if it has any. The controller counts
    /// what it refuses.
    fn emit<R: Record>(
        &self,
        record: &R,
        site: &'static Site,
        values: &[Attribute],
        schema: impl FnOnce(&Layout) -> Option<&Arc<Schema>>,
    ) {
        if values.is_empty() {
            self.controller.emit(record);
            return;
        }
        let layout = site.layout(values);
        if let (Some(schema), Some(timestamp)) = (schema(layout), record.timestamp()) {
            self.controller.emit_row(schema, timestamp, |row| {
                record.write_fields(row);
                attributes::write(values, &layout.kinds, row);
            });
        } else {
            // The names of the call site are too long for a record type.
            self.lost.add();
            self.controller.emit(record);
        }
    }

    fn key(&self, id: &Id) -> SpanKey {
        SpanKey(self.number, id.into_u64())
    }

    /// Returns the data of this span, if the layer records it.
    fn look_up<S>(&self, span: &SpanRef<'_, S>) -> Option<Arc<SpanData>>
    where
        S: for<'a> LookupSpan<'a>,
    {
        let extensions = span.extensions();
        let data = extensions.get::<Arc<SpanData>>()?;
        data.is(self.key(&span.id())).then(|| Arc::clone(data))
    }

    /// Returns the data of this span, or of the next one above it that the layer records.
    fn nearest<S>(&self, mut span: Option<SpanRef<'_, S>>) -> Option<Arc<SpanData>>
    where
        S: for<'a> LookupSpan<'a>,
    {
        loop {
            let here = span?;
            let data = frames::innermost(self.key(&here.id())).or_else(|| self.look_up(&here));
            if data.is_some() {
                return data;
            }
            span = here.parent();
        }
    }
}

impl<S> Layer<S> for BalerLayer
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let remote = take_remote_parent();
        let site = Site::of(attributes.metadata());
        if site.is_own || !self.controller.is_enabled() {
            return;
        }
        // First, because it runs code of the application, which may create spans itself.
        let mut values = Values::new(site.fields());
        attributes.record(&mut values);
        let Some(span) = context.span(id) else {
            return self.lost.add();
        };
        let parent = self.nearest(span.parent());
        let (outer, parent_span_id) = match (remote, &parent) {
            (Some(remote), _) => (TraceContext::continuing(&remote), None),
            (None, Some(parent)) => {
                let outer = context_in(&parent.call, attributes.is_contextual());
                (outer, Some(parent.start.span_id))
            }
            (None, None) if attributes.is_contextual() => (TraceContext::current(), None),
            (None, None) => (TraceContext::none(), None),
        };
        let call = TraceCall::begin(outer);
        let remote = call.caller().map(TraceParent::parent_id);
        let identity = call.traceparent();
        let (w3c_trace_high, w3c_trace_low) = halves(identity.trace_id());
        let data = Arc::new(SpanData {
            key: self.key(id),
            site,
            start: SpanStartRecord {
                trace_id: call.trace_id(),
                tin: self.now(),
                hostname: self.hostname,
                eoi: call.eoi(),
                ess: call.ess(),
                w3c_trace_high,
                w3c_trace_low,
                span_id: identity.parent_id(),
                parent_span_id: parent_span_id.or(remote).unwrap_or(0),
                level: site.level,
                target: site.target,
                name: site.name,
            },
            call,
            busy: AtomicU64::new(0),
            is_closed: AtomicBool::new(false),
        });
        self.emit(&data.start, site, &values.0, |layout| layout.start.as_ref());
        let mut extensions = span.extensions_mut();
        if extensions.replace(Arc::clone(&data)).is_some() {
            // Another layer of this type records into the same registry.
            self.lost.add();
        }
        if site.fields() > 0 {
            extensions.replace(values);
        }
        drop(extensions);
        frames::keep(data);
    }

    fn on_record(&self, id: &Id, values: &NewValues<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else {
            return self.lost.add();
        };
        // As above: before the lock of the extensions.
        let mut new = Values::new(span.metadata().fields().len());
        values.record(&mut new);
        if let Some(Values(values)) = span.extensions_mut().get_mut() {
            for (value, new) in values.iter_mut().zip(new.0) {
                if new != Attribute::Empty {
                    *value = new;
                }
            }
        }
    }

    fn on_follows_from(&self, id: &Id, followed: &Id, context: Context<'_, S>) {
        let get = |id| self.look_up(&context.span(id)?);
        let (Some(span), Some(followed)) = (get(id), get(followed)) else {
            return self.lost.add();
        };
        let (span, followed) = (&span.start, &followed.start);
        self.controller.emit(&SpanLinkRecord {
            trace_id: span.trace_id,
            timestamp: self.now(),
            w3c_trace_high: span.w3c_trace_high,
            w3c_trace_low: span.w3c_trace_low,
            span_id: span.span_id,
            followed_trace_high: followed.w3c_trace_high,
            followed_trace_low: followed.w3c_trace_low,
            followed_span_id: followed.span_id,
        });
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let site = Site::of(event.metadata());
        if site.is_own || !self.controller.is_enabled() {
            return;
        }
        let mut values = Values::new(site.fields());
        event.record(&mut values);
        let message = site.message.and_then(|at| values.0.get_mut(at));
        let message = match message.map(mem::take) {
            Some(Attribute::Text(text)) => text,
            Some(other) => other.to_text(),
            None => String::new(),
        };
        let span = self.nearest(context.event_span(event)).map(|it| {
            let start = &it.start;
            let trace = (start.w3c_trace_high, start.w3c_trace_low);
            (start.trace_id, trace, start.span_id)
        });
        let (trace_id, (w3c_trace_high, w3c_trace_low), span_id) = span.unwrap_or_else(|| {
            // Without a span it can be in a call of a probe.
            let here = event.is_contextual().then(TraceContext::current);
            let trace_id = here.as_ref().and_then(TraceContext::trace_id);
            let trace = here.and_then(|here| here.traceparent());
            let trace = trace.map_or(0, |trace| trace.trace_id());
            (trace_id.unwrap_or(NO_TRACE), halves(trace), 0)
        });
        let record = EventRecord {
            trace_id,
            timestamp: self.now(),
            hostname: self.hostname,
            w3c_trace_high,
            w3c_trace_low,
            span_id,
            level: site.level,
            target: site.target,
            name: site.name,
            message,
        };
        let has_attributes = site.fields() > usize::from(site.message.is_some());
        let values = if has_attributes { &*values.0 } else { &[] };
        self.emit(&record, site, values, |layout| layout.end.as_ref());
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        let look_up = || self.look_up(&context.span(id)?);
        frames::enter(self.key(id), look_up, || self.now());
    }

    fn on_exit(&self, id: &Id, _context: Context<'_, S>) {
        frames::exit(self.key(id), self.now());
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let tout = self.now();
        let last = frames::take(self.key(&id));
        let Some(data) = last.or_else(|| self.look_up(&context.span(&id)?)) else {
            return;
        };
        data.is_closed.store(true, Ordering::Relaxed);
        let mut values = Values::default();
        if data.site.fields() > 0 {
            let span = context.span(&id);
            match span.and_then(|span| span.extensions_mut().remove()) {
                Some(recorded) => values = recorded,
                None => self.lost.add(),
            }
        }
        let start = &data.start;
        // The clock may have been set back meanwhile: no time must be negative.
        let tout = tout.max(start.tin);
        let busy = data.busy.load(Ordering::Relaxed);
        let record = SpanRecord {
            operation_signature: data.site.signature,
            trace_id: start.trace_id,
            tin: start.tin,
            tout,
            hostname: start.hostname,
            eoi: start.eoi,
            ess: start.ess,
            w3c_trace_high: start.w3c_trace_high,
            w3c_trace_low: start.w3c_trace_low,
            span_id: start.span_id,
            parent_span_id: start.parent_span_id,
            busy,
            // Threads that are in the span at the same time can be busy for longer than it lasts.
            idle: tout.abs_diff(start.tin).saturating_sub(busy),
            level: start.level,
            target: start.target,
            name: start.name,
        };
        self.emit(&record, data.site, &values.0, |layout| layout.end.as_ref());
    }
}

/// Kieker's value for no trace.
const NO_TRACE: i64 = -1;

/// Returns the context of a new span with this parent.
///
/// The parent decides the trace, not the thread. A contextual span can be within calls of probes
/// that began in its parent: then the thread has the same trace.
fn context_in(parent: &TraceCall, is_contextual: bool) -> TraceContext {
    let here = is_contextual.then(TraceContext::current);
    here.filter(|here| here.trace_id() == Some(parent.trace_id()))
        .unwrap_or_else(|| parent.within())
}

/// Returns both halves of a W3C trace id, the upper one first.
fn halves(id: u128) -> (u64, u64) {
    let [a, b, c, d, e, f, g, h, low @ ..] = id.to_be_bytes();
    (
        u64::from_be_bytes([a, b, c, d, e, f, g, h]),
        u64::from_be_bytes(low),
    )
}
