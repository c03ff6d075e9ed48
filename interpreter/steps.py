"""Steps: closures over slot numbers, each of which computes one binding; and how calls and matches read their slots.

Small arities are written out because calls are what evaluation spends its time on.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

from relaylang.interpreter.code import Code, Slots, Step
from relaylang.interpreter.errors import Fault
from relaylang.interpreter.memory import MemoryLimit
from relaylang.interpreter.onlookers import Binding, Observer
from relaylang.interpreter.values import Closure, ConstructorValue, RefValue, Value
from relaylang.interpreter.watch import Site, Watch
from relaylang.ir import Constructor, Expr, Pattern, PatternConstructor, PatternTuple, PatternVar, Var


def op_step(kernel: Callable[..., Value], attrs: Any, into: int, args: tuple[int, ...]) -> Step:
    if len(args) == 1:
        (a,) = args

        def one(r: Slots) -> None:
            r[into] = kernel(attrs, r[a])

        return one
    if len(args) == 2:
        a, b = args

        def two(r: Slots) -> None:
            r[into] = kernel(attrs, r[a], r[b])

        return two

    def many(r: Slots) -> None:
        r[into] = kernel(attrs, *[r[i] for i in args])

    return many


def move_step(into: int, source: int) -> Step:
    def move(r: Slots) -> None:
        r[into] = r[source]

    return move


def tuple_step(into: int, args: tuple[int, ...]) -> Step:
    def make(r: Slots) -> None:
        r[into] = tuple([r[i] for i in args])

    return make


def field_step(into: int, source: int, index: int) -> Step:
    def get(r: Slots) -> None:
        r[into] = r[source][index]

    return get


def constructor_step(constructor: Constructor, into: int, args: tuple[int, ...]) -> Step:
    def make(r: Slots) -> None:
        r[into] = ConstructorValue(constructor, tuple([r[i] for i in args]))

    return make


def closure_step(code: Code, into: int, captured: tuple[int, ...]) -> Step:
    def make(r: Slots) -> None:
        r[into] = closure = Closure(code, [])
        closure.captured = [r[i] for i in captured]

    return make


def new_ref_step(into: int, source: int) -> Step:
    def make(r: Slots) -> None:
        r[into] = RefValue(r[source])

    return make


def read_step(into: int, source: int) -> Step:
    def read(r: Slots) -> None:
        cell = r[source]
        if cell is None or cell.value is None:
            raise Fault("R0411", "the reference has no value yet")
        r[into] = cell.value

    return read


def write_step(into: int, cell: int, source: int) -> Step:
    def write(r: Slots) -> None:
        r[cell].value = r[source]
        r[into] = ()

    return write


def drop_step(dead: list[int]) -> Step:
    if len(dead) == 1:
        (a,) = dead

        def drop_one(r: Slots) -> None:
            r[a] = None

        return drop_one

    def drop(r: Slots) -> None:
        for i in dead:
            r[i] = None

    return drop


def observed(step: Step, into: int, binding: Binding, observer: Observer) -> Step:
    def run(r: Slots) -> None:
        begin = perf_counter()
        step(r)
        observer(binding, r[into], perf_counter() - begin)

    return run


def watched(step: Step, site: Site, watch: Watch) -> Step:
    before, bound = watch.before, watch.bound

    def run(r: Slots) -> None:
        before(site, r)
        begin = perf_counter()
        step(r)
        bound(site, r, perf_counter() - begin)

    return run


def timer_step(into: int) -> Step:
    """Notes the time in a slot of the frame."""

    def run(r: Slots) -> None:
        r[into] = perf_counter()

    return run


def joined_step(timer: int, site: Site, watch: Watch) -> Step:
    """Tells of a value that a call or a branch has given."""

    def run(r: Slots) -> None:
        watch.bound(site, r, perf_counter() - r[timer])

    return run


def enter_step(code: Code, watch: Watch) -> Step:
    def run(r: Slots) -> None:
        watch.entered(code, r)

    return run


def limited(step: Step, node: Expr, coming: int, limit: MemoryLimit) -> Step:
    """A step that is not begun if its result would not fit."""
    check = limit.check

    def run(r: Slots) -> None:
        check(node, coming)
        step(r)

    return run


def looked_at(step: Step, node: Expr, into: int, limit: MemoryLimit) -> Step:
    """A step whose result's size nobody knows before, which is looked at afterwards."""
    check = limit.check_made

    def run(r: Slots) -> None:
        step(r)
        check(node, r[into])

    return run


def fetcher(args: tuple[int, ...], dead: list[int]) -> Callable[[Slots], Slots]:
    """Reads a call's arguments; the caller lets go of those that it needs no more before the callee runs."""
    if dead:

        def take(r: Slots) -> Slots:
            values = [r[i] for i in args]
            for i in dead:
                r[i] = None
            return values

        return take
    if len(args) == 1:
        (a,) = args
        return lambda r: [r[a]]
    if len(args) == 2:
        a, b = args
        return lambda r: [r[a], r[b]]
    if len(args) == 3:
        a, b, c = args
        return lambda r: [r[a], r[b], r[c]]
    return lambda r: [r[i] for i in args]


_ANYTHING, _BIND, _CONSTRUCTOR, _TUPLE = range(4)


def matcher(pattern: Pattern, slot_of: Callable[[Var], int]) -> Callable[[Value, Slots], bool]:
    """Whether a value fits a pattern; binds its variables on the way. The pattern becomes a list in prefix order."""
    program: list[tuple[int, int]] = []
    stack = [pattern]
    while stack:
        match stack.pop():
            case PatternVar(var):
                program.append((_BIND, slot_of(var)))
            case PatternConstructor(constructor, patterns):
                program.append((_CONSTRUCTOR, constructor.tag))
                stack.extend(reversed(patterns))
            case PatternTuple(patterns):
                program.append((_TUPLE, 0))
                stack.extend(reversed(patterns))
            case _:
                program.append((_ANYTHING, 0))

    def fits(value: Value, r: Slots) -> bool:
        values = [value]
        for kind, number in program:
            value = values.pop()
            if kind == _BIND:
                r[number] = value
            elif kind == _CONSTRUCTOR:
                if value.tag != number:
                    return False
                values.extend(value.fields[::-1])
            elif kind == _TUPLE:
                values.extend(value[::-1])
        return True

    return fits
