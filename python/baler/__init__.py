"""Reads Baler's chunks of records into Arrow, pandas, polars, DuckDB and plain Python.

``read`` gives one table a record type, for libraries that know Arrow. ``iter_records`` gives dicts.
"""

from importlib.metadata import version as _version

from ._baler import (
    Batch,
    BatchIterator,
    ChunkIterator,
    Consumer,
    Delivery,
    FileRange,
    KafkaRange,
    Range,
    RecordIterator,
    Table,
    Tables,
    consume,
    inspect,
    iter_records,
    positions,
    read,
)
from .errors import DecodeError, Error
from .types import ChunkIdentity, Identity, Record, Report, Source

__version__ = _version("baler-telemetry")

__all__ = [
    "Batch",
    "BatchIterator",
    "ChunkIdentity",
    "ChunkIterator",
    "Consumer",
    "DecodeError",
    "Delivery",
    "Error",
    "FileRange",
    "Identity",
    "KafkaRange",
    "Range",
    "Record",
    "RecordIterator",
    "Report",
    "Source",
    "Table",
    "Tables",
    "consume",
    "inspect",
    "iter_records",
    "positions",
    "read",
]
