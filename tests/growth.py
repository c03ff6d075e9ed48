"""How work grows with a program's size, by measures that a busy machine does not change much."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from types import FrameType

Run = Callable[[], object]


def work(run: Run) -> int:
    """How many functions a call enters, Python's and C's together: the same count on every machine."""
    entered = 0

    def count(_: FrameType, event: str, __: object) -> None:
        nonlocal entered
        if event in ("call", "c_call"):
            entered += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(before)
    return entered


def assert_linear(prepare: Callable[[int], Run], small: int = 200, times: int = 5) -> None:
    """`prepare(n)` gives the run to measure at size `n`. A program `times` as large may take `times` the work."""
    prepare(3)()  # work that is done once
    first, second = work(prepare(small)), work(prepare(small * times))
    assert second <= 1.25 * times * first, f"{first} functions are entered at {small}, {second} at {small * times}"


def seconds(run: Run, rounds: int = 3) -> float:
    """Processor time of a call, the least of several rounds. For ratios with a wide margin, where the work is C's."""
    best = float("inf")
    for _ in range(rounds):
        gc.collect()
        begin = time.process_time()
        run()
        best = min(best, time.process_time() - begin)
    return best


class TooMuch(BaseException):
    """A call enters more functions than it may."""


def within(most: int, run: Run) -> object:
    """What a call gives that may enter so many functions. It is ended by `TooMuch`, so that nothing hangs."""
    entered = 0

    def count(_: FrameType, event: str, __: object) -> None:
        nonlocal entered
        if event in ("call", "c_call"):
            entered += 1
            if entered > most:
                sys.setprofile(None)
                raise TooMuch(f"more than {most} functions are entered")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        return run()
    finally:
        sys.setprofile(before)


HEAD = '#[version = "0.0.5"]\n'
_T = "Tensor[(2), float32]"


def _main(line: str, more: str = "", params: str = "", sign: str = "%") -> Callable[[int], str]:
    """@main of `n` lines: `{i}` is a line's number, `{b}` the name of the line before it."""

    def text(n: int) -> str:
        lines = "".join("  " + line.format(i=i, b=f"{sign}{i - 1}" if i else "%x") + "\n" for i in range(n))
        return f"{HEAD}{more}def @main(%x: {_T}{params}) {{\n{lines}  {sign}{n - 1}\n}}\n"

    return text


#: Programs of `n` lines with two to the power of `n` paths, by the kind of the shared nodes.
SHARED: dict[str, Callable[[int], str]] = {
    "calls": _main("%{i} = add({b}, {b});"),
    "lets": _main("let %v{i} = add({b}, {b});", sign="%v"),
    "tuples": _main("%{i} = ({b}, {b});"),
    "let-bound tuples": _main("let %v{i} = ({b}, {b});", sign="%v"),
    "functions": lambda n: (
        f"{HEAD}def @main(%x: {_T}) {{\n  %0 = fn (%a: {_T}) {{ negative(%a) }};\n"
        + "".join(f"  %{i} = fn (%a{i}: {_T}) {{ %{i - 1}(%{i - 1}(%a{i})) }};\n" for i in range(1, n))
        + f"  %{n - 1}\n}}\n"
    ),
    "let-bound functions": lambda n: (
        f"{HEAD}def @main(%x: {_T}) {{\n  let %f0 = fn (%a: {_T}) {{ negative(%a) }};\n"
        + "".join(f"  let %f{i} = fn (%a{i}: {_T}) {{ %f{i - 1}(%f{i - 1}(%a{i})) }};\n" for i in range(1, n))
        + f"  %f{n - 1}\n}}\n"
    ),
    "types of functions": _main(f"%{{i}} = fn (%a{{i}}: {_T}) {{{{ ({{b}}, {{b}}) }}}};"),
    "branches": _main("%{i} = if (%c) {{ {b} }} else {{ negative({b}) }};", params=", %c: bool"),
    "matches": _main("%{i} = match (%t) {{ A(_) => {b}, B => negative({b}) }};", "type T { A(T), B }\n", ", %t: T"),
    "constructors": _main("%{i} = P({b}, {b});", "type Pair[A] { P(A, A) }\n"),
    "references": _main("%{i} = (ref({b}), {b});"),
    "global functions": lambda n: (
        f"{HEAD}def @f0(%x: {_T}) -> {_T} {{ negative(%x) }}\n"
        + "".join(f"def @f{i}(%x: {_T}) -> {_T} {{ @f{i - 1}(%x) + @f{i - 1}(%x) }}\n" for i in range(1, n))
        + f"def @main(%x: {_T}) {{ negative(%x) }}\n"
    ),
}
