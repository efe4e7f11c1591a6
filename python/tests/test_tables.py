"""Tables have each record once, whatever happens to the program that writes them."""

import multiprocessing
import os
import random
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from brokers import mock_topic
from conftest import run

import baler
from baler import tables

CALL = "kieker.common.record.controlflow.OperationExecutionRecord"

#: The number of times that a writer is killed; scripts/test all has more.
KILLS = int(os.environ.get("BALER_TABLE_KILLS", "12"))

FORMATS = ["delta", "iceberg", "parquet"]

Rows = Counter[tuple[Any, ...]]


def read(kind: str, folder: Path, record_type: str = CALL) -> pa.Table:
    """A table, read by the library of its format."""
    match kind:
        case "delta":
            table: pa.Table = deltalake.DeltaTable(folder / record_type).to_pyarrow_table()
            return table
        case "iceberg":
            name = (tables.IcebergStore.NAMESPACE, record_type.replace(".", "_"))
            return tables.IcebergStore(folder, "", None).catalog.load_table(name).scan().to_arrow()
        case _:
            parts = sorted((folder / record_type).glob("part-*.parquet"))
            return pa.concat_tables(map(pq.read_table, parts), promote_options="default")


def files(kind: str, folder: Path, record_type: str = CALL) -> list[str]:
    """The Parquet files of the newest version of a table."""
    match kind:
        case "delta":
            return deltalake.DeltaTable(folder / record_type).file_uris()
        case "iceberg":
            name = (tables.IcebergStore.NAMESPACE, record_type.replace(".", "_"))
            table = tables.IcebergStore(folder, "", None).catalog.load_table(name)
            paths: list[str] = table.inspect.files()["file_path"].to_pylist()
            return paths
        case _:
            return [str(path) for path in (folder / record_type).glob("part-*.parquet")]


def check(kind: str, source: Path, target: Path) -> None:
    """Compares a table with its source, by the library of its format and by DuckDB."""
    wanted = expected(source)
    assert identities(read(kind, target)) == wanted
    counted = duckdb.read_parquet(files(kind, target)).aggregate(
        "count(*) AS rows, count(DISTINCT (_producer, _epoch, _lane, _sequence, _index)) AS records"
    )
    assert counted.to_arrow_table().to_pylist() == [{"rows": len(wanted), "records": len(wanted)}]


def identities(rows: pa.Table) -> Rows:
    """How often each record is in a table."""
    names = ["_producer", "_epoch", "_lane", "_sequence", "_index"]
    return Counter(zip(*(rows[name].to_pylist() for name in names), strict=True))


def expected(source: Path) -> Rows:
    """Each record of a source once."""
    return Counter(dict.fromkeys(identities(pa.table(baler.read(source, identity=True)[CALL])), 1))


def generate(folder: Path, records: int, seed: int) -> None:
    chosen = ["--records", str(records), "--chunk-records", "20", "--seed", str(seed)]
    run("generate", *chosen, "--to", f"file:{folder}")


def write(kind: str, source: Path, target: Path, *more: str) -> int:
    words = [kind, "--from", str(source), "--to", str(target), "--identity", *more]
    return tables.main(words)


def writer(kind: str, source: Path, target: Path) -> Any:
    """A process that writes in small commits."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["test_tables", "pyiceberg.catalog.sql"])
    process = context.Process(target=write, args=(kind, source, target, "--chunks", "3"))
    process.start()
    return process


@pytest.mark.parametrize("kind", FORMATS)
def test_killed_writers_leave_each_row_once(kind: str, tmp_path: Path) -> None:
    source, target, chance = tmp_path / "source", tmp_path / "target", random.Random(45)
    generate(source, 1_000, 0)
    began = time.monotonic()
    writer(kind, source, target).join()
    killed, whole = 0, time.monotonic() - began
    for seed in range(1, KILLS + 1):
        generate(source, 1_000, seed)
        process = writer(kind, source, target)
        process.join(chance.uniform(0.0, whole))
        if process.is_alive():
            os.kill(process.pid, signal.SIGKILL)
            process.join()
            killed += 1
    assert killed > KILLS // 3
    assert write(kind, source, target) == 0
    check(kind, source, target)


@pytest.mark.parametrize("kind", FORMATS)
def test_two_writers_at_once_write_each_row_once(kind: str, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    generate(source, 1_000, 1)
    processes = [writer(kind, source, target) for _ in range(2)]
    for process in processes:
        process.join()
        assert process.exitcode == 0
    check(kind, source, target)
    # There is nothing left to add.
    assert write(kind, source, target) == 0
    check(kind, source, target)


@pytest.mark.parametrize("kind", FORMATS)
def test_a_topic_is_copied_as_it_grows(kind: str, tmp_path: Path) -> None:
    target = tmp_path / "target"
    with mock_topic(tmp_path) as topic:
        for seed in range(3):
            run(
                *["generate", "--records", "600", "--lanes", "3", "--chunk-records", "20"],
                *["--seed", str(seed), "--to", topic],
            )
            words = [kind, "--from", topic, "--to", str(target), "--identity", "--chunks", "10"]
            assert tables.main(words) == 0
        source = pa.table(baler.read(topic, identity=True)[CALL])
    assert identities(read(kind, target)) == identities(source)
    assert len(source) == 1_800


@pytest.mark.parametrize("kind", FORMATS)
def test_columns_are_plain_and_new_fields_are_added(kind: str, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    steps: list[dict[str, Any]] = [
        {"big": 2**64 - 1, "tags": ["a"], "inner": {"x": 1}, "numbers": [1]},
        # Of these values, the types are not known.
        {"big": None, "tags": [], "inner": {"x": None}, "numbers": []},
        {"big": 1, "tags": ["b"], "inner": {"x": None}, "numbers": [2], "more": "text"},
    ]
    for number, fields in enumerate(steps):
        with baler.Collector(f"file:{source}") as collector:
            collector.emit("shop.Order", number * 86_400 * 10**9, **fields)
        assert write(kind, source, target) == 0
    rows = read(kind, target, "shop.Order").sort_by("_timestamp").to_pylist()
    assert [row["_timestamp"].day for row in rows] == [1, 2, 3]
    for row, fields in zip(rows, steps, strict=True):
        assert {name: row[name] for name in fields} == fields
    assert rows[0]["more"] is None


@pytest.mark.parametrize("kind", FORMATS)
def test_versions_share_a_table_or_are_told(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    with baler.Collector(f"file:{source}") as collector:
        for n in (None, 1, 0.5):
            collector.emit("Number", 0, n=n)
    assert write(kind, source, target) == 0
    assert set(read(kind, target, "Number")["n"].to_pylist()) == {None, 1.0, 0.5}
    with baler.Collector(f"file:{source}") as collector:
        collector.emit("Number", 0, n="one")
    assert write(kind, source, target) == 1
    assert "Number: its versions do not fit one table" in capsys.readouterr().err
    assert len(read(kind, target, "Number")) == 3


def test_removed_chunks_and_another_source_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    generate(source, 400, 1)
    assert write("delta", source, target) == 0
    for segment in source.glob("chunks-*.seg"):
        segment.unlink()
    generate(source, 100, 2)
    assert write("delta", source, target) == 1
    assert "is it the same source?" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        write("delta", source, target, "--chunks", "0")
    assert write("delta", tmp_path / "nothing", target) == 1
    assert "nothing" in capsys.readouterr().err
