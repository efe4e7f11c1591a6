#!/usr/bin/env python3
"""Measures how Baler takes spans of OTLP, beside rotel if it is there; called by `scripts/study otlp`.

sender (in this process) -> OTLP/HTTP -> relay, or rotel -> nothing, files or Kafka

The sender's requests are made before. A run takes the CPU time of the program under test alone, from
its start to its end. Runs of the programs take turns; each figure is the median of all runs.
"""

import argparse
import gzip
import http.client
import itertools
import json
import os
import pathlib
import random
import shutil
import statistics
import tempfile
import threading
import time

import pyarrow
from measure import address, use
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

# The requests differ, but the same ones come again: making them takes longer than sending them.
DIFFERENT = 64
CONNECTIONS = 4
OPERATIONS = [f"{verb} /api/{noun}" for verb in ("GET", "POST") for noun in
              ("carts", "orders", "items", "users", "prices", "stocks", "offers", "reviews")]


def request(spans, seed, ids):
    """A request of this number of spans, 16 a trace, as a web service makes them."""
    chance = random.Random(seed)
    number = itertools.count(2 * seed * spans + 1)

    def identity(size):
        return chance.randbytes(size) if ids == "random" else next(number).to_bytes(size, "big")

    message = ExportTraceServiceRequest()
    source = message.resource_spans.add()
    for key, value in ("service.name", "shop"), ("host.name", "node-7"):
        source.resource.attributes.add(key=key).value.string_value = value
    scope = source.scope_spans.add()
    scope.scope.name = "shop.web"
    now = 1_700_000_000_000_000_000 + seed * 1_000_000_000
    for position in range(spans):
        if position % 16 == 0:
            trace, parent = identity(16), b""
        span = scope.spans.add(
            trace_id=trace, span_id=identity(8), parent_span_id=parent,
            name=chance.choice(OPERATIONS), kind=2,
        )
        parent = parent or span.span_id
        now += chance.randrange(1_000, 2_000_000)
        span.start_time_unix_nano = now
        span.end_time_unix_nano = now + chance.randrange(10_000, 50_000_000)
        for key, value in (("http.request.method", span.name.split()[0]),
                           ("url.path", f"{span.name.split()[1]}/{chance.randrange(1000)}"),
                           ("server.address", "shop.example")):
            span.attributes.add(key=key).value.string_value = value
        for key, value in (("http.response.status_code", chance.choice((200, 200, 200, 404))),
                           ("thread.id", chance.randrange(16))):
            span.attributes.add(key=key).value.int_value = value
    return message.SerializeToString()


