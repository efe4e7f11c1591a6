#!/usr/bin/env python3
"""Kills sender, relay and receiver while records pass, with every sink; called by scripts/verify.

generate -> folder -> sender (relay) -> TCP -> relay -> TCP -> receiver -> sink

The sender, the relay and the receiver are killed (SIGKILL) at seeded moments and started again with
the same command. Afterwards the sink must hold exactly the records of the folder. Copies are
allowed where they are the same record, by identity where the sink writes it.
"""

import argparse
import collections
import csv
import glob
import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time

SINKS = ["json", "csv", "parquet", "file"]
FIELDS = ["operationSignature", "sessionId", "traceId", "tin", "tout", "hostname", "eoi", "ess"]
# What a part may need to do its rest after the last kill, on a busy machine.
PATIENCE = 120


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Part:
    """A process that is started again whenever it is killed."""

    def __init__(self, command, log):
        self.command = command
        self.log = open(log, "ab")
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            self.command, stdout=subprocess.DEVNULL, stderr=self.log
        )

    def kill(self):
        """Kills it; whether it was alive."""
        alive = self.process.poll() is None
        self.process.kill()
        self.process.wait()
        self.start()
        return alive

    def end(self, ask):
        if ask:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)


def row(record):
    """A record as a row of texts."""
    fields = record["fields"]
    return (str(record["timestamp"]), *(str(fields[name]) for name in FIELDS))


def json_lines(path):
    """The whole lines of a file; a killed receiver may leave half a line in FILE.torn."""
    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def identity(record):
    of = record["identity"]
    return (of["producer"], of["epoch"], of["lane"], of["sequence"], of["index"])


def stored(binary, folder):
    """The records of a folder of chunks."""
    command = [binary, "receive", "--from", f"file://{folder}", "--format", "json", "--identity"]
    output = subprocess.run(command, capture_output=True, check=True).stdout
    return [json.loads(line) for line in output.splitlines()]


def found(binary, sink, output):
    """The rows of a sink with their identity, or None where the sink writes none."""
    if sink == "json":
        return [(identity(record), row(record)) for record in json_lines(output)]
    if sink == "file":
        return [(identity(record), row(record)) for record in stored(binary, output)]
    if sink == "csv":
        rows = []
        for path in glob.glob(f"{output}/*.csv"):
            with open(path, encoding="utf-8", newline="") as lines:
                reader = csv.DictReader(lines)
                for line in reader:
                    rows.append((None, (line["(timestamp)"], *(line[name] for name in FIELDS))))
        return rows
    import duckdb  # only for Parquet: scripts/verify installs it

    files = f"{output}/**/*.parquet"
    if not glob.glob(files, recursive=True):
        return []
    times = ("_timestamp", "tin", "tout")
    number = lambda name: f"epoch_ns({name})" if name in times else name
    values = ", ".join(f"{number(name)}::VARCHAR" for name in ("_timestamp", *FIELDS))
    query = f"""SELECT _producer, _epoch, _lane, _sequence, _index, {values}
        FROM read_parquet('{files}')"""
    return [(tuple(line[:5]), tuple(line[5:])) for line in duckdb.sql(query).fetchall()]


def run(binary, seed, sink, records, kills, folder):
    """One run; its result as a dictionary."""
    chance = random.Random(seed)
    path = lambda name: os.path.join(folder, name)
    ports = [free_port(), free_port()]
    output = path("out")
    receive = [binary, "receive", "--from", f"tcp://127.0.0.1:{ports[1]}", "--output", output]
    receiver = {
        "json": receive + ["--format", "json", "--identity"],
        "csv": receive + ["--format", "csv"],
        "parquet": receive + ["--format", "parquet", "--identity"],
        "file": [binary, "relay", "--from", f"tcp://127.0.0.1:{ports[1]}", "--to", f"file://{output}"],
    }[sink]
    relay = [
        *(binary, "relay", "--from", f"tcp://127.0.0.1:{ports[0]}"),
        *("--to", f"tcp://127.0.0.1:{ports[1]}"),
    ]
    sender = [
        *(binary, "relay", "--from", f"file://{path('source')}?consumer=kills", "--follow"),
        *("--to", f"tcp://127.0.0.1:{ports[0]}", "--idle-timeout", "3s", "--give-up", f"{PATIENCE}s"),
    ]
    rate = records // 3
    generate = subprocess.Popen(
        [
            *(binary, "generate", "--to", f"file://{path('source')}", "--records", str(records)),
            *("--rate", str(rate), "--chunk-records", "50", "--seed", str(seed)),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while not glob.glob(path("source/*")):
        time.sleep(0.01)
    parts = {
        "receiver": Part(receiver, path("receiver.log")),
        "relay": Part(relay, path("relay.log")),
        "sender": Part(sender, path("sender.log")),
    }
    moments = sorted(chance.uniform(0.05, 3.0) for _ in range(kills))
    began = time.monotonic()
    killed = collections.Counter()
    for moment in moments:
        time.sleep(max(0.0, began + moment - time.monotonic()))
        name = chance.choice(sorted(parts))
        if parts[name].kill():
            killed[name] += 1
    made = generate.wait(PATIENCE)
    # The sender ends when everything is confirmed, the others are asked to.
    codes = {name: parts[name].end(name != "sender") for name in ("sender", "relay", "receiver")}
    expected = {identity(record): row(record) for record in stored(binary, path("source"))}
    rows = found(binary, sink, output)
    got = collections.Counter(rows)
    if sink == "csv":
        wanted = {(None, content) for content in expected.values()}
    else:
        wanted = set(expected.items())
    return {
        "seed": seed,
        "sink": sink,
        "killed": dict(killed),
        "records": len(expected),
        "made": made,
        "codes": codes,
        "missing": len(wanted - set(got)),
        "spurious": len(set(got) - wanted),
        "copies": len(rows) - len(got),
    }


def is_exact(result, records):
    return (
        result["missing"] == result["spurious"] == result["made"] == 0
        and result["records"] == records
        and all(code == 0 for code in result["codes"].values())
    )


def main():
    parser = argparse.ArgumentParser(prog="scripts/verify kills", description=__doc__)
    parser.add_argument("--binary", required=True, help="the program")
    parser.add_argument("--kills", type=int, default=300, help="kills of all runs together")
    parser.add_argument("--each", type=int, default=6, help="kills of a run")
    parser.add_argument("--records", type=int, default=60_000, help="records of a run")
    parser.add_argument("--seed", type=int, default=1_000, help="seed of the first run")
    parser.add_argument("--sink", choices=SINKS, action="append", help="these sinks alone")
    args = parser.parse_args()
    sinks = args.sink or SINKS
    killed, bad, seed, copies = 0, 0, args.seed, 0
    while killed < args.kills:
        sink = sinks[seed % len(sinks)]
        with tempfile.TemporaryDirectory(prefix="baler-kills-") as folder:
            result = run(args.binary, seed, sink, args.records, args.each, folder)
            if not is_exact(result, args.records):
                bad += 1
                for log in pathlib.Path(folder).glob("*.log"):
                    print(f"{log.name}: {log.read_text()[-2000:]}", file=sys.stderr)
        print(json.dumps(result), flush=True)
        killed += sum(result["killed"].values())
        copies += result["copies"]
        seed += 1
    runs = seed - args.seed
    print(f"{runs} runs, {killed} kills, {copies} copies; {bad} runs are not exact")
    sys.exit(1 if bad else 0)


main()
