//! The crate `tracing`.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use baler_connector_null::{NullConfig, NullWriter};
use baler_monitoring::{Controller, Overflow};
use baler_rig::monitored;
use baler_rig::overhead::{Alone, Running, Variant, cycles};
use tracing::Subscriber;
use tracing::span::{Attributes, Id};
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, Registry};

use super::counter::{self, Counted};
use super::opentelemetry;
use crate::Failure;

pub(super) const VARIANTS: &[Variant] = &[
    Variant::new("tracing", "tracing #[instrument] without a subscriber", |_| {
        Ok(Box::new(Alone(instrumented)))
    }),
    Variant::new(
        "tracing-registry",
        "tracing #[instrument] with tracing-subscriber's registry and a layer that stores the fields of \
         an operation's record",
        |_| with_layer(Storing, || {}),
    )
    .with_settings("a buffer a thread"),
    Variant::new(
        "tracing-baler",
        "tracing #[instrument] with tracing-subscriber's registry and the layer of baler-tracing: two \
         records a span",
        |_| {
            let writer = NullWriter::new(NullConfig::default());
            let builder = Controller::builder(Box::new(writer)).overflow(Overflow::Block);
            let controller = builder.metadata_record(false).start();
            let controller = controller.map_err(Failure::cannot("start a controller"))?;
            let layer = baler_tracing::layer(controller.clone());
            with_layer(layer, move || {
                let report = controller.shutdown(PATIENCE);
                counter::arrived(report.stats.delivered / 2);
            })
        },
    )
    .with_settings("null writer, blocks if the queue is full"),
    Variant::new(
        "tracing-opentelemetry",
        "tracing #[instrument] with tracing-subscriber's registry and the layer of \
         tracing-opentelemetry, batch processor, exporter that discards",
        |_| {
            let (tracer, flush) = opentelemetry::tracer();
            with_layer(tracing_opentelemetry::layer().with_tracer(tracer), flush)
        },
    )
    .with_settings(opentelemetry::SETTINGS),
];

/// The time limit for delivering the queued records.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs with this layer alone.
fn with_layer(
    layer: impl Layer<Registry> + Send + Sync,
    flush: impl FnOnce() + 'static,
) -> Result<Box<dyn Running>, Failure> {
    let subscriber = tracing_subscriber::registry().with(layer);
    tracing::subscriber::set_global_default(subscriber)
        .map_err(Failure::cannot("set a subscriber"))?;
    Ok(Box::new(Counted {
        outer: instrumented,
        flush: Box::new(flush),
    }))
}

monitored! { #[tracing::instrument(skip_all)] fn instrumented {} }

/// A layer that stores the fields of Baler's operation execution record for each span.
struct Storing;

/// The fields of an operation execution record.
#[expect(
    dead_code,
    reason = "stored as a record would be; nothing reads them in this measurement"
)]
#[derive(Clone, Copy)]
struct Execution {
    operation: &'static str,
    session: &'static str,
    host: &'static str,
    trace_id: u64,
    tin: u64,
    tout: u64,
    eoi: u32,
    ess: u32,
}

/// Records that a thread stores before it discards them: the default number of records in a chunk.
const BUFFERED: usize = 1_024;

thread_local! {
    /// Traces begun on this thread, and calls begun in the present one.
    static TRACE: Cell<(u64, u32)> = const { Cell::new((0, 0)) };
    static BUFFER: RefCell<Vec<Execution>> = RefCell::new(Vec::with_capacity(BUFFERED));
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Storing {
    fn on_new_span(&self, _attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else {
            return;
        };
        let parent = span
            .parent()
            .and_then(|parent| parent.extensions().get::<Execution>().map(|it| it.ess));
        let (traces, calls) = TRACE.get();
        let (trace_id, eoi, ess) = match parent {
            Some(ess) => (traces, calls, ess + 1),
            None => (traces + 1, 0, 0),
        };
        TRACE.set((trace_id, eoi + 1));
        span.extensions_mut().insert(Execution {
            operation: span.metadata().name(),
            session: "<no-session-id>",
            host: "localhost",
            trace_id,
            tin: cycles(),
            tout: 0,
            eoi,
            ess,
        });
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else {
            return;
        };
        let Some(mut execution) = span.extensions().get::<Execution>().copied() else {
            return;
        };
        execution.tout = cycles();
        BUFFER.with_borrow_mut(|buffer| {
            buffer.push(execution);
            if buffer.len() == BUFFERED {
                std::hint::black_box(&*buffer);
                buffer.clear();
            }
        });
        counter::one_arrived();
    }
}
