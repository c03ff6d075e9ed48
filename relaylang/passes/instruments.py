"""Instruments: they watch the passes of a `PassContext`."""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable, Sequence
from typing import Any

from relaylang.diagnostics import RelayError, error
from relaylang.ir import IRModule
from relaylang.ir.structural import structural_equal
from relaylang.passes.analysis import well_formed_problems
from relaylang.passes.context import PassInfo, PassInstrument
from relaylang.syntax import astext
from relaylang.typing import infer

Write = Callable[[str], object]


class PassTimingInstrument(PassInstrument):
    """What each pass took, in the order in which they ran. Read it with `render()` or `times` before the context ends."""

    name = "PassTimingInstrument"

    def __init__(self) -> None:
        self.times: list[tuple[str, float]] = []
        self._started: list[float] = []

    def enter_pass_ctx(self) -> None:
        self.times.clear()

    def exit_pass_ctx(self) -> None:
        self.times.clear()
        self._started.clear()

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        self._started.append(time.perf_counter())

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        self.times.append((info.name, time.perf_counter() - self._started.pop()))

    def render(self) -> str:
        """A line for each pass, in milliseconds, and the sum; nothing where no pass ran in this context."""
        if not self.times:
            return ""
        width = max([len(n) for n, _ in self.times] + [5])
        lines = [f"{name:{width}} {seconds * 1e3:10.3f} ms" for name, seconds in self.times]
        total = sum(s for _, s in self.times)
        return "\n".join([*lines, f"{'total':{width}} {total * 1e3:10.3f} ms"])


class _Printing(PassInstrument):
    """Prints modules around passes; `passes` limits it to those names, `write` takes the text (default: stdout)."""

    def __init__(self, passes: Sequence[str] | None = None, write: Write = print, show_types: bool = False) -> None:
        self.passes = None if passes is None else frozenset(passes)
        self.write = write
        self.show_types = show_types

    def show(self, mod: IRModule, title: str) -> None:
        self.write(f"// ---- {title}\n{astext(mod, show_types=self.show_types)}")

    def wants(self, info: PassInfo) -> bool:
        return self.passes is None or info.name in self.passes


class PrintIRBefore(_Printing):
    """Prints the module that each pass gets."""

    name = "PrintIRBefore"

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        if self.wants(info):
            self.show(mod, f"before {info.name}")


class PrintIRAfter(_Printing):
    """Prints the module that each pass made."""

    name = "PrintIRAfter"

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        if self.wants(info):
            self.show(mod, f"after {info.name}")


PrintBeforeAll = PrintIRBefore
PrintAfterAll = PrintIRAfter


class PrintChanged(_Printing):
    """Prints the functions that a pass changed, or that it changed nothing."""

    name = "PrintChanged"

    def __init__(self, passes: Sequence[str] | None = None, write: Write = print, show_types: bool = False) -> None:
        super().__init__(passes, write, show_types)
        self._before: list[IRModule] = []

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        self._before.append(IRModule(mod.functions, mod.type_definitions, mod.attrs))

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        before = self._before.pop()
        if not self.wants(info):
            return
        old = {gv.name_hint: f for gv, f in before.functions.items()}
        kept = {gv.name_hint for gv in mod.functions}
        changed = {gv: f for gv, f in mod.functions.items() if gv.name_hint not in old or not structural_equal(old[gv.name_hint], f)}
        gone = [n for n in old if n not in kept]
        if not changed and not gone:
            self.write(f"// ---- {info.name}: nothing changed")
            return
        if changed:
            self.show(IRModule(changed), f"after {info.name}")
        if gone:
            self.write(f"// ---- {info.name} removed {', '.join('@' + n for n in gone)}")


class Verify(PassInstrument):
    """After each pass: are the types right and every variable bound once, where it is in scope? Raises `RelayError`."""

    name = "Verify"

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        problems = well_formed_problems(mod)
        wrong = [d for d in infer(mod, fresh=True) if d.severity == "error"] if not problems else problems
        if wrong:
            kind = "not well-formed" if problems else "not well-typed"
            raise RelayError([error("R0504", f"the pass {info.name} made a program that is {kind}"), *wrong])


def pass_instrument(pi_cls: Any = None) -> Any:
    """Make an instrument of a class that has some of the methods of `PassInstrument`."""

    def create(cls: Any) -> Any:
        if not inspect.isclass(cls):
            raise TypeError(f"pass_instrument decorates classes, not {type(cls).__name__}")

        class Made(cls, PassInstrument):  # type: ignore[misc, valid-type]
            pass

        Made.name = cls.__name__
        functools.update_wrapper(Made, cls, updated=())
        return Made

    return create(pi_cls) if pi_cls is not None else create
