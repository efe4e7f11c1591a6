#!/usr/bin/env python3
"""Runs `baler verify` many times and keeps what it says; called by scripts/verify."""

import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import threading
import time

PROCESSES = [
    "producer-term",
    "producer-kill",
    "consumer-term",
    "consumer-kill",
    "consumer-slow",
    "poison",
    "overflow",
]
BROKER = ["broker-down-at-start", "broker-restart", "broker-kill"]
NETWORK = ["stall", "half-open", "reset", "slow-link"]
DISK = ["disk-full", "torn-write"]

# What each endpoint can have, its share of the runs, and its weight in the records.
ENDPOINTS = {
    "tcp": ("tcp:", PROCESSES + BROKER + NETWORK, 0.30, 40),
    "file": ("file:", PROCESSES + DISK, 0.25, 60),
    "kafka": (
        "kafka+mock:",
        PROCESSES
        + BROKER
        + NETWORK
        + ["leader-move", "coordinator-move", "request-errors", "throttle", "rebalance"],
        0.25,
        1,
    ),
    "amqp": (
        "amqp+private:",
        PROCESSES + BROKER + NETWORK + ["connection-closed", "blocked", "rebalance"],
        0.20,
        1,
    ),
}
# Exact values of a run whose promise held.
ZERO = [
    "missing",
    "spurious",
    "altered",
    "duplicates_within_reader",
    "quarantine_errors",
]
TOLD = [
    "offered",
    "acknowledged",
    "delivered",
    *ZERO,
    "out_of_order",
    "duplicates_across_readers",
    "spooled",
    "in_doubt",
    "quarantined",
]


