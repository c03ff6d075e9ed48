"""Which pass changes what a program computes: its result after each pass against the one before all of them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relaylang.cli.arguments import needed_by, values_for
from relaylang.cli.common import report
from relaylang.cli.inputs import entry_function, split_inputs
from relaylang.diagnostics import Diagnostic, RelayError, error
from relaylang.interpreter import evaluate
from relaylang.ir import IRModule, post_order
from relaylang.ir.missing import fill_missing
from relaylang.passes.context import PassContext
from relaylang.passes.manager import Pass, Sequential
from relaylang.repl.session import Session

#: The largest difference of results, relative to a tensor's largest number. Reordered sums stay below it.
TOLERANCE = {"float64": 1e-8, "float32": 1e-4, "float16": 2e-2, "bfloat16": 1e-1}


@dataclass
class Found:
    """A line about each pass that ran, and the change of the first wrong one."""

    lines: list[str] = field(default_factory=list)
    diagnostic: Diagnostic | None = None


def difference(before: Any, after: Any, where: str = "the result") -> str | None:
    """How two values differ beyond rounding, or None. Constructed values are compared by their fields."""
    stack = [(before, after, where)]
    while stack:
        a, b, at = stack.pop()
        if isinstance(a, tuple) and isinstance(b, tuple):
            if len(a) != len(b):
                return f"{at} has {len(a)} fields before and {len(b)} after"
            stack += [(x, y, f"{at}.{i}") for i, (x, y) in enumerate(zip(a, b))]
        elif isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
            said = _array_difference(a, b)
            if said is not None:
                return f"{at} {said}"
        elif hasattr(a, "constructor") and hasattr(b, "constructor"):
            if a.constructor.name_hint != b.constructor.name_hint:
                return f"{at} is {a.constructor.name_hint} before and {b.constructor.name_hint} after"
            stack.append((tuple(a.fields), tuple(b.fields), at))
        elif type(a) is not type(b):
            return f"{at} is of another kind"
    return None


def _array_difference(a: np.ndarray, b: np.ndarray) -> str | None:
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"was {a.dtype}{list(a.shape)} and is {b.dtype}{list(b.shape)}"
    tolerance = TOLERANCE.get(a.dtype.name)
    if tolerance is None:
        wrong = a != b
        return None if not wrong.any() else f"differs at {int(wrong.sum())} of {a.size} places"
    x, y = a.astype(np.float64), b.astype(np.float64)
    finite = np.isfinite(x)
    if not np.array_equal(finite, np.isfinite(y)) or not np.array_equal(np.isnan(x), np.isnan(y)):
        return "has infinities or NaNs at other places"
    far = np.abs(np.where(finite, x, 0) - np.where(finite, y, 0))
    largest = max(float(np.abs(np.where(finite, x, 0)).max(initial=0.0)), 1e-30)
    apart = float(far.max(initial=0.0))
    return None if apart <= tolerance * max(largest, 1e-6) else f"is off by {apart:.3g} (largest number {largest:.3g})"


def first_difference(mod: IRModule, passes: Sequence[Pass], inputs: Sequence[Any], entry: str) -> Found:
    """Run the passes one by one, and the program after each, until its result is another one."""
    outcome = Found()
    expected = evaluate(mod, *inputs, entry=entry)
    ctx = PassContext.current()
    for number, item in enumerate(passes, 1):
        if not ctx.pass_enabled(item.info):
            continue
        mod = Sequential([item])(mod)
        name = f"pass {number}, {item.info.name},"
        try:
            said = difference(expected, evaluate(mod, *inputs, entry=entry))
        except RelayError as problem:
            title = f"{name} makes a program that does not run"
            notes = [d.title for d in problem.diagnostics[:3]]
            outcome.diagnostic = error("R0506", title, notes=notes)
            return outcome
        if said is not None:
            outcome.diagnostic = error("R0506", f"{name} changes the result: {said}")
            return outcome
        outcome.lines.append(f"{name} keeps the result")
    return outcome


def bisect(mod: IRModule, passes: Sequence[Pass], args: argparse.Namespace, config: dict[str, Any]) -> int:
    """`relay opt --bisect`: tell which pass changes the result. Returns the exit status."""
    entry = args.entry.removeprefix("@")
    function = entry_function(mod, args.entry)
    needed = needed_by(function.params, post_order(function.body))
    if args.random_params is None:
        args.random_params = 0
    values, _ = values_for(needed, args, split_inputs(args.input), Session(mod))
    names = {p.name_hint for p in function.params}
    mod = fill_missing(mod, {n: v for n, v in values.items() if n not in names})
    with PassContext(args.opt_level, disabled_pass=args.disable, config=config):
        outcome = first_difference(mod, passes, [values[p.name_hint] for p in function.params], entry)
    for line in outcome.lines:
        print(line, file=sys.stderr)
    if outcome.diagnostic is None:
        print("no pass changes the result", file=sys.stderr)
        return 0
    report([outcome.diagnostic])
    return 1
