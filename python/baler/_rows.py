"""Rows of Arrow tables as fields of records."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ._plain import TIMESTAMP


def rows(table: Any) -> Iterator[tuple[int | None, dict[str, Any]]]:
    """Iterate over the rows of anything with ``__arrow_c_stream__``: the logging time, and the fields.

    The logging time is the column ``_timestamp``, if there is one. Other times and spans are integers
    of nanoseconds.
    """
    for batch in pa.RecordBatchReader.from_stream(table):
        columns = [integers(column) for column in batch.columns]
        names = batch.schema.names
        for row in pa.RecordBatch.from_arrays(columns, names).to_pylist():
            timestamp = row.pop(TIMESTAMP, None)
            yield timestamp, row


def integers(column: pa.Array) -> pa.Array:
    """Return times and spans as integers of nanoseconds."""
    if pa.types.is_timestamp(column.type):
        return pc.cast(column, pa.timestamp("ns", column.type.tz)).cast(pa.int64())
    if pa.types.is_duration(column.type):
        return pc.cast(column, pa.duration("ns")).cast(pa.int64())
    return column
