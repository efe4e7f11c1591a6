"""Columns that tables and engines have: without unsigned integers, dictionaries and nanoseconds."""

import pyarrow as pa
from pyarrow import types

#: The column with the logging time of a record.
TIMESTAMP = "_timestamp"


def plain_type(kind: pa.DataType, nanoseconds: bool = False) -> pa.DataType:
    """Return the type that takes all values of a type of Baler's columns.

    Points in time have microseconds, or are integers of nanoseconds since 1970. Spans are integers
    of nanoseconds. ``u64`` is a decimal number, since signed integers end at 2^63.
    """
    if types.is_dictionary(kind):
        return plain_type(kind.value_type, nanoseconds)
    if types.is_timestamp(kind):
        return pa.int64() if nanoseconds else pa.timestamp("us", tz="UTC")
    if types.is_struct(kind):
        return pa.struct([plain_field(field, nanoseconds) for field in kind])
    if types.is_list(kind):
        return pa.list_(plain_field(kind.value_field, nanoseconds))
    if types.is_map(kind):
        return pa.map_(kind.key_type, plain_field(kind.item_field, nanoseconds))
    wider = {
        pa.uint8(): pa.int16(),
        pa.uint16(): pa.int32(),
        pa.uint32(): pa.int64(),
        pa.uint64(): pa.decimal128(20, 0),
        pa.duration("ns"): pa.int64(),
    }
    return wider.get(kind, kind)


def plain_field(field: pa.Field, nanoseconds: bool = False) -> pa.Field:
    """Return the field with a plain type. It may be absent: an older version of a type lacks it."""
    return pa.field(field.name, plain_type(field.type, nanoseconds))


def plain_schema(schema: pa.Schema, nanoseconds: bool = False) -> pa.Schema:
    """Return the schema with plain types."""
    return pa.schema([plain_field(field, nanoseconds) for field in schema])


def joined(one: pa.Schema, other: pa.Schema, *, fixed: bool = False) -> pa.Schema:
    """Return the columns of two versions of a type.

    The types are those of ``one`` if they are ``fixed``. Otherwise numbers become wide enough for both,
    and text gives way: a version that had no value of a field has text there.
    """
    both = _joined(pa.struct(one), pa.struct(other), fixed)
    return pa.schema(list(both), one.metadata)


def _joined(one: pa.DataType, other: pa.DataType, fixed: bool) -> pa.DataType:
    if types.is_struct(one) and types.is_struct(other):
        fields = {field.name: field for field in one}
        for field in other:
            known = fields.get(field.name)
            if known is not None:
                field = known.with_type(_joined(known.type, field.type, fixed))
            fields[field.name] = field
        return pa.struct(list(fields.values()))
    if (types.is_list(one) or types.is_large_list(one)) and types.is_list(other):
        field = one.value_field
        field = field.with_type(_joined(field.type, other.value_type, fixed))
        return pa.large_list(field) if types.is_large_list(one) else pa.list_(field)
    if types.is_map(one) and types.is_map(other):
        field = one.item_field
        return pa.map_(one.key_type, field.with_type(_joined(field.type, other.item_type, fixed)))
    if fixed or types.is_string(other):
        return one
    if types.is_string(one) or types.is_floating(other) or types.is_decimal(other):
        return other
    return one


def fit(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return rows with the columns of a schema, by name. A missing column has nulls."""
    names = set(rows.schema.names)
    columns = [
        rows.column(field.name).cast(field.type)
        if field.name in names
        else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.record_batch(columns, schema=schema)
