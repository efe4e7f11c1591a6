"""The exceptions of this package.

A wrong argument is a ``ValueError``, and a path that cannot be read an ``OSError``, as everywhere
in Python.
"""


class Error(Exception):
    """A medium failed, or records cannot be converted."""


class DecodeError(Error):
    """A chunk is damaged, or of a kind that this version does not know."""

    offset: int | None
    """The byte in the chunk at which decoding failed; ``None`` if no chunk was recognised."""
    field: str | None
    """The item that was being read."""
    origin: str
    """The medium, and the place of the chunk in it."""

    def __init__(self, message: str, offset: int | None, field: str | None, origin: str) -> None:
        super().__init__(message, offset, field, origin)
        self.offset = offset
        self.field = field
        self.origin = origin

    def __str__(self) -> str:
        return str(self.args[0])
