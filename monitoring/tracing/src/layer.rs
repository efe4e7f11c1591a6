//! From the calls of `tracing` to records.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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

/// The layer's data of a span, in the extensions of the registry.
#[derive(Debug)]
struct SpanData {
    site: &'static Site,
    call: TraceCall,
    /// The span in the form for other processes.
    identity: TraceParent,
    /// 0 if there is none.
    parent_span_id: u64,
    tin: i64,
    /// The time that threads spent in the span, in nanoseconds.
    busy: u64,
    values: Vec<Attribute>,
}

impl BalerLayer {
    /// Returns the count of what the layer could not record. Take it before the layer is moved into
    /// its subscriber.
    pub fn lost(&self) -> Lost {
        self.lost.clone()
    }

    fn now(&self) -> i64 {
        self.controller.clock().unix_ns()
    }

    /// Emits a record with the attributes of its call site. The controller counts what it refuses.
    fn emit<R: Record>(
        &self,
        record: &R,
        values: &[Attribute],
        layout: &Layout,
        schema: Option<&Arc<Schema>>,
    ) {
        if let (Some(schema), Some(timestamp)) = (schema, record.timestamp()) {
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

    fn emit_start(&self, span: &SpanData) {
        let (high, low) = halves(span.identity.trace_id());
        let record = SpanStartRecord {
            trace_id: span.call.trace_id(),
            tin: span.tin,
            hostname: self.hostname,
            eoi: span.call.eoi(),
            ess: span.call.ess(),
            w3c_trace_high: high,
            w3c_trace_low: low,
            span_id: span.identity.parent_id(),
            parent_span_id: span.parent_span_id,
            level: span.site.level,
            target: span.site.target,
            name: span.site.name,
        };
        if span.values.is_empty() {
            self.controller.emit(&record);
        } else {
            let layout = span.site.layout(&span.values);
            self.emit(&record, &span.values, layout, layout.start.as_ref());
        }
    }

    fn emit_end(&self, span: &SpanData, tout: i64) {
        // The clock may have been set back meanwhile: no time must be negative.
        let tout = tout.max(span.tin);
        let (high, low) = halves(span.identity.trace_id());
        let record = SpanRecord {
            operation_signature: span.site.signature,
            trace_id: span.call.trace_id(),
            tin: span.tin,
            tout,
            hostname: self.hostname,
            eoi: span.call.eoi(),
            ess: span.call.ess(),
            w3c_trace_high: high,
            w3c_trace_low: low,
            span_id: span.identity.parent_id(),
            parent_span_id: span.parent_span_id,
            busy: span.busy,
            // Threads that are in the span at the same time can be busy for longer than it lasts.
            idle: tout.abs_diff(span.tin).saturating_sub(span.busy),
            level: span.site.level,
            target: span.site.target,
            name: span.site.name,
        };
        if span.values.is_empty() {
            self.controller.emit(&record);
        } else {
            let layout = span.site.layout(&span.values);
            self.emit(&record, &span.values, layout, layout.end.as_ref());
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
        let parent = nearest(span.parent(), |it| {
            (it.call.clone(), it.identity.parent_id())
        });
        let (outer, parent_span_id) = match (remote, parent) {
            (Some(remote), _) => (TraceContext::continuing(&remote), None),
            (None, Some((parent, id))) => {
                (context_in(&parent, attributes.is_contextual()), Some(id))
            }
            (None, None) if attributes.is_contextual() => (TraceContext::current(), None),
            (None, None) => (TraceContext::none(), None),
        };
        let call = TraceCall::begin(outer);
        let remote = call.caller().map(TraceParent::parent_id);
        let data = SpanData {
            site,
            identity: call.traceparent(),
            parent_span_id: parent_span_id.or(remote).unwrap_or(0),
            call,
            tin: self.now(),
            busy: 0,
            values: values.0,
        };
        self.emit_start(&data);
        if span.extensions_mut().replace(data).is_some() {
            // Another layer of this type records into the same registry.
            self.lost.add();
        }
    }

    fn on_record(&self, id: &Id, values: &NewValues<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else {
            return self.lost.add();
        };
        // As above: before the lock of the extensions.
        let mut new = Values::new(span.metadata().fields().len());
        values.record(&mut new);
        if let Some(data) = span.extensions_mut().get_mut::<SpanData>() {
            for (value, new) in data.values.iter_mut().zip(new.0) {
                if new != Attribute::Empty {
                    *value = new;
                }
            }
        }
    }

    fn on_follows_from(&self, id: &Id, followed: &Id, context: Context<'_, S>) {
        let get = |id| {
            let extensions = context.span(id)?;
            let extensions = extensions.extensions();
            let data = extensions.get::<SpanData>()?;
            Some((data.call.trace_id(), data.identity))
        };
        let (Some((trace_id, span)), Some((_, followed))) = (get(id), get(followed)) else {
            return self.lost.add();
        };
        let (w3c_trace_high, w3c_trace_low) = halves(span.trace_id());
        let (followed_trace_high, followed_trace_low) = halves(followed.trace_id());
        self.controller.emit(&SpanLinkRecord {
            trace_id,
            timestamp: self.now(),
            w3c_trace_high,
            w3c_trace_low,
            span_id: span.parent_id(),
            followed_trace_high,
            followed_trace_low,
            followed_span_id: followed.parent_id(),
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
        let span = nearest(context.event_span(event), |it| {
            let (trace, span_id) = (it.identity.trace_id(), it.identity.parent_id());
            (it.call.trace_id(), trace, span_id)
        });
        let (trace_id, trace, span_id) = span.unwrap_or_else(|| {
            // Without a span it can be in a call of a probe.
            let here = event.is_contextual().then(TraceContext::current);
            let trace_id = here.as_ref().and_then(TraceContext::trace_id);
            let trace = here.and_then(|here| here.traceparent());
            let trace = trace.map_or(0, |trace| trace.trace_id());
            (trace_id.unwrap_or(NO_TRACE), trace, 0)
        });
        let (high, low) = halves(trace);
        let record = EventRecord {
            trace_id,
            timestamp: self.now(),
            hostname: self.hostname,
            w3c_trace_high: high,
            w3c_trace_low: low,
            span_id,
            level: site.level,
            target: site.target,
            name: site.name,
            message,
        };
        if site.fields() == usize::from(site.message.is_some()) {
            self.controller.emit(&record);
        } else {
            let layout = site.layout(&values.0);
            self.emit(&record, &values.0, layout, layout.end.as_ref());
        }
    }

    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        let span = context.span(id);
        let data = span.as_ref().and_then(|span| {
            let extensions = span.extensions();
            let data = extensions.get::<SpanData>()?;
            Some((data.identity, data.call.within()))
        });
        if let Some((identity, within)) = data {
            frames::enter(self.number, id, identity, within, || self.now());
        }
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        let now = self.now();
        let Some(entered) = frames::exit(self.number, id) else {
            return;
        };
        if let Some(span) = context.span(id) {
            if let Some(data) = span.extensions_mut().get_mut::<SpanData>() {
                let busy = u64::try_from(now.saturating_sub(entered)).unwrap_or(0);
                data.busy = data.busy.saturating_add(busy);
            }
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let tout = self.now();
        let data = context
            .span(&id)
            .and_then(|span| span.extensions_mut().remove::<SpanData>());
        if let Some(data) = data {
            self.emit_end(&data, tout);
        }
    }
}

/// Kieker's value for no trace.
const NO_TRACE: i64 = -1;

/// Returns a part of the data of this span, or of the next one above it that the layer records.
fn nearest<'a, S, T>(span: Option<SpanRef<'a, S>>, get: impl Fn(&SpanData) -> T) -> Option<T>
where
    S: for<'b> LookupSpan<'b>,
{
    span?
        .scope()
        .find_map(|span| span.extensions().get::<SpanData>().map(&get))
}

/// Returns the context of a new span with this parent.
///
/// The parent decides the trace, not the thread. A contextual span can be within calls of probes
/// that began in its parent: then the thread has the same trace.
fn context_in(parent: &TraceCall, is_contextual: bool) -> TraceContext {
    if is_contextual {
        let here = TraceContext::current();
        if here.trace_id() == Some(parent.trace_id()) {
            return here;
        }
    }
    parent.within()
}

/// Returns both halves of a W3C trace id, the upper one first.
fn halves(id: u128) -> (u64, u64) {
    let [a, b, c, d, e, f, g, h, low @ ..] = id.to_be_bytes();
    (
        u64::from_be_bytes([a, b, c, d, e, f, g, h]),
        u64::from_be_bytes(low),
    )
}
