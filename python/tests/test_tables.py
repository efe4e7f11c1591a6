"""Tables have each record once, whatever happens to the program that writes them."""

import multiprocessing
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import GOLDEN, run

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
            return pq.read_table(folder / record_type)


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
    assert identities(read(kind, target)) == expected(source)


@pytest.mark.parametrize("kind", FORMATS)
def test_two_writers_at_once_write_each_row_once(kind: str, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    generate(source, 1_000, 1)
    processes = [writer(kind, source, target) for _ in range(2)]
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert identities(read(kind, target)) == expected(source)
    # There is nothing left to add.
    assert write(kind, source, target) == 0
    assert identities(read(kind, target)) == expected(source)
