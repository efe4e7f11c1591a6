"""`where` and `fields` select as `baler receive --where` and `--fields` do."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from conftest import GOLDEN, Source, received, without_epoch
from values import plain, rows

import baler

NAME = "OperationExecutionRecord"
CONDITIONS = [
    "timestamp != null && type.contains('a')",
    "lane >= 0 && epoch != ''",
    "false",
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_conditions_select_as_the_program_does(condition: str, source: Source) -> None:
    named, uri = source
    found = baler.iter_records(named, where=condition, identity=True)
    expected = received(uri, "--where", condition)
    assert without_epoch([plain(record) for record in found]) == expected
    tables = baler.read(named, where=condition)
    assert sum(pa.table(table).num_rows for table in tables) == len(expected)


def test_all_selections_go_together(folder: Path) -> None:
    condition, fields = "ess > 0 && tout - tin > 1000", ["tin", f"{NAME}.ess"]
    found = baler.iter_records(folder, NAME, condition, fields, identity=True)
    selection = ["--type", NAME, "--where", condition, "--fields", ",".join(fields)]
    expected = received(f"file:{folder}", *selection)
    assert without_epoch(list(found)) == expected
    assert 0 < len(expected) < 6_000
    table = pa.table(baler.read(folder, NAME, condition, fields)[NAME])
    assert table.column_names == ["_timestamp", "tin", "ess"]
    assert [row["tin"] for row in rows(table)] == [it["fields"]["tin"] for it in expected]


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        ({"where": "ess >"}, "where `ess >`: line 1, column 6"),
        ({"where": "es > 0"}, "no record type has es; did you mean ess?"),
        ({"where": "hostname > 0"}, 'where cannot judge a record: .*hostname .string. is "'),
        ({"fields": "es"}, "no record type has es; did you mean ess?"),
        ({"fields": ["Order.id"]}, "no record type has Order.id; the types that came have"),
        ({"fields": ["ess", ""]}, "a name is empty"),
    ],
)
def test_a_wrong_selection_is_an_error(selection: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        list(baler.iter_records(GOLDEN / "kieker-calls.chunk", **selection))
