"""Reads Baler's chunks of records into Arrow, pandas, polars, DuckDB and plain Python, and sends them.

``read`` gives one table a record type, for libraries that know Arrow. ``iter_records`` gives dicts.
"""

import atexit as _atexit
from importlib.metadata import version as _version

from ._baler import (
    Batch,
    BatchIterator,
    ChunkIterator,
    Collector,
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
from ._baler import _close_all as _close_all_collectors
from .errors import DecodeError, Error
from .handler import LogHandler
from .probes import install, probe
from .types import Account, ChunkIdentity, Identity, Record, Report, Source

# A collector that nobody closed delivers its records before the interpreter ends.
_atexit.register(_close_all_collectors)

__version__ = _version("baler-telemetry")

__all__ = [
    "Account",
    "Batch",
    "BatchIterator",
    "ChunkIdentity",
    "ChunkIterator",
    "Collector",
    "Consumer",
    "DecodeError",
    "Delivery",
    "Error",
    "FileRange",
    "Identity",
    "KafkaRange",
    "LogHandler",
    "Range",
    "Record",
    "RecordIterator",
    "Report",
    "Source",
    "Table",
    "Tables",
    "consume",
    "inspect",
    "install",
    "iter_records",
    "positions",
    "probe",
    "read",
]
