"""Records of different readers in one form: that of `baler receive --format json`."""

import base64
import math
from typing import Any

import pyarrow as pa


def plain(value: Any) -> Any:
    """A value of `iter_records`, as JSON has it."""
    match value:
        case bytes():
            return base64.b64encode(value).decode()
        case float() if math.isnan(value):
            return "NaN"
        case float() if math.isinf(value):
            return "Infinity" if value > 0 else "-Infinity"
        case dict():
            return {key: plain(item) for key, item in value.items()}
        case list():
            return [plain(item) for item in value]
        case _:
            return value


def _without_times(kind: pa.DataType) -> pa.DataType:
    """The type, with integers for points in time and spans, and without dictionaries."""
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return pa.int64()
    if pa.types.is_dictionary(kind):
        return kind.value_type
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_without_times(field.type)) for field in kind])
    if pa.types.is_large_list(kind) or pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_without_times(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, kind.item_field.with_type(_without_times(kind.item_type)))
    return kind


def rows(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of an Arrow table, as JSON has the fields of records."""
    schema = pa.schema([field.with_type(_without_times(field.type)) for field in table.schema])
    return [plain(row) for row in table.cast(schema).to_pylist()]


Key = tuple[str, tuple[str, ...]]


def by_table(records: list[Any]) -> dict[Key, list[dict[str, Any]]]:
    """The records of `baler receive` as rows of tables with identity columns."""
    tables: dict[Key, list[dict[str, Any]]] = {}
    for record in records:
        own = {"timestamp": record["timestamp"], **record["identity"]}
        # The column of a name that a field has already gets one more underscore.
        names = {name: f"_{name}" for name in own}
        for name in names:
            while names[name] in record["fields"]:
                names[name] = f"_{names[name]}"
        row = {names[name]: value for name, value in own.items()} | record["fields"]
        tables.setdefault((record["type"], tuple(sorted(row))), []).append(row)
    return tables