def campaign(args):
    """The command lines of a campaign: every fault in turn, two or three in a run."""
    draw = random.Random(args.seed)
    names = args.only.split(",") if args.only else list(ENDPOINTS)
    shares = {name: ENDPOINTS[name][2] for name in names}
    whole = sum(shares.values())
    counts = {name: round(args.runs * share / whole) for name, share in shares.items()}
    weights = {name: counts[name] * ENDPOINTS[name][3] for name in names}
    weight = sum(weights.values())
    runs, seed = [], args.seed
    for name in names:
        uri, faults, _, _ = ENDPOINTS[name]
        records = max(20_000, round(args.records * weights[name] / weight / counts[name]))
        waiting = []
        for number in range(counts[name]):
            spool = name != "file" and number % 3 == 2
            chosen = []
            while len(chosen) < 3:
                if not waiting:
                    waiting = draw.sample(faults, len(faults))
                fault = waiting.pop()
                if fault not in chosen:
                    chosen.append(fault)
            flags = ["--spool"] if spool else []
            if spool:
                chosen.append(DISK[number // 3 % 2])
            flags += ["--producers", str(draw.choice([1, 2, 3]))]
            flags += ["--consumers", str(draw.choice([1, 2, 4]))]
            flags += ["--threads", str(draw.choice([1, 2, 4]))]
            flags += ["--compression", draw.choice(["none", "lz4", "zstd"])]
            runs.append((name, [uri, seed, records, ",".join(chosen), flags]))
            seed += 1
    # Runs of all endpoints side by side, so that a campaign that is cut short saw them all.
    draw.shuffle(runs)
    return runs


def matrix(args):
    """The command lines of the bounce matrix."""
    bounces = {
        "clean": {
            "broker": "broker-restart",
            "producer": "producer-term",
            "consumer": "consumer-term",
        },
        "hard": {"broker": "broker-kill", "producer": "producer-kill", "consumer": "consumer-kill"},
    }
    runs, seed = [], args.seed
    for medium in ["kafka", "amqp", "tcp"]:
        for how, who in bounces.items():
            for whom, fault in who.items():
                uri = ENDPOINTS[medium][0]
                flags = ["--rounds", "3"]
                runs.append((f"{medium} {whom} {how}", [uri, seed, 60_000, fault, flags]))
                seed += 1
    return runs


def arguments(call):
    """What the program is called with."""
    uri, seed, records, faults, flags = call
    command = ["verify", "--to", uri, "--seed", str(seed), "--records", str(records)]
    return [*command, "--faults", faults, *flags, "--format", "json"]


def told(call):
    """How a run is named in results."""
    return "baler " + " ".join(arguments(call))


def run(binary, name, call):
    """One run: what was called, how it ended, what it said."""
    command = arguments(call)
    started = time.time()
    try:
        done = subprocess.run(
            [binary, *command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        code, out, err = done.returncode, done.stdout, done.stderr
    except subprocess.TimeoutExpired:
        code, out, err = "timeout", "", ""
    line = {
        "run": name,
        "command": told(call),
        "code": code,
        "started": round(started, 3),
        "wall_seconds": round(time.time() - started, 3),
    }
    try:
        line["result"] = json.loads(out)
    except ValueError:
        line["error"] = err[-2000:]
    return line


def table(kind, lines, binary):
    """What the runs saw, as Markdown."""
    version = subprocess.run([binary, "--version"], capture_output=True, text=True, check=False)
    judged = [line for line in lines if "result" in line]
    held = [line for line in judged if line["code"] == 0]
    total = {name: sum(line["result"][name] for line in judged) for name in TOLD}
    records = sum(line["result"]["delivered"] for line in judged)
    text = [
        f"# baler verify: {kind}",
        "",
        f"{version.stdout.strip()}, {os.cpu_count()} processors, by `scripts/verify {kind}`.",
        f"{len(lines)} runs, {len(judged)} judged, {len(held)} held, {records:,} records delivered.",
        "`out_of_order` counts where several consumers share a RabbitMQ queue, too, to whom no order is",
        "promised; elsewhere a run with any does not hold.",
        f"The documents are in `verify-{kind}.jsonl`, one run a line with its command.",
        "",
    ]
    groups = {}
    for line in judged:
        groups.setdefault(line["run"], []).append(line)
    transport = ["duplicates", "redelivered", "resent"]
    text.append("| run | runs | held | " + " | ".join(TOLD + transport) + " | dropped |")
    text.append("|---|" + "---:|" * (len(TOLD) + len(transport) + 3))
    for name, group in [*groups.items(), ("all", judged)]:
        cells = [f"{sum(line['result'][it] for line in group):,}" for it in TOLD]
        cells += [f"{sum(line['result']['transport'][it] for line in group):,}" for it in transport]
        dropped = sum(sum(line["result"]["dropped"].values()) for line in group)
        good = sum(line["code"] == 0 for line in group)
        seeds = f" (seed {group[0]['result']['seed']})" if kind == "matrix" and name != "all" else ""
        text.append(
            f"| {name}{seeds} | {len(group)} | {good} | " + " | ".join(cells) + f" | {dropped:,} |"
        )
    text += ["", "Faults injected:", ""]
    kinds = sorted({fault for line in judged for fault in line["result"]["faults"]})
    ends = sorted({line["result"]["endpoint"] for line in judged})
    text.append("| fault | " + " | ".join(f"`{end}`" for end in ends) + " |")
    text.append("|---|" + "---:|" * len(ends))
    for fault in kinds:
        counts = [
            sum(
                line["result"]["faults"].get(fault, 0)
                for line in judged
                if line["result"]["endpoint"] == end
            )
            for end in ends
        ]
        text.append(f"| {fault} | " + " | ".join(map(str, counts)) + " |")
    bad = [line for line in lines if line["code"] != 0]
    if bad:
        text += ["", "Runs that did not end with 0:", ""]
    for line in bad:
        why = line.get("result", {}).get("violations") or line.get("error", "").strip()
        text.append(f"- `{line['command']}`: code {line['code']}: {why}")
    seeds = sorted({line["result"]["seed"] for line in judged})
    if seeds:
        text += ["", f"Seeds: {', '.join(ranges(seeds))}."]
    assert all(total[name] >= 0 for name in ZERO)
    return "\n".join(text) + "\n"


def ranges(numbers):
    """`1 to 3`, `7`: numbers in order, those that follow on each other together."""
    groups = []
    for number in numbers:
        if groups and number == groups[-1][1] + 1:
            groups[-1][1] = number
        else:
            groups.append([number, number])
    return [str(a) if a == b else f"{a} to {b}" for a, b in groups]


def kept(raw, runs):
    """The runs that a folder has from before, but for those that are run again."""
    if not raw.exists():
        return []
    again = {told(call) for _, call in runs}
    lines = []
    for number, text in enumerate(raw.read_text(encoding="utf-8").splitlines(), 1):
        try:
            line = json.loads(text)
        except ValueError as error:
            sys.exit(f"{raw}, line {number}: {error}; take it out, or choose another --out")
        if line["command"] not in again:
            lines.append(line)
    return lines


def machine():
    """`2core-intel` or, for processors of AMD, `2core-epyc`: the name of the folder."""
    cpu = "cpu"
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            words = re.sub(r"\(.*?\)", "", line.split(":")[1]).lower().split()
            cpu = next((it for it in words if it != "amd"), cpu)
            break
    return f"{os.cpu_count()}core-{cpu}"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["campaign", "matrix"])
    parser.add_argument("--binary", required=True)
    parser.add_argument("--out")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--records", type=int, default=50_000_000)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--only")
    args = parser.parse_args()
    runs = campaign(args) if args.kind == "campaign" else matrix(args)
    out = pathlib.Path(args.out or f"benches/results/{machine()}")
    out.mkdir(parents=True, exist_ok=True)
    raw = out / f"verify-{args.kind}.jsonl"
    lines, lock = kept(raw, runs), threading.Lock()
    before = len(lines)
    # Replaced at once: whoever interrupts this finds the one file or the other, whole.
    new = raw.with_suffix(".new")
    new.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    new.replace(raw)
    with (
        raw.open("a", encoding="utf-8") as file,
        concurrent.futures.ThreadPoolExecutor(args.jobs) as pool,
    ):

        def work(job):
            line = run(args.binary, *job)
            with lock:
                lines.append(line)
                file.write(json.dumps(line) + "\n")
                file.flush()
                done = f"{len(lines) - before}/{len(runs)}"
                print(done, line["code"], f"{line['wall_seconds']:.1f}s", line["command"], flush=True)
                if line["code"] != 0:
                    why = line.get("result", {}).get("violations") or line.get("error")
                    print("   ", why, flush=True)
                report = table(args.kind, lines, args.binary)
                (out / f"verify-{args.kind}.md").write_text(report, encoding="utf-8")

        list(pool.map(work, runs))
    return 0 if all(line["code"] == 0 for line in lines[before:]) else 1


if __name__ == "__main__":
    sys.exit(main())