def send(port, bodies, requests):
    """Sends requests over several connections. Returns those that were not accepted whole."""
    numbers, refused = iter(range(requests)), []

    def run():
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        for number in numbers:
            connection.request("POST", "/v1/traces", bodies[number % len(bodies)],
                               {"Content-Type": "application/x-protobuf"})
            answer = connection.getresponse()
            text = answer.read()
            if answer.status != 200 or text:
                refused.append((answer.status, text))

    threads = [threading.Thread(target=run) for _ in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return refused


def cpu(command, port_of, bodies, requests):
    """Runs a program while requests are sent to it. Returns its CPU seconds and its output."""
    def feed(process):
        refused = send(port_of(process), bodies, requests)
        assert not refused, f"{len(refused)} requests were not accepted: {refused[0]}"

    used = use(command, feed, terminate=True)
    return used.cpu, used.output


def relay(program, target, bodies, requests, spans):
    """The CPU seconds of a relay to this target, which must forward every span."""
    folder = tempfile.mkdtemp()
    file = pathlib.Path(folder, "port")

    def port_of(process):
        return int(address(file, process).rsplit(":", 1)[1])

    command = [program, "relay", "--from", "otlp+http://127.0.0.1:0", "--to", target,
               "--port-file", str(file), "--format", "json"]
    seconds, text = cpu(command, port_of, bodies, requests)
    shutil.rmtree(folder)
    summary = json.loads(text)
    assert summary["forwarded"] == summary["received"] >= requests, summary
    return seconds


def rotel(program, broker, topic, bodies, requests, spans):
    """The CPU seconds of rotel, which sends to Kafka."""
    port = 14318

    def port_of(process):
        while True:
            assert process.poll() is None, "rotel has ended"
            try:
                http.client.HTTPConnection("127.0.0.1", port, timeout=1).connect()
                return port
            except OSError:
                time.sleep(0.01)

    command = [program, "start", "--otlp-http-endpoint", f"127.0.0.1:{port}",
               "--otlp-grpc-endpoint", "127.0.0.1:14317", "--exporter", "kafka",
               "--kafka-exporter-brokers", broker, "--kafka-exporter-traces-topic", topic,
               "--kafka-exporter-compression", "zstd", "--kafka-exporter-acks", "all",
               # Before compression. It drops larger messages, and its batches are 1.8 MB.
               "--kafka-exporter-max-message-bytes", "8000000"]
    seconds, _ = cpu(command, port_of, bodies, requests)
    return seconds


def show(title, row):
    print(title)
    for name, value in row.items():
        print(f"  {name:<34}{value:>14,.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True, help="Baler's program, with the feature otlp")
    parser.add_argument("--out", required=True, type=pathlib.Path, help="the folder of the results")
    parser.add_argument("--spans", type=int, default=1_000_000, help="in a run [default: 1 million]")
    parser.add_argument("--runs", type=int, default=5, help="of each program [default: 5]")
    parser.add_argument("--rotel", default=shutil.which("rotel-agent"), help="its program, `rotel-agent`")
    arguments = parser.parse_args()
    broker, log = os.environ.get("KAFKA_BOOTSTRAP"), os.environ.get("KAFKA_LOG_DIR")
    results = {}
    for ids in "counted", "random":
        for size in 512, 4_096:
            bodies = [request(size, seed, ids) for seed in range(DIFFERENT)]
            title, row = f"{ids} ids, {size} spans a request", {}
            spans = DIFFERENT * size
            row["OTLP, bytes a span"] = sum(map(len, bodies)) / spans
            row["OTLP with gzip"] = sum(len(gzip.compress(it, 6)) for it in bodies) / spans
            zstd = pyarrow.Codec("zstd", compression_level=3)
            row["OTLP with zstd"] = sum(len(zstd.compress(it)) for it in bodies) / spans
            with tempfile.TemporaryDirectory() as folder:
                relay(arguments.program, f"file://{folder}", bodies, DIFFERENT, size)
                chunks = [it.read_bytes() for it in pathlib.Path(folder).rglob("*") if it.is_file()]
            row["chunks"] = sum(map(len, chunks)) / spans
            row["chunks with zstd"] = sum(len(zstd.compress(it)) for it in chunks) / spans
            requests = arguments.spans // size
            runs = [relay(arguments.program, "null:", bodies, requests, size)
                    for _ in range(arguments.runs)]
            row["spans a CPU second into chunks"] = requests * size / statistics.median(runs)
            results[title] = row
            show(title, row)
    if broker:
        bodies = [request(512, seed, "counted") for seed in range(DIFFERENT)]
        requests, row = arguments.spans // 512, {}
        seconds = {"Baler": [], "rotel": []}
        for run in range(arguments.runs):
            topics = {name: f"otlp-{name.lower()}-{os.getpid()}-{run}" for name in seconds}
            seconds["Baler"].append(relay(
                arguments.program, f"kafka://{broker}/{topics['Baler']}?compression.type=zstd",
                bodies, requests, 512))
            if arguments.rotel:
                seconds["rotel"].append(
                    rotel(arguments.rotel, broker, topics["rotel"], bodies, requests, 512))
            time.sleep(1)
            for name, topic in topics.items():
                files = log and pathlib.Path(log).glob(f"{topic}-*/*.log")
                stored = sum(it.stat().st_size for it in files or ())
                if stored:
                    row[f"{name}, stored bytes a span"] = stored / (requests * 512)
        for name, values in seconds.items():
            if values:
                row[f"{name}, CPU s"] = statistics.median(values)
        title = "to Kafka, counted ids, 512 spans a request"
        results[title] = row
        show(title, row)
    else:
        print("Kafka is left out: KAFKA_BOOTSTRAP names no broker")
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "otlp.json").write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
