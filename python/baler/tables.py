"""Writes records into tables, each record once: ``python -m baler.tables delta --from URI --to FOLDER``.

There is one table a record type. Rows and the position up to which they were read are one commit of
the table, and the position is read before each commit. So a process may be killed at any point, or
run twice by mistake: the next one goes on from the position in the table.
"""

import argparse
import fcntl
import functools
import json
import os
import sys
import time
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote, unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc

import baler

from ._plain import TIMESTAMP, fit, joined, plain_schema
from ._positions import Position, limited, range_of

#: The column of the day in UTC by which Delta tables are partitioned.
DAY = "_day"

#: What to install for each format.
NEEDED = {
    "delta": "pip install pyarrow deltalake",
    "iceberg": "pip install 'pyiceberg[pyarrow,pyiceberg-core,sql-sqlite]'",
    "parquet": "pip install pyarrow",
}


class Conflict(Exception):
    """Another writer committed first."""


class Table(Protocol):
    """The table of one record type, as it was when it was opened."""

    def schema(self) -> pa.Schema:
        """Return the columns."""

    def position(self, partitions: Iterable[int]) -> Position:
        """Return the next offset of each partition that the table knows."""

    def commit(self, rows: pa.Table, position: Position) -> None:
        """Append rows and set the position in one transaction.

        Raises ``Conflict`` if anybody has committed since the table was opened.
        """


class Store(Protocol):
    """A place with one table a record type."""

    def tables(self) -> dict[str, Table]:
        """Open all tables, by record type."""

    def create(self, record_type: str, schema: pa.Schema, position: Position) -> None:
        """Create an empty table with a position; raises ``Conflict`` if there is one."""


class DeltaStore:
    """Delta tables in a folder. The position is an application transaction a partition."""

    def __init__(self, folder: Path, source: str) -> None:
        self.folder = folder
        self.source = source

    def tables(self) -> dict[str, Table]:
        import deltalake

        folders = sorted(self.folder.iterdir()) if self.folder.is_dir() else []
        return {
            unquote(folder.name): DeltaTable(deltalake.DeltaTable(folder), self.source)
            for folder in folders
            if deltalake.DeltaTable.is_deltatable(str(folder))
        }

    def create(self, record_type: str, schema: pa.Schema, position: Position) -> None:
        import deltalake

        if TIMESTAMP in schema.names:
            schema = schema.append(pa.field(DAY, pa.date32()))
        partition_by = [DAY] if DAY in schema.names else None
        try:
            deltalake.write_deltalake(
                self.folder / folder_name(record_type),
                schema.empty_table(),
                mode="error",
                partition_by=partition_by,
                commit_properties=transactions(self.source, position),
            )
        except (FileExistsError, deltalake.exceptions.DeltaError) as error:
            raise Conflict from error


class DeltaTable:
    """A Delta table at one of its versions."""

    def __init__(self, table: Any, source: str) -> None:
        self.table = table
        self.source = source

    def schema(self) -> pa.Schema:
        columns = pa.schema(self.table.schema().to_arrow())
        return pa.schema([field for field in columns if field.name != DAY])

    def position(self, partitions: Iterable[int]) -> Position:
        versions = {it: self.table.transaction_version(f"{self.source}/{it}") for it in partitions}
        return {it: version for it, version in versions.items() if version is not None}

    def commit(self, rows: pa.Table, position: Position) -> None:
        import deltalake

        if TIMESTAMP in rows.schema.names:
            rows = rows.append_column(DAY, pc.cast(rows[TIMESTAMP], pa.timestamp("us")).cast(pa.date32()))
        try:
            deltalake.write_deltalake(
                self.table,
                rows,
                mode="append",
                schema_mode="merge",
                commit_properties=transactions(self.source, position),
            )
        except deltalake.exceptions.CommitFailedError as error:
            raise Conflict from error


def transactions(source: str, position: Position) -> Any:
    """Return a commit that fails if it is not the next one of the table."""
    from deltalake import CommitProperties, Transaction

    ids = [Transaction(f"{source}/{it}", offset) for it, offset in sorted(position.items())]
    # delta-rs would commit the same transaction again on top of another writer's.
    return CommitProperties(app_transactions=ids, max_commit_retries=0)


