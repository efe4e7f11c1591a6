"""Positions in a folder, and chunks by their numbers."""

from pathlib import Path

import pytest
from conftest import run

import baler


def records(source: baler.Source) -> list[baler.Record]:
    return list(baler.iter_records(source, identity=True))


def test_ranges_of_a_folder_are_parts_of_it(folder: Path) -> None:
    ((start, end),) = baler.positions(str(folder)).values()
    assert baler.positions(f"file:{folder}") == {0: (start, end)}
    assert start == 0 and end > 8
    parts = [records(baler.FileRange(folder, it, it + 1)) for it in range(start, end)]
    # The last chunk of a lane may have no records.
    assert sum(bool(part) for part in parts) >= len(parts) - 2
    assert sum(parts, []) == records(folder)
    assert records(baler.FileRange(folder, 3, 7)) == sum(parts[3:7], [])
    assert records(baler.FileRange(folder, 5, 5)) == []


def test_a_range_that_a_folder_lacks_is_an_error(tmp_path: Path) -> None:
    run("generate", "--records", "1k", "--chunk-records", "100", "--to", f"file:{tmp_path}")
    ((_, end),) = baler.positions(str(tmp_path)).values()
    with pytest.raises(baler.Error, match=f"has the chunks 0 to {end}, not all of 0 to {end + 1}"):
        records(baler.FileRange(tmp_path, 0, end + 1))
    for segment in tmp_path.glob("chunks-*.seg"):
        segment.unlink()
    assert baler.positions(str(tmp_path)) == {0: (0, 0)}
    with pytest.raises(baler.Error, match="has the chunks 0 to 0, not all of 3 to 4"):
        records(baler.FileRange(tmp_path, 3, 4))


def test_a_damaged_chunk_is_not_passed_over(tmp_path: Path) -> None:
    run("generate", "--records", "1k", "--chunk-records", "100", "--to", f"file:{tmp_path}")
    (segment,) = tmp_path.glob("chunks-*.seg")
    content = bytearray(segment.read_bytes())
    # In the middle of the file, so in neither the first nor the last chunk.
    content[len(content) // 2] ^= 1
    segment.write_bytes(content)
    ((start, end),) = baler.positions(str(tmp_path)).values()
    assert end > 9
    failed = []
    for number in range(start, end):
        try:
            records(baler.FileRange(tmp_path, number, number + 1))
        except baler.DecodeError:
            failed.append(number)
    assert failed and 0 < failed[0] < end - 1


def test_only_topics_and_folders_have_positions(lines: Path) -> None:
    with pytest.raises(ValueError, match="is no topic of Kafka"):
        baler.positions(f"jsonl:{lines}")
    with pytest.raises(OSError, match="no-such-folder"):
        baler.positions("/no-such-folder/chunks")
