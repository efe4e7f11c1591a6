#!/usr/bin/env python3
"""Measures Baler beside its peers, figure by figure; called by `scripts/study peers`.

Each round measures every figure once, and its peer right after it or right before. A figure is the
median of all rounds. CPU time is that of the program under test alone, from its start to its end.
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

from measure import address, use
from verify import machine

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What a result of `baler sweep` says about its machine and program.
ORIGIN = ["machine", "commit", "optimised", "unix_seconds"]
LINES, EXECUTIONS, ANALYZED, RELAYED = 1_000_000, 2_000_000, 1_100_000, 10_000_000


class Figure(NamedTuple):
    """A line of the table. `goal` is the least value, or the greatest of a figure to be small."""

    key: str
    what: str
    unit: str
    peer: str
    goal: float
    is_small: bool = True


CPU, MILLION, RATE, TIMES, NS = "CPU s", "CPU s/M", "M/CPU s", "times", "ns/record"
FIGURES = [
    Figure("json send", "1 M JSON lines to Kafka, zstd", CPU, "kcat -P", 2.0),
    Figure("json stored", "... stored by the broker", "MB", "kcat -P", 25),
    Figure("json receive", "... back as JSON lines", CPU, "kcat -C", 1.6),
    Figure("text", "Kieker's text log -> receive", RATE, "Kieker", 4, False),
    Figure("binary", "Kieker's binary log -> receive", RATE, "Kieker", 10, False),
    Figure("tcp", "Kieker's TCP -> receive", RATE, "Kieker", 8, False),
    Figure("relay text", "Kieker's text log -> relay --to null:", RATE, "", 5, False),
    Figure("kieker 32", "Kieker's container at 32 to RabbitMQ", MILLION, "Kieker", 0.45),
    Figure("kieker 1024", "Kieker's container at 1,024 to RabbitMQ", MILLION, "Kieker", 0.25),
    Figure("amqp 32", "chunks of 32 to RabbitMQ, by single messages", TIMES, "", 15, False),
    Figure("kafka 32", "chunks of 32 to Kafka, by single messages", TIMES, "", 5, False),
    Figure("kafka 1024", "chunks of 1,024 to Kafka, by single messages", TIMES, "", 12, False),
    Figure("probe", "a probe by two clock reads: median", TIMES, "", 1.2),
    Figure("probe mean", "... mean at full blast, lossless", TIMES, "", 1.4),
    Figure("emit", "emit of eight flat fields, without clock", NS, "", 15),
    Figure("encode", "encode at 1,024", NS, "postcard", 16),
    Figure("decode", "decode at 1,024 to columns", NS, "", 8),
    Figure("rows", "... to rows", NS, "postcard", 11),
    Figure("executions", "analyze executions", RATE, "", 2, False),
    Figure("classes", "... memory, 110,000 classes of traces", "MB", "", 150),
    Figure("events", "analyze events", RATE, "", 2, False),
    Figure("relay", "relay TCP -> Kafka, chunks of 1,024", MILLION, "", 0.03),
]


class Peers:
    """What the measurements share: programs, corpora, brokers."""

    def __init__(self, arguments):
        self.program = arguments.program
        self.benches = arguments.program.parent
        self.scale = 100 if arguments.quick else 1
        self.is_quick = arguments.quick
        self.amqp = arguments.amqp
        self.kcat = shutil.which("kcat")
        self.kieker = os.environ.get("KIEKER_JAR")
        self.kafka = os.environ.get("KAFKA_BOOTSTRAP")
        self.log_dir = os.environ.get("KAFKA_LOG_DIR")
        self.mock = None
        self.origin = {}
        self.run = 0
        self.missing = []
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="peers-", dir=arguments.corpora))
        self.corpora = arguments.corpora / ("quick" if arguments.quick else "full")

    def say_what_is_missing(self):
        if not self.kcat:
            self.missing.append("kcat is not installed: apt-get install kcat")
        if not self.kieker:
            self.missing.append("Kieker is not there: KIEKER_JAR names no jar")
        if not self.kafka:
            self.missing.append("Kafka is librdkafka's mock, which stores too little to read it "
                                "back: KAFKA_BOOTSTRAP names no broker")
        elif not self.log_dir:
            self.missing.append("stored bytes are unknown: KAFKA_LOG_DIR names no folder")
        if not self.amqp:
            self.missing.append("RabbitMQ is not there: scripts/study starts a node")
        for name in "overhead", "codec":
            if not (self.benches / name).exists():
                self.missing.append(f"{name} is not beside the program: "
                                    "cargo build --profile dist -p baler-benches")
        for line in self.missing:
            print(f"peers: {line}", file=sys.stderr)

    def close(self):
        if self.mock:
            self.mock.kill()
            self.mock.wait()
        shutil.rmtree(self.work)

    def broker(self):
        """The broker's address. A reader holds the mock cluster, and nobody counts its CPU time."""
        file = self.work / "mock"
        if not self.kafka and not self.mock:
            self.mock = subprocess.Popen(
                [self.program, "receive", "--from", "kafka+mock:peers", "--format", "none",
                 "--port-file", file], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return self.kafka or address(file, self.mock)

    def topic(self, name):
        """A topic of its own for each run of a real broker: the mock has one."""
        return f"peers-{name}-{os.getpid()}-{self.run}" if self.kafka else "peers"

    def stored(self, topic):
        files = pathlib.Path(self.log_dir).glob(f"{topic}-*/*.log") if self.log_dir else ()
        return sum(it.stat().st_size for it in files) / 1e6 or None

    def both(self, ours, theirs):
        """Runs both, in turns first."""
        if theirs is None:
            return ours(), None
        if self.run % 2:
            peer = theirs()
            return ours(), peer
        return ours(), theirs()

    def corpus(self, name, make):
        """A file or folder that `make` fills once."""
        path = self.corpora / name
        if not path.exists():
            print(f"peers: making {path}", file=sys.stderr)
            new = path.with_suffix(".new")
            shutil.rmtree(new, ignore_errors=True)
            path.parent.mkdir(parents=True, exist_ok=True)
            make(new)
            new.rename(path)
        return path


# Corpora: the same bytes each time.


def json_lines(number):
    """Logs of an application: two lines a request, 287 bytes a line on average."""
    chance = random.Random(1)
    services = ["checkout", "catalogue", "payment", "shipping", "accounts"]
    levels = ["info"] * 8 + ["warn", "error"]
    nouns = ["carts", "orders", "items", "users", "prices", "stocks", "offers", "reviews"]
    for line in range(number):
        if line % 2 == 0:
            method, noun = chance.choice(("GET", "POST")), chance.choice(nouns)
            path, trace = f"/api/{noun}/{chance.randrange(10_000)}", f"{chance.getrandbits(64):016x}"
            user, host = chance.randrange(5_000), chance.randrange(12)
            thread = chance.randrange(64)
        took, size = chance.expovariate(1 / 40), chance.randrange(20_000)
        seconds, millis = divmod(line // 3, 1000)
        clock = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(1_767_225_600 + seconds))
        yield (f'{{"time":"{clock}.{millis:03}Z","level":"{chance.choice(levels)}",'
               f'"service":"{chance.choice(services)}","host":"node-{host}",'
               f'"thread":{thread},"trace":"{trace}",'
               f'"message":"{method} {path} took {took:.0f} ms","http":{{"method":"{method}",'
               f'"path":"{path}","status":{chance.choice((200, 200, 200, 404))},'
               f'"bytes":{size}}},"took_ms":{took:.3f},"customer":"user-{user}"}}\n')


def calls(number):
    """Traces of about ten calls, each of a class of its own: (trace, signature, start, end, number, depth), as they end."""
    chance, trace, now, made = random.Random(1), 0, 1_700_000_000_000_000_000, 0
    while made < number:
        trace += 1
        size, open_calls, ended, order = min(chance.randrange(5, 16), number - made), [], [], 0
        while len(ended) < size:
            now += chance.randrange(100, 20_000)
            enters = not open_calls or (len(open_calls) < 6 and chance.random() < 0.5)
            if order < size and (enters or len(open_calls) == 1):
                operation = int(200 * chance.random() ** 2)
                open_calls.append((operation, now, order, len(open_calls)))
                order += 1
            else:
                operation, start, place, depth = open_calls.pop()
                ended.append((trace, SIGNATURES[operation], start, now, place, depth))
        made += size
        yield ended


SIGNATURES = [f"public java.lang.String org.shop.part{it % 7}.Service{it % 40}.call{it}"
              "(int, java.lang.String)" for it in range(200)]


def write_log(folder, types, lines):
    """A text log as Kieker's FileWriter writes it."""
    inner = folder / "kieker-20260101-000000-1-UTC--KIEKER"
    inner.mkdir(parents=True)
    prefix = "kieker.common.record."
    (inner / "kieker.map").write_text("".join(f"${at}={prefix}{it}\n" for at, it in enumerate(types)))
    with (inner / "kieker-20260101-000000-UTC-001.dat").open("w", encoding="ascii") as file:
        file.writelines(lines)


def executions(folder, number):
    def lines():
        for ended in calls(number):
            for trace, signature, start, end, place, depth in ended:
                yield (f"$0;{end};{signature};session-{trace % 50};{trace};{start};{end};node-7;"
                       f"{place};{depth}\n")

    write_log(folder, ["controlflow.OperationExecutionRecord"], lines())


def events(folder, number):
    def lines():
        for ended in calls(number // 2):
            trace = ended[0][0]
            yield f"$0;{ended[-1][2]};{trace};1;session-{trace % 50};node-7;-1;-1\n"
            both = sorted([(it[2], "$1", it[1]) for it in ended] + [(it[3], "$2", it[1]) for it in ended])
            for order, (at, kind, signature) in enumerate(both):
                class_name = signature.split("(")[0].split()[-1].rsplit(".", 1)[0]
                yield f"{kind};{at};{at};{trace};{order};{signature};{class_name}\n"

    write_log(folder, ["flow.trace.TraceMetadata", "flow.trace.operation.BeforeOperationEvent",
                       "flow.trace.operation.AfterOperationEvent"], lines())


def tcp_stream(peers, log, file):
    """The bytes of Kieker's TCP writer, taken from our own writer once."""
    with socket.create_server(("127.0.0.1", 0)) as server, file.open("wb") as out:
        def take(_):
            connection, _ = server.accept()
            while data := connection.recv(1 << 16):
                out.write(data)

        port = server.getsockname()[1]
        use([peers.program, "relay", "--from", f"kieker-log:{log}",
             "--to", f"kieker+tcp://127.0.0.1:{port}"], feed=take)


# Measurements: each returns figures, and with them those of peers if they are there.


def lines_and_kafka(peers):
    number = LINES // peers.scale

    def make(file):
        with file.open("w", encoding="ascii") as out:
            out.writelines(json_lines(number))

    lines, broker = peers.corpus("lines.jsonl", make), peers.broker()
    ours, theirs = peers.topic("baler"), peers.topic("kcat")

    def send():
        return use([peers.program, "send", "--from", f"jsonl:{lines}",
                    "--to", f"kafka://{broker}/{ours}", "--compression", "zstd"]).cpu

    def kcat():
        return use([peers.kcat, "-P", "-z", "zstd", "-b", broker, "-t", theirs, "-l", lines]).cpu

    found = {"json send": peers.both(send, kcat if peers.kcat else None)}
    if not peers.kafka:
        return found
    if peers.log_dir:
        found["json stored"] = (peers.stored(ours), peers.kcat and peers.stored(theirs))
    out = peers.work / "back.jsonl"

    def receive():
        return use([peers.program, "receive", "--from",
                    f"kafka://{broker}/{ours}?group.id={ours}&auto.offset.reset=earliest",
                    "--count", number, "--format", "lines", "--output", out, "--overwrite"]).cpu

    def kcat_back():
        with out.open("wb") as file:
            return use([peers.kcat, "-C", "-e", "-q", "-b", broker, "-t", theirs,
                        "-o", "beginning"], output=file).cpu

    found["json receive"] = peers.both(receive, kcat_back if peers.kcat else None)
    return found


def kieker_logs(peers):
    number = EXECUTIONS // peers.scale
    text = peers.corpus("text-log", lambda folder: executions(folder, number))
    binary = peers.corpus("binary-log", lambda folder: use(
        [peers.program, "relay", "--from", f"kieker-log:{text}",
         "--to", f"kieker-log:{folder}?format=binary"]))
    stream = peers.corpus("tcp-stream", lambda file: tcp_stream(peers, text, file))

    def rate(command, **how):
        return number / 1e6 / use(command, **how).cpu

    def log(folder):
        ours = [peers.program, "receive", "--from", f"kieker-log:{folder}", "--format", "none"]
        theirs = ["java", "-jar", peers.kieker, "log", folder]
        return peers.both(lambda: rate(ours), peers.kieker and (lambda: rate(theirs)))

    def feed(port):
        with socket.create_connection(("127.0.0.1", port)) as connection, stream.open("rb") as file:
            connection.sendfile(file)

    def tcp():
        file = peers.work / "port"
        file.unlink(missing_ok=True)
        return rate([peers.program, "receive", "--from", "kieker+tcp://127.0.0.1:0", "--format",
                     "none", "--count", number, "--port-file", file],
                    feed=lambda process: feed(int(address(file, process).rsplit(":", 1)[1])))

    def kieker_tcp():
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]

        def when_it_listens(process):
            while process.poll() is None:
                try:
                    return feed(port)
                except ConnectionRefusedError:
                    time.sleep(0.05)

        return rate(["java", "-jar", peers.kieker, "tcp", port], feed=when_it_listens)

    return {
        "text": log(text),
        "binary": log(binary),
        "tcp": peers.both(tcp, peers.kieker and kieker_tcp),
        "relay text": (rate([peers.program, "relay", "--from", f"kieker-log:{text}",
                             "--to", "null:"]), None),
    }


def sweep(peers, target, containers, sizes):
    """CPU seconds of the writing process for each million records, by way and chunk size."""
    folder = tempfile.mkdtemp(dir=peers.work)
    long = ["--warm-up", "200ms", "--seconds", 1] if peers.is_quick else ["--seconds", 2]
    command = [peers.program, "sweep", "--to", target, "--rate", "max", "--consumers", 0,
               "--container", containers, "--chunk-sizes", sizes, "--repetitions", 1, *long,
               "--seed", peers.run + 1, "--format", "json", "--results", folder]
    result = json.loads(use(command).output)
    found, peers.origin = {}, peers.origin or {name: result[name] for name in ORIGIN}
    for cell in result["cells"]:
        if cell["failure"]:
            raise RuntimeError(f"{target}: {cell['failure']}")
        million = cell["writer_cpu_seconds_per_second"]["mean"] / cell["achieved_rate"] * 1e6
        found[cell["way"], cell["chunk_records"]] = million
    return found


def rabbitmq(peers):
    if not peers.amqp:
        return {}

    def baler():
        return sweep(peers, f"{peers.amqp}?queue=peers-{peers.run}", "kieker,native", "32,1024")

    def kieker():
        few, many = EXECUTIONS // peers.scale, 3 * EXECUTIONS // peers.scale

        def cpu(number, size):
            return use(["java", "-jar", peers.kieker, "amqp", peers.amqp, "peers", number, size]).cpu

        # The difference is without the start of the virtual machine.
        return {size: (cpu(many, size) - cpu(few, size)) / (many - few) * 1e6 for size in (32, 1024)}

    million, theirs = peers.both(baler, peers.kieker and kieker)
    theirs = theirs or {}
    return {
        "kieker 32": (million["kieker", 32], theirs.get(32)),
        "kieker 1024": (million["kieker", 1024], theirs.get(1024)),
        "amqp 32": (million["pipelined", None] / million["baler", 32], None),
    }


def kafka(peers):
    target = f"kafka://{peers.kafka}/{peers.topic('sweep')}" if peers.kafka else "kafka+mock:peers"
    million = sweep(peers, target, "native", "32,1024")
    single = million["pipelined", None]
    return {f"kafka {size}": (single / million["baler", size], None) for size in (32, 1024)}


def rows(peers, name, *words):
    """The rows of a binary of benches/, which runs each case once."""
    quick = ["--quick"] if peers.is_quick else []
    command = [peers.benches / name, *words, *quick, "--repetitions", 1, "--format", "json"]
    found = json.loads(use([*command, "--seed", peers.run + 1]).output)
    for row in found:
        if row["failure"]:
            raise RuntimeError(f"{name}: {row['failure']}")
    return found


def probes(peers):
    if not (peers.benches / "overhead").exists():
        return {}
    found = rows(peers, "overhead", "--only", "none,clock,operation,emit-flat")
    found = {row["variant"]: row for row in found}
    return {
        "probe": (found["operation"]["times_clock"], None),
        "probe mean": (found["operation"]["mean_times_clock"], None),
        "emit": (found["emit-flat"]["over_none_ns"], None),
    }


def codec(peers):
    if not (peers.benches / "codec").exists():
        return {}
    found = rows(peers, "codec", "--only", "columnar", "--only", "postcard",
                 "--chunk-records", 1024, "--compression", "none")
    found = {row["codec"]: row for row in found}
    ours, theirs = found["columnar"], found["postcard"]
    return {
        "encode": (ours["encode_ns"], theirs["encode_ns"]),
        "decode": (ours["decode_ns"], None),
        "rows": (ours["rows_ns"], theirs["decode_ns"]),
    }


def analyze(peers):
    number = ANALYZED // peers.scale

    def used(name, make):
        log = peers.corpus(f"{name}-log", lambda folder: make(folder, number))
        chunks = peers.corpus(f"{name}-chunks", lambda folder: use(
            [peers.program, "send", "--from", f"kieker-log:{log}", "--to", f"file://{folder}"]))
        return use([peers.program, "analyze", "--from", f"file://{chunks}"])

    of_executions, of_events = used("executions", executions), used("events", events)
    return {
        "executions": (number / 1e6 / of_executions.cpu, None),
        # With the metadata of each trace, which are not counted.
        "events": (number / 1e6 / of_events.cpu, None),
        "classes": (of_executions.memory / 1e6, None),
    }


def relay(peers):
    number = RELAYED // peers.scale
    file = peers.work / "relay"
    file.unlink(missing_ok=True)

    def feed(process):
        use([peers.program, "generate", "--to", f"tcp://{address(file, process)}",
             "--records", number])

    used = use([peers.program, "relay", "--from", "tcp://127.0.0.1:0", "--port-file", file,
                "--to", f"kafka://{peers.broker()}/{peers.topic('relay')}", "--format", "json"],
               feed=feed, terminate=True)
    summary = json.loads(used.output)
    if summary["forwarded"] != summary["received"] or summary["received"] < number // 1024:
        raise RuntimeError(f"the relay has not forwarded everything: {summary}")
    return {"relay": (used.cpu * 1e6 / number, None)}


# The first one says on which machine, before the others load it.
MEASURES = [kafka, lines_and_kafka, kieker_logs, rabbitmq, probes, codec, analyze, relay]


# The result.


def spread(values):
    values = [it for it in values if it is not None]
    if not values:
        return None
    return {"median": statistics.median(values), "min": min(values), "max": max(values),
            "runs": len(values)}


def row(figure, found, is_quick):
    ours, theirs = spread(it[0] for it in found), spread(it[1] for it in found)
    met = None
    if ours and not is_quick:
        met = ours["median"] <= figure.goal if figure.is_small else ours["median"] >= figure.goal
    return {"what": figure.what, "unit": figure.unit, "baler": ours,
            "peer_name": figure.peer or None, "peer": theirs, "goal": figure.goal, "met": met}


def short(number):
    return f"{number:.3g}" if number < 1000 else f"{number:,.0f}"


def table(rows, notes):
    """Within 100 columns."""
    lines = [["what", "unit", "Baler", "min - max", "peer", "goal", ""]]
    for it in rows:
        ours, theirs = it["baler"], it["peer"]
        lines.append([it["what"], it["unit"], short(ours["median"]) if ours else "-",
                      f"{short(ours['min'])} - {short(ours['max'])}" if ours else "-",
                      short(theirs["median"]) if theirs else "-", short(it["goal"]),
                      {None: "-", True: "met", False: "missed"}[it["met"]]])
    lines = ["{:<44} {:<9} {:>6} {:>17} {:>6} {:>4} {}".format(*it).rstrip() for it in lines]
    names = ", ".join(sorted({it["peer_name"] for it in rows if it["peer"]})) or "none"
    return "\n".join([*lines, "", "M: a million records. The figures of Baler and its peer are medians.",
                      f"Peers that were measured: {names}.", *notes]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True, type=lambda it: pathlib.Path(it).resolve(),
                        help="Baler's program; overhead and codec of benches/ lie beside it")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "benches/results" / machine(),
                        help="the folder of the results [default: that of this machine]")
    parser.add_argument("--corpora", required=True, type=lambda it: pathlib.Path(it).resolve(),
                        help="the folder of the corpora, which are kept")
    parser.add_argument("--amqp", help="the URI of a RabbitMQ node, without a queue")
    parser.add_argument("--runs", type=int, help="of each figure [default: 5, with --quick 1]")
    parser.add_argument("--only", nargs="*", help="these measurements: " +
                        ", ".join(it.__name__ for it in MEASURES))
    parser.add_argument("--quick", action="store_true", help="figures mean nothing")
    arguments = parser.parse_args()
    arguments.corpora.mkdir(parents=True, exist_ok=True)
    peers = Peers(arguments)
    peers.say_what_is_missing()
    found = {figure.key: [] for figure in FIGURES}
    try:
        for peers.run in range(arguments.runs or (1 if arguments.quick else 5)):
            for measure in MEASURES:
                if not arguments.only or measure.__name__ in arguments.only:
                    print(f"peers: round {peers.run + 1}, {measure.__name__}", file=sys.stderr)
                    for key, pair in measure(peers).items():
                        found[key].append(pair)
    finally:
        peers.close()
    rows = [row(it, found[it.key], peers.is_quick) for it in FIGURES]
    text = table(rows, peers.missing)
    command = "scripts/study" + " --quick" * arguments.quick + " peers"
    result = {**peers.origin, "command": command, "kafka": "real" if peers.kafka else "mock",
              "missing": peers.missing, "rows": rows}
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "peers.json").write_text(json.dumps(result, indent=2) + "\n")
    (arguments.out / "peers.txt").write_text(text)
    print(text, end="")


if __name__ == "__main__":
    main()
