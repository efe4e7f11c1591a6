"""The extension module; use ``baler`` instead."""

from collections.abc import Iterator, Sequence
from typing import Literal, final

from .types import Record, Source

__all__ = [
    "Batch",
    "BatchIterator",
    "RecordIterator",
    "Table",
    "Tables",
    "iter_records",
    "read",
]

def read(
    source: Source,
    types: str | Sequence[str] | None = None,
    *,
    identity: bool = False,
    times: Literal["ns", "us"] = "ns",
) -> Tables:
    """Return one table a record type.

    ``types`` selects record types: the full name, its last part, or either with ``*`` for any
    characters. ``identity`` adds the columns ``_producer``, ``_epoch``, ``_lane``, ``_sequence``
    and ``_index``. ``times`` is the unit of points in time; Spark needs ``"us"``.

    Nothing is read before the tables are used. A medium is read from its oldest chunk to the chunk
    that is the last one now. Other readers lose nothing, and no position moves.
    """

def iter_records(
    source: Source,
    types: str | Sequence[str] | None = None,
    *,
    identity: bool = False,
) -> RecordIterator:
    """Iterate over records as dicts, in their order.

    Integers are exact, bytes are ``bytes``, an enum is the name of its variant, and an absent
    optional is ``None``. The arguments are those of ``read``.
    """

@final
class Tables:
    """One table a record type. The types are found while the source is read."""

    def __iter__(self) -> Iterator[Table]:
        """Iterate over the tables. A type with two versions has two tables."""

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
