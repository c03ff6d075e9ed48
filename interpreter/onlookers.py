"""The onlookers of a run: an observer, a watch, and the limit to memory. They add to the steps that are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from relaylang.interpreter.memory import MemoryLimit
from relaylang.interpreter.values import Value
from relaylang.interpreter.watch import Watch
from relaylang.ir import Expr, Var


@dataclass(frozen=True)
class Binding:
    """A variable, and the operator call that it is bound to: an observer gets one with each value."""

    variable: Var
    value: Expr


#: Called behind each operator call with its binding, its value and the seconds that it took.
Observer = Callable[[Binding, Value, float], None]


class Onlookers:
    """Who looks on while code runs. `plain` says that neither an observer nor a watch does."""

    def __init__(self, observer: Observer | None = None, watch: Watch | None = None, limit: MemoryLimit | None = None) -> None:
        self.observer = observer
        self.watch = watch
        self.limit = limit if limit is not None else MemoryLimit()
        self.tick = self.limit.ticks()
        self.plain = observer is None and watch is None
        self.keep_all = watch is not None and watch.keep_all


__all__ = ["Binding", "Observer", "Onlookers"]
