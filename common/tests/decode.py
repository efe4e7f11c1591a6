#!/usr/bin/env python3
"""Decodes chunks of Baler's native container; written from FORMAT.md and nothing else.

It shares no code with the crate, so that the document is known to be enough.
`decode.py FORMAT.md CHUNK...` prints for each chunk a line with its header and one for each
record, as JSON: floats and bytes in hexadecimal, a nested record as a list of names and values, a map as a list of
such records.
Of the checks that FORMAT.md names, those of memory are left out: it is for chunks of one's own.
"""

import json
import re
import struct
import sys

MASK = (1 << 64) - 1
WIDTHS = {2: 8, 3: 16, 4: 32, 5: 64, 6: 8, 7: 16, 8: 32, 9: 64, 10: 32, 11: 64}
NAMES = {
    "bool": 1, "i8": 2, "i16": 3, "i32": 4, "i64": 5, "u8": 6, "u16": 7, "u32": 8, "u64": 9,
    "f32": 10, "f64": 11, "char": 12, "string": 13, "bytes": 14,
}
BOOL, F32, F64, CHAR, STRING, BYTES, ENUM = 1, 10, 11, 12, 13, 14, 15
OPTIONAL, LIST, RECORD, MAP = 16, 17, 18, 19
CALL = "kieker.common.record.controlflow.OperationExecutionRecord"
TICKS, SIMPLE, REFERENCE, STEPPED = 0x80, {0, 1, 2, 5, 6, 7}, 8, 11


class Refused(Exception):
    """The bytes are not a chunk."""


def check(true, what):
    if not true:
        raise Refused(what)


def crc_of_byte(crc):
    for _ in range(8):
        crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc


CRC_OF_BYTES = [crc_of_byte(byte) for byte in range(256)]


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC_OF_BYTES[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def as_signed(integer):
    return integer - (1 << 64) if integer >> 63 else integer


def wrapped(number):
    return as_signed(number & MASK)


class Cursor:
    def __init__(self, data):
        self.data, self.at = data, 0

    def left(self):
        return len(self.data) - self.at

    def take(self, count):
        check(count <= self.left(), f"{count} bytes at {self.at}, {self.left()} left")
        self.at += count
        return self.data[self.at - count:self.at]

    def number(self, code):
        return struct.unpack("<" + code, self.take(struct.calcsize("<" + code)))[0]

    def varint(self):
        value = shift = 0
        while True:
            byte = self.number("B")
            value |= (byte & 0x7F) << shift
            check(value <= MASK and shift < 70, "varint above 64 bits")
            if byte < 0x80:
                check(byte or not shift, "varint has a longer form than it needs")
                return value
            shift += 7

    def signed(self):
        zigzag = self.varint()
        return (zigzag >> 1) ^ -(zigzag & 1)

    def text(self):
        return self.take(self.varint()).decode("utf-8")

    def end(self, what):
        check(self.left() == 0, f"{self.left()} bytes left over in {what}")


def lz4(data, size):
    """One block of lz4."""
    src, out = Cursor(data), bytearray()

    def length(nibble):
        total = nibble
        while nibble == 15:
            more = src.number("B")
            total += more
            if more != 255:
                break
        return total

    while True:
        token = src.number("B")
        out += src.take(length(token >> 4))
        if src.left() == 0:
            break
        distance = src.number("H")
        check(0 < distance <= len(out), "lz4: distance")
        for _ in range(length(token & 15) + 4):
            out.append(out[-distance])
        check(len(out) <= size, "lz4: more than declared")
    return bytes(out)


def zstd(data, _size):
    try:
        from compression import zstd as library
    except ImportError:
        raise Refused("zstd needs Python 3.14") from None
    return library.decompress(data)


class Header:
    def __init__(self, src):
        check(src.number("H") == 0, "required features")
        optional = src.number("H")
        src = Cursor(src.take(src.varint()))
        self.producer = f"{int.from_bytes(src.take(16), 'little'):032x}"
        self.epoch = [src.number("Q"), src.number("I")]
        self.lane = src.varint()
        check(self.lane < 1 << 32, "lane")
        self.sequence, self.records, self.types, self.strings = (src.varint() for _ in range(4))
        self.last, self.jumped = bool(optional & 1), bool(optional & 2)
        self.clock = self.span = None
        self.losses, self.lost = [], []
        if optional & 4:
            self.clock = [src.number(code) for code in "QqIB"]
            check(self.clock[3] <= 63, "shift")
        if optional & 8:
            first = src.signed()
            self.span = [first, first + src.varint()]
        if optional & 16:
            self.losses = [[src.number("B"), src.varint()] for _ in range(src.varint())]
        if optional & 32:
            self.lost = [[src.varint(), src.varint()] for _ in range(src.varint())]

    def time(self, ticks):
        anchor_ticks, anchor_ns, multiplier, shift = self.clock
        time = anchor_ns + ((ticks - anchor_ticks) * multiplier >> shift)
        return max(-(1 << 63), min((1 << 63) - 1, time))


class Type:
    def __init__(self, code, **more):
        self.code = code
        self.__dict__.update(more)
        self.signed = 2 <= code <= 5
        self.is_integer = code not in (BYTES, OPTIONAL, LIST, RECORD)


def parse_type(src, depth=1):
    check(depth <= 16, "nesting")
    code = src.number("B")
    check(BOOL <= code <= MAP, f"type {code}")
    if code == ENUM:
        return Type(code, name=src.text(), variants=[src.text() for _ in range(src.varint())])
    if code in (OPTIONAL, LIST):
        item = parse_type(src, depth + 1)
        check(code == LIST or item.code != OPTIONAL, "optional of optional")
        return Type(code, item=item)
    if code == RECORD:
        return Type(code, schema=parse_schema(src, depth + 1))
    if code == MAP:
        entry = [("key", Type(STRING), 0), ("value", parse_type(src, depth + 2), 0)]
        return Type(LIST, item=Type(RECORD, schema=("entry", entry)))
    return Type(code)


def parse_schema(src, depth=1):
    name, count = src.text(), src.varint()
    check(count <= 1024, "fields")
    fields = []
    for _ in range(count):
        field = src.text()
        kind = parse_type(src, depth)
        fields.append((field, kind, src.number("B")))
    return name, fields


def well_known(document):
    """The types by number, out of FORMAT.md."""
    types = {}
    block = document.split("### Well-known types")[1].split("```")[1]
    for number, name, fields in re.findall(r"^ *(\d+) ([\w.]+)\n(?:   +(.*)\n)?", block, re.M):
        types[int(number)] = (name, [known_field(field) for field in fields.split(", ") if field])
    return types


def well_known_words(document):
    """The words by number, out of FORMAT.md."""
    block = document.split("### Well-known words")[1].split("```")[1]
    words = re.findall(r"(\d+)`([^`]*)`", block)
    check([int(number) for number, _ in words] == list(range(len(words))), "numbers of words")
    return [word.encode() for _, word in words]


def known_field(text):
    name, kind, *_role = text.split(" ")
    if kind.endswith("[]"):
        return name, Type(LIST, item=Type(NAMES[kind[:-2]])), None
    return name, Type(NAMES[kind]), None


class Body:
    def __init__(self, header, data, known):
        self.header, self.src = header, Cursor(data)
        known, self.tokens = known
        self.schemas = [self.type(known) for _ in range(header.types)]
        self.strings = self.string_table()
        order = [0] * header.records
        if header.types >= 2:
            order = self.integers(self.src, header.records, False) if header.records else []
        tables = [self.table(schema) for schema in self.schemas]
        self.src.end("the body")
        rows = [iter(table) for table in tables]
        self.records = [next(rows[kind]) for kind in order]
        check(all(next(left, None) is None for left in rows), "rows beyond the order")

    def type(self, known):
        number = self.src.varint()
        return known[number] if number else parse_schema(self.src)

    def string_table(self):
        if not self.header.strings:
            return []
        encoding = self.src.number("B")
        check(encoding <= 1, "encoding of strings")
        if encoding == 1:
            return self.strings_of_words()
        lengths = self.integers(self.src, self.header.strings, False)
        return [self.src.take(length).decode("utf-8") for length in lengths]

    def strings_of_words(self):
        total, strings, words = self.src.varint(), [], []
        for _ in range(self.header.strings):
            head = self.src.varint()
            if head == 0:
                string = self.src.take(self.src.varint()).hex().encode()
            elif head == 1:
                string = self.src.take(self.src.varint())
            else:
                string = b""
                if head > 2:
                    distance = self.src.varint()
                    check(1 <= distance <= len(strings), "distance")
                    string = strings[-distance][:head - 2]
                    check(len(string) == head - 2, "beginning")
                for _ in range(self.src.varint()):
                    string += self.word(words)
            strings.append(string)
        check(sum(map(len, strings)) == total, "length of all strings")
        return [string.decode("utf-8") for string in strings]

    def word(self, words):
        code = self.src.varint()
        if code > 32:
            check(code - 33 < len(words), "word")
            return words[code - 33]
        word = self.tokens[self.src.number("B")] if code == 32 else self.src.take(code + 1)
        words.append(word)
        return word

    def table(self, schema):
        name, fields = schema
        src = Cursor(self.src.take(self.src.varint()))
        rows = src.varint()
        if rows == 0:
            check((src.number("B"), name) == (1, CALL), "layout")
            rows = src.varint()
            columns = self.calls(src, rows)
        else:
            self.earlier = []
            columns = []
            for _, kind, _ in fields:
                columns.append(self.column(src, kind, rows, top=True))
        check(rows >= 1, "no rows")
        times = self.integers(src, rows, True, ticks=True, reference=True)
        src.end("a table")
        names = [field for field, _, _ in fields]
        return [
            {"type": name, "timestamp": time, "fields": [list(pair) for pair in zip(names, values)]}
            for time, values in zip(times, zip(*columns) if columns else [()] * rows)
        ]

    def calls(self, src, rows):
        """The columns of a table in the layout 1."""
        count = src.varint()
        check(count <= rows, "traces")
        numbers = lambda many, signed: self.integers(src, many, signed) if many else []
        operations, hosts = numbers(rows, False), numbers(rows, False)
        traces = iter(numbers(count, True))
        session_of_row = src.number("B")
        check(session_of_row <= 1, "kind of sessions")
        sessions = iter(numbers(rows if session_of_row else count, False))
        places, steps, orders = numbers(rows, False), numbers(rows, True), numbers(rows, True)
        ends, gaps = numbers(rows, True), numbers(rows, True)
        state, table = [], []
        for row in range(rows):
            at, step, end, gap = places[row], steps[row], ends[row], gaps[row]
            check(at <= len(state) and at < 256, "place")
            if at == len(state):
                state.append({"open": False, "used": False, "last": end})
            place = state[at]
            if not place["open"]:
                place.update(open=True, begun=False, depth=1, order=0, first={}, trace=next(traces))
                place["session"] = None if session_of_row else next(sessions)
            order = place["order"] + step
            if step == 0 and place["begun"]:
                begin = place["last"] - gap
                if place["depth"] in place["first"]:
                    begin, order = place["first"].pop(place["depth"])
                    begin, order = begin - gap, order - 1
            else:
                begin = place["last"] + (gap if place["used"] else -gap)
            begin, order = wrapped(begin), wrapped(order + orders[row])
            depth = wrapped(place["depth"] + step - 1)
            if 0 <= depth < 32 and depth not in place["first"]:
                place["first"][depth] = begin, order
            place.update(depth=depth, order=max(order, place["order"]), last=end, open=depth != 0,
                         used=True, begun=True)
            session = next(sessions) if session_of_row else place["session"]
            table.append((operations[row], session, place["trace"], begin, end, hosts[row], order, depth))
        check(next(traces, None) is None, "traces")
        columns = [list(column) for column in zip(*table)]
        self.earlier = [None if at in (0, 1, 5) else column for at, column in enumerate(columns)]
        for at in (0, 1, 5):
            columns[at] = [self.strings[integer] for integer in columns[at]]
        for at in (6, 7):
            check(all(-(1 << 31) <= integer < 1 << 31 for integer in columns[at]), "range")
        return columns

    def column(self, src, kind, count, top=False):
        ints = None
        if count == 0:
            values = []
        elif kind.is_integer:
            wide = kind.code in (5, 9)
            ints = self.integers(src, count, kind.signed, ticks=wide, reference=wide and top)
            values = [self.value(kind, integer) for integer in ints]
        elif kind.code == BYTES:
            lengths = self.integers(src, count, False)
            if any(lengths):
                check(src.number("B") == 0x40, "encoding of bytes")
                check(src.varint() == sum(lengths), "sum of lengths")
            values = [src.take(length).hex() for length in lengths]
        elif kind.code == OPTIONAL:
            present = self.integers(src, count, False)
            check(all(flag <= 1 for flag in present), "presence")
            there = iter(self.column(src, kind.item, sum(present)))
            values = [next(there) if flag else None for flag in present]
        elif kind.code == LIST:
            lengths = self.integers(src, count, False)
            items = iter(self.column(src, kind.item, sum(lengths)))
            values = [[next(items) for _ in range(length)] for length in lengths]
        else:
            name, fields = kind.schema
            columns = [self.column(src, field, count) for _, field, _ in fields]
            names = [field for field, _, _ in fields]
            rows = zip(*columns) if columns else [()] * count
            values = [[list(pair) for pair in zip(names, row)] for row in rows]
        if top:
            integers = 2 <= kind.code <= 9
            self.earlier.append(ints if integers else None)
        return values

    def value(self, kind, integer):
        code = kind.code
        if code == BOOL:
            check(integer <= 1, "bool")
            return integer == 1
        if code == CHAR:
            return chr(integer)
        if code == STRING:
            return self.strings[integer]
        if code == ENUM:
            return kind.variants[integer]
        width = WIDTHS[code]
        low = -(1 << width - 1) if kind.signed else 0
        check(low <= integer < low + (1 << width), "range")
        return f"{integer:0{width // 4}x}" if code in (F32, F64) else integer

    def integers(self, src, count, signed, ticks=False, reference=False, simple=False):
        """A column of integers: `count` numbers, negative ones too if it is signed."""
        code = src.number("B")
        payload = Cursor(src.take(src.varint()))
        if code & TICKS:
            check(ticks and self.header.clock and code != TICKS | REFERENCE, "ticks")
            ints = self.decode_integers(payload, code - TICKS, count, False, False, False)
            times = [self.header.time(integer) for integer in ints]
            check(signed or min(times) >= 0, "a time before 1970")
            return times
        return self.decode_integers(payload, code, count, signed, reference, simple)

    def decode_integers(self, src, code, count, signed, reference, simple):
        check(not simple or code in SIMPLE, "simple")
        number = src.signed if signed else src.varint
        wrap = (lambda integer: as_signed(integer & MASK)) if signed else (lambda integer: integer & MASK)
        if code == 0:
            ints = [number()] * count
        elif code == 1:
            ints = [number() for _ in range(count)]
        elif code == 2:
            least = number()
            ints = [wrap(least + more) for more in self.packed(src, src.number("B"), count)]
        elif code == 3:
            runs = src.varint()
            check(1 <= runs <= count, "runs")
            values = self.integers(src, runs, signed, simple=True)
            lengths = self.integers(src, runs, False, simple=True)
            ints = [value for value, more in zip(values, lengths) for _ in range(more + 1)]
        elif code == 4:
            size = src.varint()
            check(1 <= size <= count, "entries")
            entries = self.integers(src, size, signed, simple=True)
            ints = [entries[at] for at in self.packed(src, (size - 1).bit_length(), count)]
        elif code in (5, 6):
            ints = [number()]
            if code == 5:
                steps = (src.signed() for _ in range(count - 1))
            else:
                least, width = src.signed(), src.number("B")
                steps = (least + more for more in self.packed(src, width, count - 1))
            for step in steps:
                ints.append(wrap(ints[-1] + step))
        elif code in (9, 10):
            ints, least = [number()], None
            if code == 10:
                least = src.signed()
            width, many = src.number("B"), count - (code == 10)
            numbers = self.packed(src, width, many)
            large = src.varint()
            check(1 <= large <= many, "patches")
            gaps = self.integers(src, large, False, simple=True)
            above = self.integers(src, large, False, simple=True)
            at = -1
            for gap, high in zip(gaps, above):
                at += gap + 1
                numbers[at] += high << width
            if code == 9:
                ints = [wrap(ints[0] + more) for more in numbers]
            else:
                for more in numbers:
                    ints.append(wrap(ints[-1] + least + more))
        elif code == 7:
            width = src.number("B")
            check(width in (1, 2, 4, 8), "width")
            ints = [int.from_bytes(src.take(width), "little", signed=signed) for _ in range(count)]
        elif code == REFERENCE:
            check(reference, "reference")
            ints = self.earlier[src.varint()]
            check(ints is not None, "reference to a field that is no integer")
            ints = [wrap(integer) for integer in ints]
        elif code == STEPPED:
            step, rest, inner = src.varint(), src.varint(), src.number("B")
            check(step >= 2 and rest < step, "step")
            check(inner != STEPPED, "a step of a step")
            multiples = Cursor(src.take(src.varint()))
            multiples = self.decode_integers(multiples, inner, count, signed, False, False)
            ints = [wrap(rest + step * integer) for integer in multiples]
        else:
            raise Refused(f"encoding {code}")
        src.end("a column")
        check(len(ints) == count, "number of integers")
        return ints

    @staticmethod
    def packed(src, width, count):
        check(width <= 64, "width")
        bits = int.from_bytes(src.take((count * width + 7) // 8), "little")
        return [bits >> at * width & (1 << width) - 1 for at in range(count)]


def decode(chunk, known):
    check(chunk[:4] == b"BALR", "magic")
    src = Cursor(chunk)
    src.take(12)
    check(src.number("I") == crc32c(chunk[:12]), "checksum of the prefix")
    version, body_format, reserved, length = struct.unpack("<BBHI", chunk[4:12])
    check((version, reserved, length) == (1, 0, len(chunk)), "prefix")
    check(struct.unpack("<I", chunk[-4:])[0] == crc32c(chunk[:-4]), "checksum")
    check(body_format == 1, "format")
    src.data = chunk[:-4]
    header = Header(src)
    body, blocks = b"", 0
    while src.left():
        compression, size = src.number("B"), src.varint()
        blocks += 1
        check(size >= 1 and blocks <= 16, "blocks")
        if compression == 0:
            block = src.take(size)
        else:
            block = {1: lz4, 2: zstd}[compression](src.take(src.varint()), size)
        check(len(block) == size, "length of a block")
        body += block
    return header, Body(header, body, known).records


def main(document, *paths):
    with open(document, encoding="utf-8") as file:
        text = file.read()
    known = well_known(text), well_known_words(text)
    for path in paths:
        with open(path, "rb") as file:
            header, records = decode(file.read(), known)
        print(json.dumps(header.__dict__))
        for record in records:
            print(json.dumps(record))


if __name__ == "__main__":
    main(*sys.argv[1:])
