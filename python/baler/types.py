"""Types for annotations."""

from collections.abc import Sequence
from os import PathLike
from typing import Any, NotRequired, TypeAlias, TypedDict

from ._baler import Range

_One: TypeAlias = str | PathLike[str] | bytes | bytearray | memoryview | Range

Source: TypeAlias = _One | Sequence[_One]
"""A path of a folder or a file, a pattern of paths, a URI, chunks in memory, chunks at offsets, or a
list of them."""


class ChunkIdentity(TypedDict):
    """Names a chunk: a chunk that is delivered twice has the same identity."""

    producer: str
    epoch: str
    lane: int
    sequence: int


class Identity(ChunkIdentity):
    """Names a record by its chunk, and its position in the chunk."""

    index: int


class Record(TypedDict):
    """A record, as ``baler receive --format json`` writes it."""

    type: str
    timestamp: int | None
    """Nanoseconds since the Unix epoch."""
    identity: NotRequired[Identity | None]
    """Present on request; ``None`` if neither the chunk nor the medium has one."""
    fields: dict[str, Any]


class Report(TypedDict):
    """The figures of a consumer."""

    chunks: int
    records: int
    bytes: int
    acknowledged: int
    given_back: int
    in_work: int
    quarantined: int
    duplicates: int


class Account(TypedDict):
    """What became of the records of a collector.

    ``emitted`` is ``delivered`` plus ``spooled`` plus all ``dropped``.
    """

    emitted: int
    delivered: int
    spooled: int
    """Stored on local disk, because the medium was away."""
    dropped: dict[str, int]
    on_time: NotRequired[bool]
    """Whether everything was done before the deadline. Present after the end, as ``error`` is."""
    error: NotRequired[str | None]
