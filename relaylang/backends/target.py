"""A target: the name of a backend and its options."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from relaylang.diagnostics import RelayError, error
from relaylang.ir import IRModule
from relaylang.runtime.artifact import Artifact

#: Compiles a module for the targets after a backend's own.
CompileRest = Callable[[IRModule], Artifact]


@dataclass(frozen=True)
class Target:
    """One target: a backend's name and its options. Unpacks as `(name, options)`."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Any]:
        return iter((self.name, self.options))

    def get(self, key: str, default: Any = None) -> Any:
        return self.options.get(key, default)

    def __str__(self) -> str:
        return " ".join([self.name, *(f"-{k}" if v is True else f"-{k}={_quoted(str(v))}" for k, v in self.options.items())])


def threads_of(options: Mapping[str, Any]) -> int | None:
    """The most threads that the options allow; None where that is left to who runs the program."""
    threads = options.get("num-threads", options.get("num_threads"))
    if threads is not None and int(threads) < 1:
        raise RelayError(error("R0602", f"option -num-threads wants a number from 1 on, not {threads}"))
    return int(threads) if threads is not None else None


def _quoted(value: str) -> str:
    """A value as it is written in a target string."""
    if not re.search(r"""[\s"'\\,]""", value):
        return value
    return '"' + re.sub(r"""(["\\])""", r"\\\1", value) + '"'
