#!/usr/bin/env python3
"""Prints what pyarrow finds in folders of Parquet files, as JSON.

`read_back.py FOLDER...` reads each folder as one dataset, with the partitions that its names tell,
and prints a line with the columns' types, and a line for each row, as an object.
Points in time and spans are printed as their number, floats as their bits and bytes in
hexadecimal: nothing is rounded or cut.
"""

import json
import sys

import pyarrow as pa
import pyarrow.dataset as ds

BITS = {pa.float32(): (pa.uint32(), "08x"), pa.float64(): (pa.uint64(), "016x")}


def values(array):
    """The values of an array, as JSON can hold them."""
    if isinstance(array, pa.ChunkedArray):
        return [value for chunk in array.chunks for value in values(chunk)]
    kind = array.type
    if pa.types.is_dictionary(kind):
        found = values(array.dictionary_decode())
    elif kind in BITS:
        bits, form = BITS[kind]
        found = [value and format(value.as_py() or 0, form) for value in array.view(bits)]
    elif pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        found = array.view(pa.int64()).to_pylist()
    elif pa.types.is_binary(kind):
        found = [value and value.hex() if value else value for value in array.to_pylist()]
        found = ["" if value == b"" else value for value in found]
    elif pa.types.is_struct(kind):
        fields = [values(array.field(at)) for at in range(kind.num_fields)]
        names = [kind.field(at).name for at in range(kind.num_fields)]
        rows = zip(*fields) if fields else ([] for _ in range(len(array)))
        found = [[[name, value] for name, value in zip(names, row)] for row in rows]
    elif pa.types.is_list(kind):
        items, offsets = values(array.values), array.offsets.to_pylist()
        found = [items[begin:end] for begin, end in zip(offsets, offsets[1:])]
    else:
        found = array.to_pylist()
    return [value if there else None for value, there in zip(found, array.is_valid().to_pylist())]


def main(*folders):
    for folder in folders:
        table = ds.dataset(folder, format="parquet", partitioning="hive").to_table()
        print(json.dumps({field.name: str(field.type) for field in table.schema}))
        columns = [values(column) for column in table.columns]
        for row in zip(*columns):
            print(json.dumps(dict(zip(table.column_names, row))))


if __name__ == "__main__":
    main(*sys.argv[1:])
