"""What a collector emits arrives, or is counted."""

import asyncio
import dataclasses
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import MappingProxyType
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from conftest import run

import baler
from baler.sending import send_table


def records(folder: Path, types: str) -> list[Any]:
    return list(baler.iter_records(folder, types))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "records"


VALUES: list[dict[str, Any]] = [
    {"ok": True, "n": 1, "x": 0.5, "text": "tea ä", "raw": b"\xff\x00", "tags": ["a", "b"]},
    {"ok": False, "n": -(2**63), "x": -1e300, "text": "", "raw": b"", "tags": []},
    {"ok": True, "n": 2**63 - 1, "x": 2.0, "text": "x" * 10_000, "raw": b"1", "tags": ("c",)},
]


def test_all_types_of_values_come_back(folder: Path) -> None:
    with baler.Collector(f"file:{folder}") as collector:
        for number, fields in enumerate(VALUES):
            assert collector.emit("shop.Order", number, **fields)
        assert collector.emit("shop.Big", 7, n=2**64 - 1, inner={"a": {"b": [None, 1]}}, none=None)
        account = collector.close()
    assert account["error"] is None and account["on_time"]
    assert account["emitted"] == account["delivered"] >= 4
    assert account["dropped"] == {}
    found = records(folder, "shop.Order")
    assert [record["timestamp"] for record in found] == [0, 1, 2]
    assert [record["fields"] for record in found] == [
        fields | {"tags": list(fields["tags"])} for fields in VALUES
    ]
    (big,) = records(folder, "Big")
    assert big["fields"] == {"n": 2**64 - 1, "inner": {"a": {"b": [None, 1]}}, "none": None}


def test_mappings_become_maps(folder: Path) -> None:
    attributes: list[dict[str, Any]] = [
        {"http.status": 200, "route": "/tea", "tags": ["a", {"b": None}], "load": 0.5, "raw": b"\xff"},
        {},
        {"ok": True, "none": None},
    ]
    counts: list[dict[str, int]] = [{"a": 1}, {"b": 2**62}, {}]
    with baler.Collector(f"file:{folder}") as collector:
        for one, other in zip(attributes, counts, strict=True):
            assert collector.emit(
                "shop.Span", attributes=MappingProxyType(one), counts=MappingProxyType(other)
            )
        # The type has maps by now.
        assert collector.emit("shop.Span", attributes={"dict": 1}, counts={"a": 2})
        with pytest.raises(TypeError):
            collector.emit("shop.Span", attributes=1, counts={})
    found = [record["fields"] for record in records(folder, "shop.Span")]
    assert [fields["attributes"] for fields in found] == [*attributes, {"dict": 1}]
    assert [fields["counts"] for fields in found] == [*counts, {"a": 2}]
    *_, spans = [pa.table(table) for table in baler.read(folder, "shop.Span")]
    assert spans.schema.field("counts").type == pa.map_(pa.string(), pa.field("value", pa.int64(), False))
    query = "SELECT attributes['http.status'], attributes['tags'], counts['a'] FROM spans"
    assert duckdb.execute(query).fetchall()[0] == ("200", '["a", {"b": null}]', 1)


def test_a_type_grows_with_its_values(folder: Path) -> None:
    steps: list[dict[str, Any]] = [
        {"n": 1},
        {"n": None},
        {"n": 2, "text": "a"},
        {"n": 0.5},
        {"n": 3, "list": []},
        {"list": [1]},
        {"list": [1.5, None]},
    ]
    with baler.Collector(f"file:{folder}") as collector:
        for fields in steps:
            collector.emit("Step", **fields)
    found = records(folder, "Step")
    assert len({table.version for table in baler.read(folder, "Step")}) == 7
    for record, fields in zip(found, steps, strict=True):
        assert {k: v for k, v in record["fields"].items() if v is not None} == {
            k: v for k, v in fields.items() if v is not None
        }
        assert abs(record["timestamp"] - time.time_ns()) < 60 * 10**9


def test_values_that_no_field_holds_are_errors() -> None:
    with baler.Collector("null:") as collector:
        collector.emit("A", n=1, x=0.5, text="a")
        wrong: list[tuple[dict[str, Any], type[Exception], str]] = [
            ({"n": "one"}, TypeError, "n: a field has values of int and str"),
            ({"n": 2**64}, OverflowError, "no integer of 64 bits"),
            ({"n": object()}, TypeError, "object is no type of a field"),
            ({"x": 2**60}, TypeError, "values do not fit"),
            ({"n": {"a": {1: 2}}}, TypeError, "str"),
        ]
        for fields, error, message in wrong:
            with pytest.raises(error, match=message):
                collector.emit("A", **fields)
        loop: list[Any] = []
        loop.append(loop)
        with pytest.raises(ValueError, match="levels"):
            collector.emit("B", loop=loop)
        assert collector.emit("A", n=2, x=1, text="b")
    with pytest.raises(ValueError, match='"block"'):
        baler.Collector("null:", overflow="wait")  # type: ignore[arg-type]


