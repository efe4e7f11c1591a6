"""Sends the rows of Arrow tables. It needs pyarrow."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ._baler import Collector
from ._plain import TIMESTAMP


def send_table(collector: Collector, type: str, table: Any) -> int:
    """Emit the rows of a table of pyarrow, polars or anything else with ``__arrow_c_stream__``.

    Return how many were accepted. The column ``_timestamp`` is the logging time; other times and spans
    become integers of nanoseconds.
    """
    # In Python, because pyarrow gives up the interpreter's lock inside a call.
    return sum(collector.emit(type, timestamp, **row) for timestamp, row in _rows(table))


def _rows(table: Any) -> Iterator[tuple[int | None, dict[str, Any]]]:
    """Iterate over the rows: the logging time, and the fields."""
    for batch in pa.RecordBatchReader.from_stream(table):
        columns = [_integers(column) for column in batch.columns]
        names = batch.schema.names
        for row in pa.RecordBatch.from_arrays(columns, names).to_pylist():
            timestamp = row.pop(TIMESTAMP, None)
            yield timestamp, row


def _integers(column: pa.Array) -> pa.Array:
    """Return times and spans as integers of nanoseconds."""
    if pa.types.is_timestamp(column.type):
        return pc.cast(column, pa.timestamp("ns", column.type.tz)).cast(pa.int64())
    if pa.types.is_duration(column.type):
        return pc.cast(column, pa.duration("ns")).cast(pa.int64())
    return column
