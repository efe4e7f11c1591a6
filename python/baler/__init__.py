"""Reads Baler's chunks of records into Arrow, pandas, polars, DuckDB and plain Python.

``read`` gives one table a record type, for libraries that know Arrow. ``iter_records`` gives dicts.
"""

from importlib.metadata import version as _version

from ._baler import Batch, BatchIterator, RecordIterator, Table, Tables, iter_records, read
from .errors import DecodeError, Error
from .types import Identity, Record, Source

__version__ = _version("baler-telemetry")

__all__ = [
    "Batch",
    "BatchIterator",
    "DecodeError",
    "Error",
    "Identity",
    "Record",
    "RecordIterator",
    "Source",
    "Table",
    "Tables",
    "iter_records",
    "read",
]
