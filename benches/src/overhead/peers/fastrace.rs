//! The crate `fastrace`.

use std::time::Duration;

use baler_rig::monitored;
use baler_rig::overhead::Variant;
use fastrace::Span;
use fastrace::collector::{Config, Reporter, SpanContext, SpanRecord};

use super::counter::{self, Counted};

pub(super) const VARIANTS: &[Variant] = &[Variant::new(
    "fastrace",
    "fastrace #[trace] below a root span for each call from outside, reporter that discards",
    |_| {
        fastrace::set_reporter(Discarding, Config::default().report_interval(REPORT));
        Ok(Box::new(Counted {
            outer: request,
            flush: Box::new(fastrace::flush),
        }))
    },
)
.with_settings("reports every 10 ms")];

/// How often spans are reported. With the default of a second they pile up, and cost six times as
/// much.
const REPORT: Duration = Duration::from_millis(10);

/// The name of the span around a call from outside, which is not an instrumented call.
const ROOT: &str = "root";

monitored! { #[fastrace::trace(name = "operation")] fn traced {} }

/// `#[trace]` records nothing without a parent: a request, according to its documentation.
#[inline(never)]
fn request(depth: u32) -> u64 {
    let root = Span::root(ROOT, SpanContext::random());
    let _parent = root.set_local_parent();
    traced(depth)
}

struct Discarding;

impl Reporter for Discarding {
    fn report(&mut self, spans: Vec<SpanRecord>) {
        let calls = spans.iter().filter(|span| span.name != ROOT).count();
        counter::arrived(calls as u64);
    }
}
