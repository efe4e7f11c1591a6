"""Python reads the same records as `baler receive --format json`."""

from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
from conftest import Source, received, without_epoch
from values import Key, by_table, plain, rows

import baler


def key(table: baler.Table) -> Key:
    """The type of a table, and its columns: a type may have several versions."""
    return table.type, tuple(sorted(pa.schema(table).names))


def found(table: pa.Table) -> list[Any]:
    return [without_epoch(row) for row in rows(table)]


def test_records_equal_those_of_the_program(source: Source) -> None:
    named, uri = source
    records = [plain(record) for record in baler.iter_records(named, identity=True)]
    assert without_epoch(records) == received(uri)


def test_pyarrow_reads_every_table(source: Source) -> None:
    named, uri = source
    tables = list(baler.read(named, identity=True))
    expected = by_table(received(uri))
    assert {key(table): found(pa.table(table)) for table in tables} == expected
    for table in tables:
        batches = [pa.record_batch(batch) for batch in table]
        assert found(pa.Table.from_batches(batches)) == expected[key(table)]


def test_polars_reads_every_table(source: Source) -> None:
    named, uri = source
    tables = baler.read(named, identity=True)
    read = {key(table): found(pl.DataFrame(table).to_arrow()) for table in tables}
    assert read == by_table(received(uri))


def test_duckdb_reads_every_table(source: Source) -> None:
    named, uri = source
    expected = by_table(received(uri))
    tables = list(baler.read(named, identity=True))
    assert {key(table) for table in tables} == set(expected)
    for records in tables:
        # DuckDB's intervals have microseconds.
        spans = [f.name for f in pa.schema(records) if pa.types.is_duration(f.type)]
        exclude = f"EXCLUDE ({', '.join(spans)})" if spans else ""
        read = duckdb.sql(f"SELECT * {exclude} FROM records")
        assert read is not None
        wanted = expected[key(records)]
        wanted = [{k: v for k, v in row.items() if k not in spans} for row in wanted]
        assert found(read.to_arrow_table()) == wanted


def test_pandas_reads_a_table(folder: Path) -> None:
    (table,) = baler.read(folder, "OperationExecutionRecord")
    frame = pd.DataFrame.from_arrow(table)
    assert len(frame) == 6_000
    assert frame["tin"].dtype == "datetime64[ns]"


def test_microseconds_are_rounded_down(folder: Path) -> None:
    name = "OperationExecutionRecord"
    nanos = rows(pa.table(baler.read(folder)[name]))
    micros = pa.table(baler.read(folder, times="us")[name])
    assert micros.schema.field("tin").type == pa.timestamp("us")
    assert [row["tin"] for row in rows(micros)] == [row["tin"] // 1_000 for row in nanos]