class IcebergStore:
    """Iceberg tables of a catalog. The position is a property of the snapshot with the rows."""

    NAMESPACE = "baler"
    TYPE = "baler.type"
    RETRIES = "commit.retry.num-retries"

    def __init__(self, folder: Path, source: str, catalog: str | None) -> None:
        from pyiceberg.catalog import load_catalog

        self.source = source
        if catalog is None:
            folder.mkdir(parents=True, exist_ok=True)
            folder = folder.resolve()
            # Two writers that begin at the same time must not both create the catalog.
            with open(folder / "catalog.lock", "w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                self.catalog = load_catalog(
                    "baler",
                    type="sql",
                    uri=f"sqlite:///{folder}/catalog.db?timeout=60",
                    warehouse=folder.as_uri(),
                )
        else:
            self.catalog = load_catalog(catalog)
        try:
            self.catalog.create_namespace_if_not_exists(self.NAMESPACE)
        except Exception:
            # Two writers begin at the same time; each catalog has an exception of its own for it.
            if not self.catalog.namespace_exists(self.NAMESPACE):
                raise

    def tables(self) -> dict[str, Table]:
        tables = map(self.catalog.load_table, self.catalog.list_tables(self.NAMESPACE))
        return {
            table.properties[self.TYPE]: IcebergTable(table, self.source)
            for table in tables
            if self.TYPE in table.properties
        }

    def create(self, record_type: str, schema: pa.Schema, position: Position) -> None:
        from pyiceberg.exceptions import CommitFailedException, TableAlreadyExistsError
        from pyiceberg.transforms import DayTransform

        name = (self.NAMESPACE, record_type.replace(".", "_"))
        # PyIceberg would append the same rows again on top of another writer's.
        properties = {self.TYPE: record_type, self.RETRIES: "0", **property_of(self.source, position)}
        try:
            with self.catalog.create_table_transaction(name, schema, properties=properties) as new:
                if TIMESTAMP in schema.names:
                    with new.update_spec() as spec:
                        spec.add_field(TIMESTAMP, DayTransform(), "day")
        except (TableAlreadyExistsError, CommitFailedException) as error:
            raise Conflict from error


class IcebergTable:
    """An Iceberg table at one of its snapshots."""

    def __init__(self, table: Any, source: str) -> None:
        self.table = table
        self.source = source

    def schema(self) -> pa.Schema:
        return self.table.schema().as_arrow()

    def position(self, partitions: Iterable[int]) -> Position:
        (name,) = property_of(self.source, {})
        # Other programs commit snapshots without a position, such as a compaction, and remove old
        # snapshots: the table itself has the position, too. A table that was rolled back has the
        # position of the snapshot.
        text = self.table.properties.get(name)
        snapshot = self.table.current_snapshot()
        while snapshot is not None:
            if name in snapshot.summary:
                text = snapshot.summary[name]
                break
            parent = snapshot.parent_snapshot_id
            snapshot = None if parent is None else self.table.snapshot_by_id(parent)
        position = json.loads(text) if text else {}
        return {it: position[str(it)] for it in partitions if str(it) in position}

    def commit(self, rows: pa.Table, position: Position) -> None:
        from pyiceberg.exceptions import CommitFailedException

        position = {**self.position(position), **position}
        properties = property_of(self.source, position)
        try:
            with self.table.transaction() as transaction:
                with transaction.update_schema() as schema:
                    schema.union_by_name(rows.schema)
                transaction.append(rows, snapshot_properties=properties)
                transaction.set_properties(properties)
        except CommitFailedException as error:
            raise Conflict from error


def property_of(source: str, position: Position) -> dict[str, str]:
    """Return a position as a property of a table or of a snapshot."""
    return {f"baler.position.{source}": json.dumps(position)}


class ParquetStore:
    """Folders of numbered Parquet files. Each file has the position after its rows."""

    def __init__(self, folder: Path, source: str) -> None:
        self.folder = folder
        self.source = source

    def tables(self) -> dict[str, Table]:
        folders = sorted(self.folder.iterdir()) if self.folder.is_dir() else []
        tables = {unquote(it.name): ParquetTable(it, self.source) for it in folders if it.is_dir()}
        return {name: table for name, table in tables.items() if table.last is not None}

    def create(self, record_type: str, schema: pa.Schema, position: Position) -> None:
        folder = self.folder / folder_name(record_type)
        folder.mkdir(parents=True, exist_ok=True)
        sync(self.folder)
        table = ParquetTable(folder, self.source)
        if table.last is not None:
            raise Conflict
        table.commit(schema.empty_table(), position)


