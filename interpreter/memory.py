"""A limit to the memory that a program may use."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

from relaylang.interpreter.errors import Trap
from relaylang.ir import Expr, TensorType, TupleType, Type, type_text


def type_bytes(ty: Type | None) -> int:
    """What a value of the type takes at least; 0 where the type does not tell."""
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


def size_text(count: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError


class MemoryLimit:
    """Counts what is allocated from `running()` on, arrays and everything else, and stops the program above `limit`
    bytes. A result whose type says that it would not fit is not even begun."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.base = 0

    @contextmanager
    def running(self) -> Iterator[None]:
        ours = not tracemalloc.is_tracing()
        if ours:
            tracemalloc.start()
        self.base = tracemalloc.get_traced_memory()[0]
        try:
            yield
        finally:
            if ours:
                tracemalloc.stop()

    def used(self) -> int:
        return tracemalloc.get_traced_memory()[0] - self.base

    def check(self, node: Expr | None, coming: int = 0) -> None:
        """Stop if what is in use and what is coming exceed the limit."""
        if tracemalloc.get_traced_memory()[0] - self.base + coming > self.limit:
            ty = node.checked_type if node is not None else None
            notes = [f"in use: {size_text(self.used())}"]
            if coming and ty is not None:
                notes.insert(0, f"the value is {type_text(ty)}, {size_text(coming)}")
            raise Trap("R0408", f"the program needs more than the {size_text(self.limit)} that it may use", node, notes)
