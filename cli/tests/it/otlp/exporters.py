"""Sends spans, log records and data points by OpenTelemetry's exporters, and compares the requests that
come back, field by field.

Arguments: the address of the receiver of OTLP, the number of records of each kind. The first line of
standard output has the ports at which the records are awaited by HTTP and by gRPC.
"""

import gzip
import json
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import grpc
from google.protobuf.json_format import MessageToDict
from opentelemetry._logs import SeverityNumber
from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.exporter.otlp.proto.grpc import _log_exporter as grpc_logs
from opentelemetry.exporter.otlp.proto.grpc import metric_exporter as grpc_metrics
from opentelemetry.exporter.otlp.proto.grpc import trace_exporter as grpc_traces
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http import _log_exporter as http_logs
from opentelemetry.exporter.otlp.proto.http import metric_exporter as http_metrics
from opentelemetry.exporter.otlp.proto.http import trace_exporter as http_traces
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2, logs_service_pb2_grpc
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2, metrics_service_pb2_grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2, trace_service_pb2_grpc
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.metrics.view import ExponentialBucketHistogramAggregation, View
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Link, SpanKind, Status, StatusCode

# In seconds, for each 10,000 records of a kind.
DEADLINE = time.monotonic() + 240 * max(1, int(sys.argv[2]) / 10_000)
BATCH = 512
# In seconds: a busy machine may take its time.
TIMEOUT = 60

# The names of the messages around records, as (request, source, items).
KINDS = {
    "spans": ("resource_spans", "scope_spans", "spans"),
    "logs": ("resource_logs", "scope_logs", "log_records"),
    "points": ("resource_metrics", "scope_metrics", "metrics"),
}
REQUESTS = {
    "/v1/traces": ("spans", trace_service_pb2.ExportTraceServiceRequest),
    "/v1/logs": ("logs", logs_service_pb2.ExportLogsServiceRequest),
    "/v1/metrics": ("points", metrics_service_pb2.ExportMetricsServiceRequest),
}


def flatten(kind, request):
    """Yields each record with all that the messages around it say, as (bytes, messages)."""
    sources, scopes, items = KINDS[kind]
    for source in getattr(request, sources):
        for scope in getattr(source, scopes):
            urls = (source.schema_url, scope.schema_url)
            around = (source.resource, scope.scope)
            prefix = (*urls, *(serialized(it) for it in around))
            for item in getattr(scope, items):
                for record in data_points(item) if kind == "points" else [item]:
                    yield (*prefix, serialized(record)), (urls, *around, record)


def serialized(message):
    return message.SerializeToString(deterministic=True)


def data_points(metric):
    """Yields the metric with each of its data points alone."""
    name = metric.WhichOneof("data")
    empty = type(metric)()
    empty.CopyFrom(metric)
    del getattr(empty, name).data_points[:]
    for point in getattr(metric, name).data_points:
        alone = type(metric)()
        alone.CopyFrom(empty)
        getattr(alone, name).data_points.append(point)
        yield alone


def text(parts):
    urls, *messages = parts
    return json.dumps([urls, *map(MessageToDict, messages)], indent=1)


class Arrived:
    """What came by one protocol, by kind."""

    def __init__(self, name):
        self.name, self.lock = name, threading.Lock()
        self.records = {kind: {} for kind in KINDS}

    def add(self, kind, request):
        with self.lock:
            for key, parts in flatten(kind, request):
                self.records[kind][key] = parts

    def lacks(self, sent):
        with self.lock:
            return any(len(self.records[kind]) < len(sent[kind]) for kind in KINDS)


def serve_http(arrived):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            kind, request = REQUESTS[self.path]
            arrived.add(kind, request.FromString(body))
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_port