@dataclasses.dataclass
class Item:
    name: str
    price: float


@dataclasses.dataclass
class Order:
    id: int
    items: list[Item]


def test_dataclasses_and_dicts_are_sent(folder: Path, tmp_path: Path) -> None:
    with baler.Collector(f"file:{folder}") as collector:
        assert collector.send(Order(1, [Item("tea", 2.5)]), timestamp=5)
        assert collector.send({"type": "A", "timestamp": 6, "fields": {"n": 1}})
        for wrong in [object(), {"fields": {}}, Order]:
            with pytest.raises((TypeError, ValueError)):
                collector.send(wrong)
    (order,) = records(folder, "*Order")
    assert order["type"] == "test_collect.Order"
    assert order["timestamp"] == 5
    assert order["fields"] == {"id": 1, "items": [{"name": "tea", "price": 2.5}]}
    copy = tmp_path / "copy"
    with baler.Collector(f"file:{copy}") as collector:
        for record in baler.iter_records(folder, ["A", "*Order"]):
            collector.send(record)
    assert records(copy, "*Order") == [order]
    assert records(copy, "A") == records(folder, "A")


def test_rows_of_tables_are_sent(folder: Path, tmp_path: Path) -> None:
    run("generate", "--records", "1000", "--to", f"file:{tmp_path}/calls")
    calls = baler.read(tmp_path / "calls")["OperationExecutionRecord"]
    with baler.Collector(f"file:{folder}") as collector:
        assert send_table(collector, "Call", calls) == pa.table(calls).num_rows
        tea = pl.DataFrame({"n": [1, None], "tags": [["a"], []]})
        assert send_table(collector, "Tea", tea) == 2
    found, expected = records(folder, "Call"), records(tmp_path / "calls", "*Execution*")
    assert [it["fields"] for it in found] == [it["fields"] for it in expected]
    assert [it["timestamp"] for it in found] == [it["timestamp"] for it in expected]
    cups = [it["fields"] for it in records(folder, "Tea")]
    assert cups == [{"n": 1, "tags": ["a"]}, {"n": None, "tags": []}]


@baler.probe
def outer(n: int) -> int:
    return sum(inner(it) for it in range(n))


@baler.probe(signature="test.inner(int)")
def inner(n: int) -> int:
    if n == 2:
        raise ValueError(n)
    return n


class Shop:
    @baler.probe
    async def order(self) -> str:
        await asyncio.gather(self.pay(), self.pay())
        return "done"

    @baler.probe
    async def pay(self) -> None:
        await asyncio.sleep(0.01)


def test_probes_record_calls_and_their_order(folder: Path) -> None:
    assert outer(2) == 1
    with baler.Collector(f"file:{folder}") as collector:
        baler.install(collector)
        assert outer(2) == 1
        with pytest.raises(ValueError):
            outer(3)
        assert asyncio.run(Shop().order()) == "done"
        thread = threading.Thread(target=outer, args=(1,))
        thread.start()
        thread.join()
        baler.install(None)
        assert outer(1) == 0
    traces: dict[int, list[Any]] = {}
    for record in records(folder, "OperationExecutionRecord"):
        fields = record["fields"]
        assert fields["tin"] <= fields["tout"]
        call = (fields["eoi"], fields["ess"], fields["operationSignature"])
        traces.setdefault(fields["traceId"], []).append(call)
    o, i = "test_collect.outer()", "test.inner(int)"
    order, pay = "test_collect.Shop.order()", "test_collect.Shop.pay()"
    assert sorted(map(sorted, traces.values())) == sorted(
        [
            [(0, 0, o), (1, 1, i), (2, 1, i)],
            [(0, 0, o), (1, 1, i), (2, 1, i), (3, 1, i)],
            [(0, 0, order), (1, 1, pay), (2, 1, pay)],
            [(0, 0, o), (1, 1, i)],
        ]
    )
    page = json.loads(run("analyze", "--from", f"file:{folder}", "--format", "json"))
    assert page["traces"]["valid"] == 4


