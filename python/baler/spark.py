"""A data source for Spark 4: ``spark.read.format("baler")`` and ``spark.readStream.format("baler")``.

The partitions are offsets of a topic of Kafka, or chunks of a folder of segments. Any other source
that ``baler.read`` takes is one partition. Spark finds this source by the package ``pyspark_baler``.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from inspect import signature
from typing import Any, Literal

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxFiles,
        SupportsTriggerAvailableNow,
    )

    HAS_STREAMS = True
except ImportError:
    # Spark 4.0 and 4.1 cannot limit a batch of a stream.
    ReadAllAvailable = ReadLimit = ReadMaxFiles = SupportsTriggerAvailableNow = object
    HAS_STREAMS = False

import baler

from ._plain import fit, joined, plain_schema
from ._positions import limited, range_of

#: The number of chunks of each partition in which the record type is looked up.
SAMPLE_CHUNKS = 16


class Options:
    """The options of a source; their names are case-insensitive, as always in Spark."""

    KNOWN = frozenset({"path", "type", "where", "times", "chunksperpartition", "maxchunkspertrigger"})

    def __init__(self, options: Mapping[str, str]) -> None:
        options = {name.lower(): value for name, value in options.items()}
        unknown = sorted(options.keys() - self.KNOWN)
        if unknown:
            known = ", ".join(sorted(self.KNOWN))
            raise ValueError(f"{unknown[0]} is no option of baler; there are {known}")
        if "path" not in options:
            raise ValueError("name the source: load(PATH_OR_URI)")
        self.source = options["path"]
        self.type = options.get("type")
        self.where = options.get("where")
        times = options.get("times", "us")
        if times not in ("us", "ns"):
            raise ValueError(f'times is {times!r}; it can be "us" or "ns"')
        self.times: Literal["us", "ns"] = "us" if times == "us" else "ns"
        self.chunks_per_partition = positive("chunksPerPartition", options, 1000)
        self.chunks_per_trigger = positive("maxChunksPerTrigger", options, None)

    def positions(self) -> dict[int, tuple[int, int]] | None:
        """Return the offsets of the source: ``None`` if it is no topic and no folder of segments."""
        try:
            return baler.positions(self.source)
        except ValueError:
            return None

    def tables(self, source: Any, types: str | None) -> baler.Tables:
        """Return the tables of a source; nothing is read yet."""
        return baler.read(source, types, self.where, times=self.times)

    def pieces(self, offsets: Mapping[int, tuple[int, int]]) -> list["Piece"]:
        """Return the parts of the source for one task each."""
        step = self.chunks_per_partition or 1
        return [
            Piece(partition, first, min(first + step, end))
            for partition, (start, end) in sorted(offsets.items())
            for first in range(start, end, step)
        ]


def positive(name: str, options: Mapping[str, str], default: int | None) -> int | None:
    """Return a number above 0."""
    text = options.get(name.lower())
    if text is None:
        return default
    if not text.isdecimal() or int(text) == 0:
        raise ValueError(f"{name} is {text!r}; it is a number of chunks, 1 or more")
    return int(text)


@dataclass
class Piece(InputPartition):
    """Chunks of one partition; without a partition the whole source."""

    partition: int | None = None
    start: int = 0
    end: int = 0

    def source(self, name: str) -> Any:
        """Return these chunks as a source of ``baler.read``."""
        if self.partition is None:
            return name
        return range_of(name, {self.partition: (self.start, self.end)})


class BalerDataSource(DataSource):
    """Records of one type, in chunks of Baler."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "baler"

    def schema(self) -> StructType:
        """Return the columns of the record type, which is looked up in the oldest chunks."""
        options = Options(self.options)
        source: Any = options.source
        positions = options.positions()
        if positions is not None:
            oldest = {
                partition: (start, min(end, start + SAMPLE_CHUNKS))
                for partition, (start, end) in positions.items()
            }
            source = range_of(source, oldest)
        found = list(options.tables(source, options.type))
        names = sorted({table.type for table in found})
        if len(names) != 1:
            what = f"the types {', '.join(names)}" if names else f"no {options.type or 'record'}"
            raise ValueError(
                f"the oldest chunks of {options.source} have {what}: "
                "choose one by option('type', ...), or give a schema"
            )
        schemas = [plain_schema(pa.schema(table), options.times == "ns") for table in found]
        return from_arrow_schema(reduce(joined, schemas))

    def reader(self, schema: StructType) -> "BalerReader":
        """Return the reader of a batch."""
        return BalerReader(Options(self.options), schema)

    def streamReader(self, schema: StructType) -> "BalerStreamReader":
        """Return the reader of a stream."""
        if not HAS_STREAMS:
            raise NotImplementedError("streams need Spark 4.2 or later")
        return BalerStreamReader(Options(self.options), schema)


class Rows:
    """Reads parts of a source in Spark's tasks. It keeps no state between two parts."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self.options = options
        self.schema = schema

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Iterate over the rows, one batch a chunk."""
        assert isinstance(partition, Piece)
        schema = arrow_schema(self.schema)
        source = partition.source(self.options.source)
        for batch in self.options.tables(source, self.options.type).batches():
            yield fit(pa.record_batch(batch), schema)


class BalerReader(Rows, DataSourceReader):
    """Reads what is there when the query begins."""

    def partitions(self) -> Sequence[InputPartition]:
        """Return parts of the source."""
        positions = self.options.positions()
        return [Piece()] if positions is None else self.options.pieces(positions)


class BalerStreamReader(Rows, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads a topic or a folder as it grows. Spark keeps the position in its checkpoint."""

    def __init__(self, options: Options, schema: StructType) -> None:
        super().__init__(options, schema)
        self.target: dict[int, int] | None = None

    def ends(self) -> dict[int, int]:
        """Return the end of each partition now, or when the query began."""
        if self.target is not None:
            return self.target
        return {key: end for key, (_, end) in baler.positions(self.options.source).items()}

    def initialOffset(self) -> dict[str, int]:
        """Return the oldest chunks."""
        return named({key: start for key, (start, _) in baler.positions(self.options.source).items()})

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit of one batch: Spark has no chunks, so it counts them as files."""
        limit = self.options.chunks_per_trigger
        return ReadAllAvailable() if limit is None else ReadMaxFiles(limit)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """Return the end of the next batch."""
        chunks = limit.max_files if isinstance(limit, ReadMaxFiles) else None
        begun = numbered(start)
        return named({**begun, **limited(begun, self.ends(), chunks)})

    def reportLatestOffset(self) -> dict[str, int]:
        """Return the end of each partition, for the query's progress."""
        return named(self.ends())

    def prepareForTriggerAvailableNow(self) -> None:
        """Fix the end of the query."""
        self.target = self.ends()

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Return the parts of a batch."""
        begun = numbered(start)
        ends = numbered(end).items()
        return self.options.pieces({key: (begun.get(key, 0), last) for key, last in ends})


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the columns that Spark expects in batches."""
    if "timezone" in signature(to_arrow_schema).parameters:
        return to_arrow_schema(schema, timezone="UTC")
    return to_arrow_schema(schema)


def named(position: Mapping[int, int]) -> dict[str, int]:
    """Return a position with keys for JSON."""
    return {str(partition): offset for partition, offset in position.items()}


def numbered(position: Mapping[str, int]) -> dict[int, int]:
    """Return a position from JSON."""
    return {int(partition): int(offset) for partition, offset in position.items()}
