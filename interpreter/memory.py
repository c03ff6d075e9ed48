"""A limit to the memory that a program may use."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain, count, repeat
from typing import Any

from relaylang.interpreter.errors import Trap
from relaylang.ir import Expr, TensorType, TupleType, Type, type_text
from relaylang.runtime.machine import DEFAULT_LIMIT, available_memory, resident_memory


def type_bytes(ty: Type | None) -> int:
    """The least bytes of a value of the type; 0 if the type does not show them."""
    total = 0
    stack = [ty]
    while stack:
        item = stack.pop()
        if isinstance(item, TupleType):
            stack.extend(item.fields)
        elif isinstance(item, TensorType):
            size = max(1, _bits(item.dtype) // 8)
            for n in item.shape:
                if not isinstance(n, int):
                    size = 0
                    break
                size *= n
            total += size
    return total


def _bits(dtype: str) -> int:
    digits = "".join(c for c in dtype.split("_")[0] if c.isdigit())
    return int(digits) if digits else 8


def size_text(size: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    raise AssertionError


#: Bytes from which on a value is looked at by itself, with a limit of the caller's and without.
_SMALL, _LARGE = 4096, 64 << 20
#: The depth of recursion at which memory is looked at first.
FIRST_DEPTH = 128
#: The steps, and levels of recursion, between two checks of memory: a check takes as long as some calls.
_EVERY = 128


class MemoryLimit:
    """Stops a program whose memory grows above `limit` bytes from `running()` on. A result whose type says that it would
    not fit is not even begun.

    What counts is what the process takes of the machine's memory, whatever for. Where the system does not say that,
    Python counts its own, and what the counting takes.

    `limit` None is the default: half of the memory that is left at the first look, 4 GB at most. It limits the values of a
    recursion, which may grow without end. A single value may take all that is left.
    """

    def __init__(self, limit: float | None = None) -> None:
        self.given = limit is not None
        self._limit = limit
        self._left: int | None = None
        self._base = 0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Around a program's run."""
        trace = self.given and resident_memory() is None and not tracemalloc.is_tracing()
        if trace:
            tracemalloc.start()
        self._base = _taken()
        try:
            yield
        finally:
            if trace:
                tracemalloc.stop()

    def used(self) -> int:
        """Bytes by which the memory has grown."""
        return max(0, _taken() - self._base)

    def _memory_left(self) -> float:
        if self._left is None:
            available = available_memory()
            self._left = available if available is not None else 1 << 62
        return self._left

    @property
    def limit(self) -> float:
        """The bytes by which the program may grow."""
        if self._limit is None:
            self._limit = min(DEFAULT_LIMIT, (self._memory_left() + self.used()) // 2)
        return self._limit

    def concerns(self, coming: int) -> bool:
        """Whether a value of this size needs a check of memory before it is made."""
        return coming >= (_SMALL if self.given else _LARGE)

    def check_made(self, node: Expr | None, value: Any) -> None:
        """Look at memory where a value is large, or any is of interest."""
        if self.concerns(getattr(value, "nbytes", 0)):
            self.check(node)

    def deeper(self, node: Expr | None, depth: int) -> int:
        """Look at memory at a depth of recursion. Returns that at which to look again."""
        self.check(node)
        return depth + max(_EVERY, depth // 16 if not self.given else 0)

    def check(self, node: Expr | None, coming: int = 0) -> None:
        """Stop if the memory in use and a coming value exceed the limit. Raises `Trap`, or `MemoryError` where nobody gave one."""
        if not self.given and coming:
            # What no machine can address has words of its own, behind the step.
            if self._memory_left() < coming < 1 << 62:
                raise MemoryError(f"it takes {size_text(coming)}, and {size_text(self._memory_left())} are left")
            return
        used = self.used()
        if used + coming > self.limit:
            notes = [f"in use: {size_text(used)}"]
            if coming and node is not None:
                ty = type_text(node.checked_type) if node.checked_type is not None else "large"
                notes.insert(0, f"the value is {ty}, {size_text(coming)}")
            if not self.given:
                notes.append("a recursion without an end needs ever more; --memory-limit (memory_limit=) allows more to one that ends")
            raise Trap("R0408", f"the program needs more than the {size_text(self.limit)} that it may use", node, notes)

    def ticks(self) -> Callable[[Any], None]:
        """Something to call where a program makes values, which now and then looks at memory. None of it is Python's code,
        so that a call takes hardly any time."""

        def look(number: int) -> Iterator[None]:
            if number:
                self.check(None)
            return repeat(None, _EVERY)

        return partial(next, chain.from_iterable(map(look, count())))


def _taken() -> int:
    """Bytes that this process takes, or that Python has counted; 0 where nobody counts."""
    resident = resident_memory()
    if resident is not None:
        return resident
    return tracemalloc.get_traced_memory()[0] + tracemalloc.get_tracemalloc_memory() if tracemalloc.is_tracing() else 0
