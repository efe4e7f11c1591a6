"""The extension module; use ``baler`` instead."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from os import PathLike
from typing import Any, Literal, final

from typing_extensions import disjoint_base

from .types import Account, ChunkIdentity, Record, Report, Source

__all__ = [
    "Batch",
    "BatchIterator",
    "ChunkIterator",
    "Collector",
    "Consumer",
    "Delivery",
    "FileRange",
    "KafkaRange",
    "Range",
    "RecordIterator",
    "Table",
    "Tables",
    "consume",
    "inspect",
    "iter_records",
    "positions",
    "_close_all",
    "read",
]

def read(
    source: Source,
    types: str | Sequence[str] | None = None,
    where: str | None = None,
    fields: str | Sequence[str] | None = None,
    *,
    since: int | datetime | None = None,
    until: int | datetime | None = None,
    identity: bool = False,
    times: Literal["ns", "us"] = "ns",
) -> Tables:
    """Return one table a record type.

    ``types`` selects record types: the full name, its last part, or either with ``*`` for any
    characters. ``where`` is a condition in CEL, as for ``baler receive --where``. A record that it
    cannot judge, or a field that no record has, is a ``ValueError``. ``fields`` selects fields by
    name, or by ``Type.name`` for one type. ``since`` and ``until`` (excluded) select records by their
    logging time, which is a ``datetime`` or nanoseconds since 1970; chunks outside are not decoded.
    ``identity`` adds the columns ``_producer``, ``_epoch``, ``_lane``, ``_sequence`` and ``_index``. ``times`` is the unit of points in time; Spark needs ``"us"``.

    Nothing is read before the tables are used. A medium is read from its oldest chunk to the chunk
    that is the last one now. Other readers lose nothing, and no position moves.
    """

def iter_records(
    source: Source,
    types: str | Sequence[str] | None = None,
    where: str | None = None,
    fields: str | Sequence[str] | None = None,
    *,
    since: int | datetime | None = None,
    until: int | datetime | None = None,
    identity: bool = False,
) -> RecordIterator:
    """Iterate over records as dicts, in their order.

    Integers are exact, bytes are ``bytes``, an enum is the name of its variant, and an absent
    optional is ``None``. The arguments are those of ``read``.
    """

def consume(
    uri: str,
    *,
    follow: bool = False,
    idle_timeout: float | None = None,
    quarantine: str | None = None,
    max_attempts: int | None = None,
    demand: int | None = None,
    identity: bool = False,
    times: Literal["ns", "us"] = "ns",
) -> Consumer:
    """Receive chunks that are acknowledged, or come again.

    It ends at the end of the medium, or when nothing has arrived for ``idle_timeout`` seconds.
    ``follow`` waits for more at the end of a folder. A chunk that fails ``max_attempts`` times (5 by
    default) goes to the ``quarantine``, a folder or the URI of a medium. Without one, chunks that do
    not decode are counted and skipped. At most ``demand`` chunks (64 by default) are received and
    not settled. ``identity`` and ``times`` are those of ``read``.
    """

def positions(source: str) -> dict[int, tuple[int, int]]:
    """Return the offset of the oldest chunk, and the one after the newest chunk, a partition.

    ``source`` is the URI of a topic, or a folder of segments. A folder has the partition 0, and the
    numbers of its chunks are the offsets. A number may be left out.
    """

def inspect(source: Source, *, strings: int = 0, records: int = 0) -> ChunkIterator:
    """Iterate over the chunks of a source as dicts, as ``baler inspect --format json`` writes them.

    ``strings`` and ``records`` are how many of each are in the dict. A piece that is no chunk, or
    does not decode, is a dict with the key ``reason``.
    """

@disjoint_base
class Range:
    """Chunks at offsets, as a source of ``read`` and the other functions.

    Reading fails with ``Error`` if some of the offsets are gone, or not written yet.
    """

@final
class KafkaRange(Range):
    """Chunks of a topic."""

    def __new__(cls, topic: str, partitions: Mapping[int, tuple[int, int]]) -> KafkaRange:
        """``topic`` is a URI. Each partition to read has its first offset and its end, which is excluded."""

@final
class FileRange(Range):
    """Chunks of a folder of segments, by their numbers."""

    def __new__(cls, folder: str | PathLike[str], start: int, end: int) -> FileRange:
        """The end is excluded."""

@final
class Tables:
    """One table a record type. The types are found while the source is read."""

    def __iter__(self) -> Iterator[Table]:
        """Iterate over the tables. A type with two versions has two tables."""

    def batches(self) -> BatchIterator:
        """Iterate over the batches of all types in one pass, chunk by chunk."""

    def __len__(self) -> int: ...
    def __contains__(self, name: str, /) -> bool: ...
    def __getitem__(self, name: str, /) -> Table:
        """Return the table of a record type: its full name, or the last part of it.

        Reads until a record of this type comes. Raises ``KeyError`` if there is none.
        """

@final
class Table:
    """The records of one type.

    Libraries that know Arrow take it as it is: ``pyarrow.table(calls)``, ``polars.DataFrame(calls)``,
    ``duckdb.sql("FROM calls")``, ``pandas.DataFrame.from_arrow(calls)``. Each use reads the source
    again, one chunk at a time.
    """

    @property
    def type(self) -> str:
        """The name of the record type."""

    @property
    def version(self) -> str:
        """The fingerprint of the record type's fields, in hexadecimal digits."""

    @property
    def fields(self) -> list[tuple[str, str]]:
        """The fields of the record type, and their types."""

    def __iter__(self) -> BatchIterator:
        """Iterate over batches, one a chunk. Errors are exceptions of this package."""

    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Batch:
    """Records of one type from one chunk, for libraries that know Arrow."""

    @property
    def type(self) -> str:
        """The name of the record type."""

    @property
    def version(self) -> str:
        """The fingerprint of the record type's fields, in hexadecimal digits."""

    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