def test_log_records_are_sent(folder: Path) -> None:
    logger = logging.getLogger("test.shop")
    logger.propagate = False
    with baler.Collector(f"file:{folder}") as collector:
        handler = baler.LogHandler(collector, logging.INFO)
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG)
        logger.debug("not sent")
        logger.info("order %d", 7)
        try:
            raise KeyError("tea")
        except KeyError:
            logger.exception("failed")
        logger.removeHandler(handler)
    first, second = (record["fields"] for record in records(folder, "LogRecord"))
    assert (first["level"], first["message"], first["exception"]) == ("INFO", "order 7", None)
    assert first["logger"] == "test.shop" and first["function"] == "test_log_records_are_sent"
    assert second["level"] == "ERROR" and "KeyError: 'tea'" in second["exception"]


@pytest.mark.parametrize("overflow", ["block", "drop-newest", "drop-oldest"])
def test_threads_lose_nothing_that_is_not_counted(folder: Path, overflow: Any) -> None:
    with baler.Collector(f"file:{folder}", overflow=overflow, memory=8 << 20) as collector:

        def send(thread: int) -> None:
            for number in range(5_000):
                collector.emit("T", number, thread=thread, text="some text")

        threads = [threading.Thread(target=send, args=(thread,)) for thread in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        account = collector.close(timeout=30)
    assert account["emitted"] == account["delivered"] + sum(account["dropped"].values())
    found = records(folder, "T")
    others = account["emitted"] - 20_000
    assert len(found) == account["delivered"] - others
    if overflow == "block":
        assert account["dropped"] == {}
    for sender in range(4):
        times = [it["timestamp"] for it in found if it["fields"]["thread"] == sender]
        assert times == sorted(times)


def run_script(script: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", "import baler, os, sys, time\n" + script, f"file:{folder}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_the_end_of_the_interpreter_delivers_everything(folder: Path) -> None:
    script = (
        "collector = baler.Collector(sys.argv[1], wait_time=60)\n"
        "for n in range(100): collector.emit('A', n, n=n)\n"
    )
    for end, code in [("", 0), ("sys.exit(3)", 3), ("raise ValueError", 1)]:
        ended = run_script(script + end, folder / str(code))
        assert ended.returncode == code, ended.stderr
        assert [it["timestamp"] for it in records(folder / str(code), "A")] == list(range(100))


def test_a_killed_process_loses_nothing_that_was_flushed(folder: Path) -> None:
    script = (
        "collector = baler.Collector(sys.argv[1], wait_time=60)\n"
        "for n in range(100): collector.emit('A', n, n=n)\n"
        "collector.flush()\n"
        "for n in range(100, 200): collector.emit('A', n, n=n)\n"
        f"os.kill(os.getpid(), {int(signal.SIGKILL)})\n"
    )
    assert run_script(script, folder).returncode == -signal.SIGKILL
    times = [it["timestamp"] for it in records(folder, "A")]
    assert times == list(range(len(times))) and len(times) >= 100


def test_the_child_of_a_fork_has_a_collector_of_its_own(folder: Path) -> None:
    script = (
        "collector = baler.Collector(sys.argv[1] + '/parent')\n"
        "collector.emit('A', 1, n=1)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    assert not collector.emit('A', 2, n=2)\n"
        "    own = baler.Collector(sys.argv[1] + '/child')\n"
        "    assert own.emit('A', 3, n=3)\n"
        "    sys.exit(0)\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
        "assert collector.emit('A', 4, n=4)\n"
    )
    ended = run_script(script, folder)
    assert ended.returncode == 0, ended.stderr
    assert [it["timestamp"] for it in records(folder / "parent", "A")] == [1, 4]
    assert [it["timestamp"] for it in records(folder / "child", "A")] == [3]


def test_a_medium_that_is_away_does_not_stop_the_program(tmp_path: Path) -> None:
    collector = baler.Collector("tcp://127.0.0.1:1", memory=8 << 20)
    began = time.monotonic()
    for n in range(50_000):
        collector.emit("A", n, text="a text that needs some room in the queue")
    with pytest.raises(baler.Error):
        collector.flush(timeout=0.1)
    account = collector.close(timeout=0.5)
    assert time.monotonic() - began < 30
    assert account["delivered"] == 0
    assert account["emitted"] == sum(account["dropped"].values()) >= 50_000
    assert not collector.emit("A", n=1)


def test_chunks_wait_on_disk_while_the_medium_is_away(tmp_path: Path) -> None:
    collector = baler.Collector("tcp://127.0.0.1:1", spool=tmp_path / "spool", wait_time=0.01)
    for n in range(100):
        collector.emit("A", n, n=n)
    account = collector.close(timeout=2)
    assert account["emitted"] == account["spooled"] + sum(account["dropped"].values())
    assert account["spooled"] >= 100
