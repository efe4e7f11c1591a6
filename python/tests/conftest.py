"""Sources of records, and the records in them as the program `baler` writes them."""

import functools
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "common/tests/golden/native"
PROGRAM = os.environ.get("BALER_PROGRAM", str(ROOT / "target/debug/baler"))
LOG_2010 = ROOT / "analysis/tests/data/kieker/operation-executions-2010"

NESTED_LINES = """\
{"id": 1, "tags": ["a", "b"], "matrix": [[1, 2], [], [3]], "big": 18446744073709551615}
{"id": 2, "tags": [], "matrix": [], "big": 9223372036854775808}
{"id": 3, "tags": null, "matrix": null, "big": null, "inner": {"x": -0.5, "y": null}}
{"id": 4, "tags": ["an umlaut: ä"], "matrix": [[]], "big": 0}
"""


def run(*arguments: str | Path) -> str:
    """Runs the program, and returns its standard output."""
    command = [PROGRAM, "--quiet", *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@functools.cache
def received(uri: str, *arguments: str) -> list[Any]:
    """The records of a medium by `baler receive`, with their identities."""
    text = run("receive", "--from", uri, "--format", "json", "--identity", *arguments)
    return [without_epoch(json.loads(line)) for line in text.splitlines()]


def without_epoch(value: Any) -> Any:
    """Records or rows without the time and the random number of an epoch.

    A log and lines of text have none, so each reader gives them its own.
    """
    match value:
        case dict():
            epochs = ("epoch", "_epoch")
            return {k: None if k in epochs else without_epoch(v) for k, v in value.items()}
        case list():
            return [without_epoch(item) for item in value]
        case _:
            return value


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of segments with 6,000 calls in small chunks of two lanes."""
    path = tmp_path_factory.mktemp("segments")
    generated = ["--records", "6k", "--lanes", "2", "--chunk-records", "700", "--seed", "7"]
    run("generate", *generated, "--to", f"file:{path}")
    return path


@pytest.fixture(scope="session")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lines of JSON with lists in lists, nulls, and integers above 2^63."""
    path = tmp_path_factory.mktemp("lines") / "nested.jsonl"
    path.write_text(NESTED_LINES)
    return path


Source = tuple[Any, str]


@pytest.fixture(params=["folder", "every type", "two types", "log of 2010", "lines", "calls"])
def source(request: pytest.FixtureRequest) -> Iterator[Source]:
    """A source as Python names it, and its URI."""
    value: Callable[[str], Any] = request.getfixturevalue
    match request.param:
        case "folder":
            yield value("folder"), f"file:{value('folder')}"
        case "log of 2010":
            yield LOG_2010, f"kieker-log:{LOG_2010}"
        case "lines":
            yield f"jsonl:{value('lines')}", f"jsonl:{value('lines')}"
        case name:
            files = {
                "every type": "every-type.chunk",
                "two types": "two-types.chunk",
                "calls": "kieker-calls-zstd.chunk",
            }
            path = GOLDEN / files[name]
            yield path, f"file:{path}"
