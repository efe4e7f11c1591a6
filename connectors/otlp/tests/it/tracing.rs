//! Spans and events of `tracing`, and probes within them, from an application to a receiver of OTLP.

use std::collections::HashMap;
use std::thread;
use std::time::Duration;

use baler_common::record::AnyValue;
use baler_common::transport::{ChunkReader as _, Verdict};
use baler_connector_otlp::types::{Attributes, Log, Span, Telemetry, TraceId};
use baler_connector_otlp::{OtlpWriter, OtlpWriterConfig};
use baler_monitoring::{Controller, TraceContext, TraceParent, probe};
use baler_tracing::{traceparent, with_remote_parent};
use tracing::{Level, dispatcher, error, info_span, span};
use tracing_subscriber::layer::SubscriberExt as _;

use crate::support::{decoded, reader, receive};

const HEADER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const TRACE: TraceId = TraceId {
    high: 0x4bf9_2f35_77b3_4da6,
    low: 0xa3ce_929d_0e0e_4736,
};

#[probe]
fn probed<T>(run: impl FnOnce() -> T) -> T {
    run()
}

/// Runs an application, and returns what arrives.
fn telemetry(run: impl FnOnce() + Send + 'static) -> (HashMap<String, Span>, Vec<Log>) {
    let mut reader = reader(|_| ());
    let mut config = OtlpWriterConfig::grpc("127.0.0.1", reader.local_addr().unwrap().port());
    config.service = Some("shop".into());
    let application = thread::spawn(move || {
        let builder = Controller::builder(Box::new(OtlpWriter::new(config)));
        let controller = builder.hostname("host").start().unwrap();
        controller.install();
        let layer = baler_tracing::layer(controller.clone());
        let dispatch = dispatcher::Dispatch::new(tracing_subscriber::registry().with(layer));
        dispatcher::with_default(&dispatch, run);
        let report = controller.shutdown(Duration::from_secs(20));
        assert!(
            report.adds_up() && report.dropped().total() == 0,
            "{report}"
        );
    });
    let (mut spans, mut logs) = (HashMap::new(), Vec::new());
    // Its span ends last, and log records are sent before spans.
    while !spans.contains_key("request") {
        let delivery = receive(&mut reader);
        reader.settle(delivery.token, Verdict::Ack).unwrap();
        for record in decoded(&delivery.bytes).read() {
            match record.unwrap() {
                Telemetry::Span(span) => drop(spans.insert(span.name.clone(), span)),
                Telemetry::Log(log) => logs.push(log),
                other => panic!("{other:?}"),
            }
        }
    }
    application.join().unwrap();
    (spans, logs)
}

fn attribute<'a>(attributes: &'a Attributes, name: &str) -> Option<&'a AnyValue<'static>> {
    let found = attributes.0.iter().find(|(key, _)| key == name);
    found.map(|(_, value)| value)
}

fn text(value: &'static str) -> AnyValue<'static> {
    AnyValue::String(value.into())
}

#[test]
fn spans_and_probes_are_one_trace_from_one_service_to_the_next() {
    let (sender, sent) = std::sync::mpsc::channel::<[TraceParent; 2]>();
    let (spans, logs) = telemetry(move || {
        let request = with_remote_parent(HEADER.parse().ok(), || {
            span!(
                Level::INFO,
                "request",
                path = "/orders",
                size = 7_u64,
                otel.kind = "server",
                otel.status_code = "ERROR",
            )
        });
        let headers = request.in_scope(|| {
            probed(|| {
                let probed = TraceContext::current().traceparent().unwrap();
                let query = info_span!("query", otel.kind = "Client").entered();
                query.follows_from(&request);
                error!(code = 5, "no answer");
                let header = traceparent().unwrap();
                drop(query);
                [header, probed]
            })
        });
        drop(request);
        sender.send(headers).unwrap();
    });
    assert_eq!(spans.len(), 3, "{spans:?}");
    let by_end = |end: &str| spans.values().find(|it| it.name.ends_with(end)).unwrap();
    let [request, probed, query] = ["request", "probed", "query"].map(by_end);
    for span in spans.values() {
        assert_eq!(span.trace_id, TRACE, "{span:?}");
        assert_eq!(
            attribute(&span.resource.attributes, "service.name"),
            Some(&text("shop"))
        );
        assert_eq!(
            attribute(&span.resource.attributes, "host.name"),
            Some(&text("host"))
        );
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano);
    }
    // The calls of probes stand between the spans.
    assert_eq!(request.parent_span_id, 0x00f0_67aa_0ba9_02b7);
    assert_eq!(probed.parent_span_id, request.span_id);
    assert_eq!(query.parent_span_id, probed.span_id);
    // The next service was told the same ids.
    let sent = sent.recv().unwrap().map(|it| it.parent_id());
    assert_eq!(sent, [query.span_id, probed.span_id]);
    assert_eq!([request.kind, probed.kind, query.kind], [2, 1, 3]);
    assert_eq!(request.status.as_ref().map(|it| it.code), Some(2));
    assert_eq!(
        attribute(&request.attributes, "path"),
        Some(&text("/orders"))
    );
    assert_eq!(
        attribute(&request.attributes, "size"),
        Some(&AnyValue::I64(7))
    );
    assert_eq!(attribute(&request.attributes, "level"), Some(&text("INFO")));
    assert!(attribute(&request.attributes, "busy_ns").is_some());
    for name in [
        "otel.kind",
        "w3cTraceHigh",
        "spanId",
        "tin",
        "name",
        "target",
    ] {
        assert_eq!(attribute(&request.attributes, name), None, "{name}");
    }
    assert_eq!(request.scope.name, module_path!());
    let [link, event] = &logs[..] else {
        panic!("{logs:?}")
    };
    assert_eq!((link.trace_id, link.span_id), (TRACE, query.span_id));
    assert_eq!(&*link.event_name, "follows_from");
    let followed = AnyValue::String(format!("{:016x}", request.span_id).into());
    assert_eq!(attribute(&link.attributes, "link.span_id"), Some(&followed));
    assert_eq!((event.trace_id, event.span_id), (TRACE, query.span_id));
    assert_eq!(
        (event.severity_number, &*event.severity_text),
        (17, "ERROR")
    );
    assert_eq!(event.body, Some(text("no answer")));
    assert_eq!(
        attribute(&event.attributes, "code"),
        Some(&AnyValue::I64(5))
    );
    assert_eq!(&*event.event_name, "");
}