def serve_grpc(arrived):
    def servicer(base, kind, response):
        class Servicer(base):
            def Export(self, request, _context):
                arrived.add(kind, request)
                return response()

        return Servicer()

    server = grpc.server(ThreadPoolExecutor(4))
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(
        servicer(
            trace_service_pb2_grpc.TraceServiceServicer,
            "spans",
            trace_service_pb2.ExportTraceServiceResponse,
        ),
        server,
    )
    logs_service_pb2_grpc.add_LogsServiceServicer_to_server(
        servicer(
            logs_service_pb2_grpc.LogsServiceServicer,
            "logs",
            logs_service_pb2.ExportLogsServiceResponse,
        ),
        server,
    )
    metrics_service_pb2_grpc.add_MetricsServiceServicer_to_server(
        servicer(
            metrics_service_pb2_grpc.MetricsServiceServicer,
            "points",
            metrics_service_pb2.ExportMetricsServiceResponse,
        ),
        server,
    )
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    return port, server


def attributes(number):
    """Attributes of each type that the SDK has for spans and data points."""
    return {
        "number": number,
        "text": f"Zeichen „é“ 🦀 {number}",
        "empty text": "",
        "yes": number % 2 == 0,
        "smallest": -(2**63),
        "largest": 2**63 - 1,
        "float": number / 7,
        "negative zero": -0.0,
        "infinite": float("-inf"),
        "texts": ("a", "", "ü"),
        "bools": (True, False),
        "numbers": (1, -(2**63), number),
        "floats": (0.1 + 0.2, 5e-324, float("inf")),
        "none": (),
    }


def nested(number):
    """A value of a log record, of each type and nested."""
    flat = {**attributes(number), "bytes": bytes([0, 255, number % 256])}
    return {**flat, "map": {"deeper": [flat, {"list": [[number, None], []]}]}, "null": None}


