//! The crates `opentelemetry` and `opentelemetry_sdk`.

use std::future::{Future, ready};
use std::sync::OnceLock;

use baler_rig::monitored;
use baler_rig::overhead::{End, Outer, Running, Variant};
use opentelemetry::trace::{Tracer as _, TracerProvider as _};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider, SpanData, SpanExporter};

use super::counter;
use crate::failure::Failure;

pub(super) const VARIANTS: &[Variant] = &[Variant {
    name: "opentelemetry",
    about: "opentelemetry_sdk in_span, batch processor with its defaults, exporter that discards",
    set_up: |_| {
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(Discarding)
            .build();
        TRACER
            .set(provider.tracer("overhead"))
            .map_err(|_| Failure::new("there is a tracer already"))?;
        Ok(Box::new(OpenTelemetry(provider)))
    },
}];

static TRACER: OnceLock<SdkTracer> = OnceLock::new();

monitored! {
    fn in_span around |body| match TRACER.get() {
        Some(tracer) => tracer.in_span("operation", |_context| body()),
        None => body(),
    }
}

#[derive(Debug)]
struct Discarding;

impl SpanExporter for Discarding {
    fn export(&self, batch: Vec<SpanData>) -> impl Future<Output = OTelSdkResult> + Send {
        counter::arrived(u64::try_from(batch.len()).unwrap_or(u64::MAX));
        ready(Ok(()))
    }
}

struct OpenTelemetry(SdkTracerProvider);

impl Running for OpenTelemetry {
    fn outer(&self) -> Outer {
        in_span
    }

    fn finish(self: Box<Self>, calls: u64) -> Result<End, Failure> {
        // Exports what is queued. It reports spans that were dropped as an error, or the timeout.
        self.0.shutdown().ok();
        counter::end(calls)
    }
}