class ParquetTable:
    """A folder of Parquet files up to the file that was the last one."""

    KEY = b"baler.positions"

    def __init__(self, folder: Path, source: str) -> None:
        self.folder = folder
        self.source = source
        self.last = max(folder.glob("part-*.parquet"), default=None)

    def schema(self) -> pa.Schema:
        import pyarrow.parquet as pq

        return pa.schema([]) if self.last is None else pq.read_schema(self.last)

    def positions(self) -> dict[str, dict[str, int]]:
        """Return the position in each source."""
        metadata = self.schema().metadata or {}
        positions: dict[str, dict[str, int]] = json.loads(metadata.get(self.KEY, b"{}"))
        return positions

    def position(self, partitions: Iterable[int]) -> Position:
        position = self.positions().get(self.source, {})
        return {it: position[str(it)] for it in partitions if str(it) in position}

    def commit(self, rows: pa.Table, position: Position) -> None:
        import pyarrow.parquet as pq

        positions = self.positions()
        named = {str(partition): offset for partition, offset in position.items()}
        positions[self.source] = {**positions.get(self.source, {}), **named}
        metadata = {**(rows.schema.metadata or {}), self.KEY: json.dumps(positions).encode()}
        number = 0 if self.last is None else int(self.last.stem.removeprefix("part-")) + 1
        hidden = self.folder / f".{uuid.uuid4().hex}.tmp"
        pq.write_table(rows.replace_schema_metadata(metadata), hidden, compression="zstd")
        sync(hidden)
        try:
            # Unlike a rename, a link does not replace another writer's file.
            os.link(hidden, self.folder / f"part-{number:012}.parquet")
        except FileExistsError as error:
            raise Conflict from error
        finally:
            hidden.unlink()
        sync(self.folder)


def sync(path: Path) -> None:
    """Force a file or a folder to disk."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def folder_name(record_type: str) -> str:
    """Return the name of a record type's folder."""
    return quote(record_type, safe="")


class Copy:
    """Copies chunks of a source into the tables of a store."""

    def __init__(
        self,
        store: Store,
        source: str,
        *,
        types: list[str] | None = None,
        chunks: int = 500,
        identity: bool = False,
        nanoseconds: bool = False,
        skip_removed: bool = False,
    ) -> None:
        self.store = store
        self.source = source
        self.types = types
        self.chunks = chunks
        self.identity = identity
        self.nanoseconds = nanoseconds
        self.skip_removed = skip_removed
        self.rows = 0

    def run(self, follow: float | None = None) -> None:
        """Copy all chunks that are there now; or go on for ever, and look so many seconds later."""
        while True:
            there = baler.positions(self.source)
            try:
                while self.step(there):
                    pass
            except Conflict:
                say("another writer has committed: reading the tables again")
                continue
            if follow is None:
                return
            time.sleep(follow)

    def step(self, there: dict[int, tuple[int, int]]) -> bool:
        """Bring the tables that are most behind forward. Returns false if none is behind."""
        tables = self.store.tables()
        positions = {name: self.begin(there, table) for name, table in tables.items()}
        # Tables differ after a crash between two commits. A type without a table has had no rows
        # before the lowest position: tables are created before rows are committed.
        start = min(positions.values(), key=lambda it: sum(it.values()), default=self.begin(there))
        behind = {name for name, position in positions.items() if position == start}
        end = limited(start, {it: last for it, (_, last) in there.items()}, self.chunks)
        if end == start:
            return False
        rows = self.read(start, end, {name: table.schema() for name, table in tables.items()})
        new = sorted(rows.keys() - tables.keys())
        for name in new:
            self.store.create(name, rows[name].schema, start)
        if new:
            tables = self.store.tables()
        for name in sorted(behind | set(new)):
            table = tables[name]
            # Somebody may have written it since its position was read.
            if self.begin(there, table) != start:
                raise Conflict
            # Without rows, only the position goes forward.
            added = rows[name] if name in rows else table.schema().empty_table()
            table.commit(added, end)
            self.rows += added.num_rows
            say(f"{name}: {added.num_rows:,} rows up to {end}")
        return True

    def read(
        self, start: Position, end: Position, known: dict[str, pa.Schema]
    ) -> dict[str, pa.Table]:
        """Return the rows between two positions, by record type. Known columns keep their types."""
        offsets = {it: (start[it], last) for it, last in end.items() if last > start[it]}
        chosen = baler.read(
            range_of(self.source, offsets),
            self.types,
            identity=self.identity,
            times="ns" if self.nanoseconds else "us",
        )
        found: dict[str, list[pa.RecordBatch]] = {}
        for batch in chosen.batches():
            found.setdefault(batch.type, []).append(pa.record_batch(batch))
        tables = {}
        for name, batches in found.items():
            # Two versions of a type may have different fields.
            plain = [plain_schema(batch.schema, self.nanoseconds) for batch in batches]
            schema = functools.reduce(joined, plain)
            if name in known:
                schema = joined(known[name], schema, fixed=True)
            try:
                fitted = [fit(batch, schema) for batch in batches]
            except pa.ArrowException as error:
                raise ValueError(f"{name}: its versions do not fit one table: {error}") from error
            tables[name] = pa.Table.from_batches(fitted, schema)
        return tables

    def begin(self, there: dict[int, tuple[int, int]], table: Table | None = None) -> Position:
        """Return where a table goes on."""
        position = table.position(there) if table is not None else {}
        for partition, (oldest, end) in there.items():
            offset = position.setdefault(partition, oldest)
            if offset > end:
                raise ValueError(
                    f"{self.source}: partition {partition} ends at {end}, and the table is at {offset}: "
                    "is it the same source? Use another --to, or name this one by --source"
                )
            if offset < oldest:
                lost = f"{self.source}: the chunks {offset} to {oldest} of partition {partition} were removed"
                if not self.skip_removed:
                    raise ValueError(f"{lost} before they were copied; go on by --skip-removed")
                say(f"{lost}, and are skipped")
                position[partition] = oldest
        return position


