"""A window of a minute in an hour of chunks: few chunks are decoded, and no record is missing."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from brokers import mock_topic
from conftest import run

import baler

BEGIN = datetime(2026, 11, 29, 12, tzinfo=timezone.utc)
SECOND = 10**9


@pytest.fixture(params=["folder", "mock"])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A medium with a record a second, and 180 chunks."""
    if request.param == "folder":
        fill(f"file:{tmp_path}/ticks")
        yield f"file:{tmp_path}/ticks"
    else:
        with mock_topic(tmp_path) as uri:
            fill(uri)
            # The receiver that starts the mock is a member of the group `baler`, and takes chunks.
            yield f"{uri}?group.id=window"


def fill(uri: str) -> None:
    begin = int(BEGIN.timestamp()) * SECOND
    with baler.Collector(uri, chunk_records=20) as collector:
        for second in range(3_600):
            collector.emit("Tick", begin + second * SECOND, second=second)


def test_a_window_is_whole_and_few_chunks_are_decoded(uri: str, tmp_path: Path) -> None:
    since, until = BEGIN + timedelta(minutes=30), BEGIN + timedelta(minutes=31)
    window = list(range(1_800, 1_860))
    found = baler.iter_records(uri, "Tick", since=since, until=until)
    assert [record["fields"]["second"] for record in found] == window
    table = pa.table(baler.read(uri, "Tick", since=since, until=until)["Tick"])
    assert table["second"].to_pylist() == window
    # The whole is there, too.
    assert len(list(baler.iter_records(uri, "Tick"))) == 3_600

    summary = tmp_path / "summary.json"
    span = ["--since", since.isoformat(), "--until", until.isoformat(), "--type", "Tick"]
    command = ["receive", "--from", uri, "--format", "json", "--idle-timeout", "5s", *span]
    text = run(*command, "--summary", summary)
    assert [json.loads(line)["fields"]["second"] for line in text.splitlines()] == window
    figures = json.loads(summary.read_text())
    whole = figures["chunks"] + figures["chunks_outside_time"]
    assert whole >= 180
    assert figures["chunks"] <= whole * 0.05
    assert figures["acknowledged"] == whole


def test_a_wrong_window_is_an_error() -> None:
    with pytest.raises(ValueError, match="since is not before until"):
        baler.read("calls", since=2, until=2)
    with pytest.raises(TypeError):
        baler.read("calls", since="yesterday")  # type: ignore[arg-type]