@final
class BatchIterator:
    """Iterates over batches."""

    def __iter__(self) -> BatchIterator: ...
    def __next__(self) -> Batch: ...

@final
class RecordIterator:
    """Iterates over records."""

    def __iter__(self) -> RecordIterator: ...
    def __next__(self) -> Record: ...

@final
class ChunkIterator:
    """Iterates over chunks."""

    def __iter__(self) -> ChunkIterator: ...
    def __next__(self) -> dict[str, Any]: ...

@final
class Consumer:
    """Iterates over chunks until the medium ends. A context manager that closes itself."""

    def __iter__(self) -> Consumer: ...
    def __next__(self) -> Delivery: ...
    def __enter__(self) -> Consumer: ...
    def __exit__(self, *_error: object) -> None: ...
    @property
    def report(self) -> Report | None:
        """The figures so far; ``None`` after the end."""

    def close(self, timeout: float = 5.0) -> Report | None:
        """Settle acknowledged chunks, give back the others, and end within ``timeout`` seconds."""

@final
class Delivery:
    """A received chunk. One that is dropped without ``ack`` is given back, and comes again."""

    def __iter__(self) -> Iterator[Batch]:
        """Iterate over the records as batches, one a record type."""

    def __getitem__(self, name: str, /) -> Batch:
        """Return the records of a type: its full name, or the last part of it."""

    def __len__(self) -> int:
        """The number of records."""

    def records(self) -> RecordIterator:
        """Iterate over the records as dicts. The chunk is not settled while an iterator is in use."""

    @property
    def identity(self) -> ChunkIdentity | None:
        """Names the chunk: one that is delivered twice has the same identity."""

    @property
    def origin(self) -> str | None:
        """The medium, and the place of the chunk in it."""

    @property
    def is_redelivered(self) -> bool:
        """Whether the medium delivered the chunk before."""

    def ack(self) -> None:
        """Acknowledge the chunk: it does not come again."""

    def give_back(self, reason: str = "the delivery was given back") -> None:
        """Give the chunk back. The reason is kept if it goes to the quarantine."""

@final
class Collector:
    """Sends records to a medium. A context manager that closes itself.

    A record is copied into a bounded queue, and a thread of the collector makes chunks of it. When the
    queue is full, ``overflow`` decides: ``"drop-newest"`` and ``"drop-oldest"`` drop a record and count
    it, ``"block"`` waits. ``wait_time`` is how many seconds a record waits at most for its chunk to
    fill, ``chunk_records`` how many records a chunk has at most, and ``memory`` how many bytes the
    collector may use. Chunks wait in the folder ``spool`` while the medium is away. Collectors that are still open when the interpreter ends are closed then. The
    child of a fork needs a collector of its own: the one of its parent accepts nothing there.
    """

    def __new__(
        cls,
        uri: str,
        *,
        application: str | None = None,
        chunk_records: int | None = None,
        wait_time: float | None = None,
        memory: int | None = None,
        overflow: Literal["block", "drop-newest", "drop-oldest"] = "drop-newest",
        spool: str | PathLike[str] | None = None,
    ) -> Collector: ...
    def emit(self, type: str, timestamp: int | None = None, /, **fields: Any) -> bool:
        """Emit a record; return whether it was accepted.

        ``timestamp`` is in nanoseconds since the Unix epoch; without it, the present time counts. The
        type of each field is that of its values: ``bool``, ``int``, ``float``, ``str``, ``bytes``,
        lists and dicts of them. A dict is a record with fields; another mapping, such as
        ``types.MappingProxyType``, is a map with any keys and values. ``None`` makes a field optional, and so does a field that another
        record of the type lacks.
        """

    def send(self, record: object, timestamp: int | None = None) -> bool:
        """Emit a dataclass, or a dict as ``iter_records`` gives it."""

    def _emit_call(
        self, signature: str, host: str, call: tuple[int, int, int, int, int]
    ) -> bool: ...
    def flush(self, timeout: float = 5.0) -> None:
        """Wait until the medium has confirmed everything that was emitted before."""

    @property
    def account(self) -> Account:
        """The figures so far."""

    def close(self, timeout: float = 5.0) -> Account:
        """Deliver the rest, and account for every record."""

    def __enter__(self) -> Collector: ...
    def __exit__(self, *_error: object) -> None: ...

def _close_all() -> None:
    """Close all collectors that are open."""