def source_name(source: str) -> str:
    """Return the name of a source, which stays when the address of a cluster changes."""
    if source.startswith("kafka:"):
        return "kafka/" + urlsplit(source).path.strip("/")
    return str(Path(source.removeprefix("file:").removeprefix("//")).resolve())


def say(text: str) -> None:
    """Tell the user."""
    print(text, file=sys.stderr, flush=True)


def arguments(words: list[str] | None) -> argparse.Namespace:
    """Return the arguments of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m baler.tables",
        description="Write records into tables, each record once: a table a record type.",
    )
    parser.add_argument("format", choices=["delta", "iceberg", "parquet"])
    parser.add_argument("--from", dest="source", required=True, metavar="URI",
                        help="a topic of Kafka, or a folder of segments")
    parser.add_argument("--to", type=Path, required=True, metavar="FOLDER",
                        help="the folder of the tables")
    parser.add_argument("--types", nargs="+", metavar="TYPE", help="only these record types")
    parser.add_argument("--identity", action="store_true", help="add the columns that name a record")
    parser.add_argument("--times", choices=["us", "ns"], default="us",
                        help="points in time in microseconds, or as integers of nanoseconds")
    parser.add_argument("--chunks", type=int, default=500, metavar="N",
                        help="the most chunks in one commit, which are in memory together (500)")
    parser.add_argument("--follow", type=float, metavar="SECONDS",
                        help="go on for ever, and look for new chunks so often")
    parser.add_argument("--source", dest="name", metavar="NAME",
                        help="the name under which tables keep the position (the topic or folder)")
    parser.add_argument("--skip-removed", action="store_true",
                        help="go on after chunks that were removed before they were copied")
    parser.add_argument("--catalog", metavar="NAME",
                        help="a catalog of PyIceberg's configuration (an SQLite file in the folder)")
    chosen = parser.parse_args(words)
    if chosen.chunks < 1:
        parser.error("--chunks is 1 or more")
    if chosen.follow is not None and chosen.follow <= 0:
        parser.error("--follow is above 0")
    return chosen


def main(words: list[str] | None = None) -> int:
    """Run the program. Returns its exit code: 0, or 1 after an error."""
    chosen = arguments(words)
    name = chosen.name or source_name(chosen.source)
    try:
        store: Store
        match chosen.format:
            case "delta":
                store = DeltaStore(chosen.to, name)
            case "iceberg":
                store = IcebergStore(chosen.to, name, chosen.catalog)
            case _:
                store = ParquetStore(chosen.to, name)
        copy = Copy(
            store,
            chosen.source,
            types=chosen.types,
            chunks=chosen.chunks,
            identity=chosen.identity,
            nanoseconds=chosen.times == "ns",
            skip_removed=chosen.skip_removed,
        )
        copy.run(chosen.follow)
    except KeyboardInterrupt:
        return 130
    except (OSError, ValueError, baler.Error) as error:
        say(f"error: {error}")
        return 1
    except ImportError as error:
        say(f"error: {error}: install what writes {chosen.format} tables: {NEEDED[chosen.format]}")
        return 1
    say(f"{copy.rows:,} rows were added to {chosen.to}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
