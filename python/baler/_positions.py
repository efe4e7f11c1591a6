"""Positions in a topic or in a folder of segments: the next offset of each partition."""

from collections.abc import Mapping

from ._baler import FileRange, KafkaRange

#: The next offset of each partition.
Position = dict[int, int]


def range_of(source: str, offsets: Mapping[int, tuple[int, int]]) -> FileRange | KafkaRange:
    """Return the chunks of a source at these offsets; the ends are excluded."""
    if source.startswith("kafka:"):
        return KafkaRange(source, offsets)
    ((start, end),) = offsets.values()
    return FileRange(source.removeprefix("file:").removeprefix("//"), start, end)


def limited(start: Mapping[int, int], ends: Mapping[int, int], chunks: int | None) -> Position:
    """Return the position after at most so many chunks, shared among the partitions that have some."""
    position, left = {}, chunks
    for number, (partition, end) in enumerate(sorted(ends.items())):
        first = start.get(partition, 0)
        take = max(end - first, 0)
        if left is not None:
            # Rounded up, so that no partition waits for ever.
            take = min(take, -(-left // (len(ends) - number)))
            left -= take
        position[partition] = first + take
    return position
