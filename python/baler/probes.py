"""Probes: each call of a function becomes a record."""

import functools
import inspect
import random
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar, cast, overload

from ._baler import Collector

_Function = TypeVar("_Function", bound=Callable[..., Any])

_HOST = socket.gethostname()


class _Trace:
    """A trace: calls that began in the same outermost call, also in its tasks."""

    def __init__(self) -> None:
        self.id = random.getrandbits(63)
        self.calls = 0


_installed: Collector | None = None

#: The trace of the present call, and the number of calls around the next one.
_current: ContextVar[tuple[_Trace, int] | None] = ContextVar("baler_trace", default=None)


def install(collector: Collector | None) -> None:
    """Let probes record into a collector; ``None`` switches them off. Without one they only call."""
    global _installed
    _installed = collector


@overload
def probe(function: _Function, /) -> _Function: ...
@overload
def probe(*, signature: str | None = None) -> Callable[[_Function], _Function]: ...
def probe(function: Any = None, /, *, signature: str | None = None) -> Any:
    """Record each call of a function as an ``OperationExecutionRecord``, which all analyses know.

    Functions, methods and coroutines can have it. The signature is ``module.Class.function()`` if it
    is not given. A call that raises an exception is recorded, too. Calls in threads have traces of
    their own, and tasks of asyncio belong to the trace of the call that made them.
    """
    if function is None:
        return functools.partial(_wrapped, signature=signature)
    return _wrapped(function, signature)


def _wrapped(function: _Function, signature: str | None) -> _Function:
    name = signature or f"{function.__module__}.{function.__qualname__}()"
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            with _call(name):
                return await function(*args, **kwargs)

        return cast(_Function, awaited)

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        if _installed is None:
            return function(*args, **kwargs)
        with _call(name):
            return function(*args, **kwargs)

    return cast(_Function, called)


@contextmanager
def _call(signature: str) -> Iterator[None]:
    collector = _installed
    if collector is None:
        yield
        return
    trace, depth = _current.get() or (_Trace(), 0)
    order = trace.calls
    trace.calls += 1
    token = _current.set((trace, depth + 1))
    begin = time.time_ns()
    try:
        yield
    finally:
        end = time.time_ns()
        _current.reset(token)
        collector._emit_call(signature, _HOST, (trace.id, begin, end, order, depth))