def make_spans(resource, count):
    memory = InMemorySpanExporter()
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(SimpleSpanProcessor(memory))
    tracers = [
        provider.get_tracer("library", "1.2", "https://schema/1", {"scope": "x"}),
        provider.get_tracer("other"),
    ]
    link = None
    kinds, codes = list(SpanKind), list(StatusCode)
    for number in range(0, count, 2):
        tracer = tracers[number % 4 // 2]
        links = [Link(link, attributes(number))] if link else []
        kind = kinds[number // 2 % len(kinds)]
        with tracer.start_as_current_span(f"outer {number}", kind=kind, links=links) as outer:
            outer.set_attributes(attributes(number))
            outer.add_event("event", attributes(number), timestamp=number + 1)
            with tracer.start_as_current_span("inner", record_exception=True) as inner:
                code = codes[number // 2 % len(codes)]
                described = "why" if code == StatusCode.ERROR else None
                inner.set_status(Status(code, described))
                inner.record_exception(ValueError(f"é {number}"))
            link = inner.get_span_context()
    return memory.get_finished_spans()


def make_logs(resource, count):
    memory = InMemoryLogRecordExporter()
    provider = LoggerProvider(resource=resource)
    provider.add_log_record_processor(SimpleLogRecordProcessor(memory))
    logger = provider.get_logger("logger", "3", "https://schema/2", {"scope": [1, 2]})
    tracer = TracerProvider().get_tracer("t")
    severities = list(SeverityNumber)
    bodies = [nested, attributes, str, float, lambda it: it, lambda it: bytes([it % 256])]
    bodies += [lambda it: [it, "x", None], lambda it: it % 2 == 0, lambda _: None]
    for number in range(count):
        with tracer.start_as_current_span("span"):
            severity = severities[number % len(severities)]
            logger.emit(
                timestamp=number,
                observed_timestamp=number + 10**18,
                severity_number=severity,
                severity_text=severity.name,
                body=bodies[number % len(bodies)](number),
                attributes=nested(number),
                event_name=f"event {number}" if number % 3 else None,
            )
    return memory.get_finished_logs()


def make_points(resource, count):
    """Returns data points of several readers: of an instrument, one reader keeps 2,000 points apart."""
    numbers = count // 5
    starts = range(0, numbers, 1_000)
    return [read_points(resource, range(it, min(it + 1_000, numbers))) for it in starts]


def read_points(resource, numbers):
    reader = InMemoryMetricReader()
    exponential = View(
        instrument_name="exponential", aggregation=ExponentialBucketHistogramAggregation()
    )
    provider = MeterProvider([reader], resource, views=[exponential])
    meter = provider.get_meter("meter", "4", "https://schema/3", {"scope": 1.5})
    tracer = TracerProvider().get_tracer("t")
    counter = meter.create_counter("counter", "1", "what it is")
    both_ways = meter.create_up_down_counter("up_and_down", "By")
    gauge = meter.create_gauge("gauge", "Cel", "température")
    histogram = meter.create_histogram("histogram", "s")
    other = meter.create_histogram("exponential", "ms")
    for number in numbers:
        of = attributes(number)
        # Within a span, the SDK adds exemplars.
        with tracer.start_as_current_span("span"):
            counter.add(number, of)
            both_ways.add(-number / 3, of)
            gauge.set(2**53 + number if number % 2 else -number / 7, of)
            for value in (0, number / 11, number**2):
                histogram.record(value, of)
                other.record(value, of)
    return reader.get_metrics_data()


def send(address, of, sent, by_grpc):
    """Sends records of all kinds, and notes them."""

    def exporter(grpc_type, http_type, path):
        if by_grpc:
            return grpc_type(
                endpoint=f"http://{address}",
                insecure=True,
                compression=grpc.Compression.Gzip,
                timeout=TIMEOUT,
            )
        return http_type(
            endpoint=f"http://{address}{path}", compression=Compression.Gzip, timeout=TIMEOUT
        )

    def export(kind, exporter, encode, records):
        sent_now = dict(flatten(kind, encode(records)))
        result = exporter.export(records)
        assert result.name == "SUCCESS", f"{kind}: {result}"
        sent[kind].update(sent_now)

    spans, logs, points = of
    exporting = exporter(grpc_traces.OTLPSpanExporter, http_traces.OTLPSpanExporter, "/v1/traces")
    for start in range(0, len(spans), BATCH):
        export("spans", exporting, encode_spans, spans[start : start + BATCH])
    exporting = exporter(grpc_logs.OTLPLogExporter, http_logs.OTLPLogExporter, "/v1/logs")
    for start in range(0, len(logs), BATCH):
        export("logs", exporting, encode_logs, logs[start : start + BATCH])
    exporting = exporter(
        grpc_metrics.OTLPMetricExporter, http_metrics.OTLPMetricExporter, "/v1/metrics"
    )
    for some in points:
        export("points", exporting, encode_metrics, some)


def compare(sent, arrived):
    for kind, wanted in sent.items():
        records = arrived.records[kind]
        missing = [it for key, it in wanted.items() if key not in records]
        unknown = [it for key, it in records.items() if key not in wanted]
        if missing or unknown:
            shown = "\n".join(text(it[0]) for it in (missing, unknown) if it)
            counts = f"{len(missing)} of {len(wanted)} {kind} are missing, {len(unknown)} are not as sent"
            sys.exit(f"{arrived.name}: {counts}; the first of each:\n{shown}")


def main():
    address, count = sys.argv[1], int(sys.argv[2])
    by_http, by_grpc = Arrived("HTTP"), Arrived("gRPC")
    http_port = serve_http(by_http)
    grpc_port, server = serve_grpc(by_grpc)
    print(json.dumps([http_port, grpc_port]), flush=True)
    sent = {kind: {} for kind in KINDS}
    for is_grpc in (True, False):
        resource = Resource(attributes(int(is_grpc)), schema_url="https://schema/0")
        half = count // 2
        of = make_spans(resource, half), make_logs(resource, half), make_points(resource, half)
        send(address, of, sent, is_grpc)
    counts = {kind: len(records) for kind, records in sent.items()}
    assert all(it == count for it in counts.values()), counts
    while by_http.lacks(sent) or by_grpc.lacks(sent):
        if time.monotonic() > DEADLINE:
            break
        time.sleep(0.05)
    for arrived in (by_http, by_grpc):
        compare(sent, arrived)
    server.stop(None)
    print(json.dumps(counts))


main()
