"""Many records are those of the program, and only a batch of them is in memory."""

import json
import os
import resource
import subprocess
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from conftest import PROGRAM, run
from values import rows

import baler

#: The number of records; scripts/test all has 5 million.
RECORDS = int(os.environ.get("BALER_SCALE", "20000"))


def generated(folder: Path) -> Path:
    run("generate", "--records", str(RECORDS // 2), "--to", f"file:{folder}")
    return folder


def sent(folder: Path) -> Path:
    """Records with nulls, lists in lists, dicts, and integers above 2^63."""
    with baler.Collector(f"file:{folder}", overflow="block") as collector:
        for n in range(RECORDS // 2):
            collector.emit(
                "Values",
                n,
                big=2**63 + n,
                small=-n if n % 3 else None,
                text="ä" * (n % 7),
                raw=bytes([n % 256]),
                flag=n % 2 == 0,
                ratio=n / 7,
                matrix=[[n, n + 1], [], [n]][: n % 4],
                inner={"tags": ["a", "b"][: n % 3], "x": n / 3 if n % 5 else None},
            )
        account = collector.close(timeout=60)
        assert account["dropped"] == {}
    return folder


@pytest.mark.parametrize("make", [generated, sent])
def test_records_equal_those_of_the_program(make: Any, tmp_path: Path) -> None:
    source = make(tmp_path / "source")
    command = [PROGRAM, "--quiet", "receive", "--from", f"file:{source}", "--format", "json"]
    types: dict[str, int] = {}
    with subprocess.Popen(command, stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        for batch in baler.read(source).batches():
            types[batch.type] = types.get(batch.type, 0) + len(batch)
            for row in rows(pa.Table.from_batches([pa.record_batch(batch)])):
                record = json.loads(program.stdout.readline())
                assert row == {"_timestamp": record["timestamp"], **record["fields"]}
        assert program.stdout.readline() == b""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert peak < 1 << 20, f"{peak} KiB"

    assert max(types.values()) == RECORDS // 2
    for records in baler.read(source):
        frame = pl.DataFrame(records)
        number = next(it for it in ("eoi", "ratio", "_timestamp") if it in frame.columns)
        sums = duckdb.sql(f"SELECT count(*) AS n, count(DISTINCT {number}) AS m FROM records")
        assert sums is not None
        assert sums.to_arrow_table().to_pylist() == [{"n": len(frame), "m": frame[number].n_unique()}]
        types[records.type] -= len(frame)
    assert set(types.values()) == {0}
