"""`inspect` shows chunks as `baler inspect` does."""

import json
from typing import Any

import pytest
from conftest import GOLDEN, run

import baler


def inspected(path: Any, *arguments: str) -> Any:
    return json.loads(run("inspect", path, "--format", "json", *arguments))


@pytest.mark.parametrize("strings", [0, 3])
def test_chunks_are_shown_as_by_the_program(strings: int) -> None:
    for path in [GOLDEN / "every-type.chunk", GOLDEN / "two-types.chunk"]:
        figures = list(baler.inspect(path, strings=strings, records=2))
        arguments = ["--strings", str(strings), "--records", "2"]
        assert figures == inspected(path, *arguments)["chunks"]
        assert list(figures[0])[:3] == ["lane", "position", "container"]


def test_a_broken_chunk_is_shown_with_the_reason() -> None:
    damaged = bytearray((GOLDEN / "two-types.chunk").read_bytes())
    damaged[-1] ^= 1
    (piece,) = baler.inspect(damaged)
    assert "checksum" in piece["reason"]
    assert piece["bytes"] == len(damaged)
