"""`make demo`: every example is checked, printed, interpreted and compiled; interpreter and compiled code must agree.

Prints what each stage took. Exit status 1 where something fails or disagrees.
"""

from __future__ import annotations

import shutil
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from relaylang.backends import compile_module, ethosu
from relaylang.backends.ethosu.tools import PIP
from relaylang.cli.progress import clock
from relaylang.diagnostics import RelayError, render
from relaylang.interpreter import evaluate
from relaylang.ir import IRModule, TensorType, type_text
from relaylang.repl.session import Session
from relaylang.repl.show import show
from relaylang.runtime.random import random_params
from relaylang.syntax import astext, parse
from relaylang.typing import check

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
NETWORKS = ("mlp", "convnet", "quantized", "closure")
_T = TypeVar("_T")


def timed(what: str, work: Callable[[], _T]) -> _T:
    """Do a piece of work and print what it took."""
    begin = time.perf_counter()
    value = work()
    print(f"  {what:<44} {clock(time.perf_counter() - begin):>10}")
    return value


def read(name: str) -> IRModule:
    """An example's module, checked and printed."""
    path = EXAMPLES / f"{name}.relay"
    print(f"\n{path.relative_to(ROOT)}")
    text = path.read_text()
    mod = timed("read", lambda: parse(text, str(path)).module)
    assert mod is not None
    timed("check", lambda: check(mod))
    printed = timed("print", lambda: astext(mod))
    timed("read the printed text, check, print again", lambda: reprint(printed))
    return mod


def reprint(printed: str) -> None:
    again = parse(printed).module
    assert again is not None
    check(again)
    if astext(again) != printed:
        raise SystemExit("the printed text does not print the same again")


def leaves(value: Any) -> list[np.ndarray]:
    return [leaf for v in value for leaf in leaves(v)] if isinstance(value, tuple) else [np.asarray(value)]


def difference(left: Any, right: Any) -> str:
    """How far two results are apart; exits where it is too far."""
    worst = 0.0
    for a, b in zip(leaves(left), leaves(right), strict=True):
        if a.dtype.kind in "iub" and not np.array_equal(a, b):
            raise SystemExit("  interpreter and compiled code disagree in integers")
        scale = max(1e-6, float(np.abs(a.astype(np.float64)).max(initial=0)))
        worst = max(worst, float(np.abs(a.astype(np.float64) - b.astype(np.float64)).max(initial=0)) / scale)
    if worst > 1e-4:
        raise SystemExit(f"  interpreter and compiled code disagree: relative difference {worst:.2g}")
    return f"{worst:.2g}" if worst else "none"


def network(name: str, compiler: str | None) -> None:
    """Read, check, print, interpret and compile one example with random parameters."""
    mod = read(name)
    params = random_params(0, mod["main"].params)
    expected = timed("interpret", lambda: evaluate(mod, **params))
    if compiler is None:
        print("  no C compiler here: not compiled (apt-get install gcc)")
        return
    artifact = timed(f"compile ({compiler})", lambda: compile_module(mod, "c"))
    got = timed("run the compiled code", lambda: artifact.run(**params))
    ty = mod["main"].body.checked_type
    says = type_text(ty) if isinstance(ty, TensorType) else "result"
    print(f"  {says}: largest relative difference between the two: {difference(expected, got)}")


def accelerator(name: str) -> None:
    """Compile one example for an NPU, print its report, and hold the reference model's integers against ours.

    What stays on the host is run by the interpreter, so that the results must be equal to the bit.
    """
    mod = read(name)
    picture = np.zeros((1, 1, 8, 8), np.float32)
    picture[0, 0, 3] = 1
    expected = timed("interpret", lambda: evaluate(mod, image=picture))
    options = {"accelerator": "ethos-u55-256"}
    try:
        artifact = timed("compile for an Ethos-U55", lambda: ethosu.compile(mod, options))
    except RelayError as missing:
        if missing.diagnostics[0].code != "R0611":
            raise
        print(f"  {missing.diagnostics[0].title}: not compiled ({PIP})")
        return
    print("\n" + textwrap.indent(artifact.report().rstrip("\n"), "  | ") + "\n")
    got = timed("run on the TOSA reference model", lambda: artifact.run(image=picture))
    if not np.array_equal(expected, got):
        raise SystemExit("  interpreter and reference model disagree")
    print(f"  interpreter and reference model agree to the bit: {np.array2string(got)}")


def program(name: str, expressions: list[str]) -> None:
    """Read, check and print one example and evaluate expressions in its scope."""
    mod = read(name)
    value = timed("interpret", lambda: evaluate(mod))
    print(f"  @main() = {show(value, mod['main'].body.checked_type)}")
    session = Session(mod)
    for text in expressions:
        print(f"  {text} = {timed(f'evaluate {text}', lambda t=text: session.evaluate(t))}")


def main() -> int:
    begin = time.perf_counter()
    compiler = next((c for c in ("cc", "gcc", "clang") if shutil.which(c)), None)
    try:
        for name in NETWORKS:
            network(name, compiler)
        program("numbers", ["@total(Two(5, 6))"])
        program("loop", ["@power(1.5f, 10)", "@sum(10000, 0i64)"])
        accelerator("ethosu_bars")
    except RelayError as wrong:
        print("\n".join(render(d) for d in wrong.diagnostics), file=sys.stderr)
        return 1
    print(f"\nall of it: {clock(time.perf_counter() - begin)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
