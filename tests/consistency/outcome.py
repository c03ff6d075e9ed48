"""The answers of the checker and the interpreter to a call, and their faults."""

from __future__ import annotations

import random
import warnings
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError
from relaylang.diagnostics.source import SourceFile, Span
from relaylang.interpreter import evaluate
from relaylang.interpreter.errors import Fault
from relaylang.interpreter.kernels import KernelError
from relaylang.interpreter.values import mismatch
from relaylang.ir import ANY, Call, Constant, Function, TensorType, Tuple, Var
from relaylang.ops import OPS, make_attrs
from relaylang.ops.record import AttrError
from relaylang.typing import infer
from tests.consistency.calls import Made

SPAN = Span(SourceFile("call.relay", "call"), 0, 4)


class Refused(Exception):
    """The attributes or the checker refuse the call."""


def function(made: Made, open_extents: float = 0) -> tuple[Function, list[np.ndarray]]:
    """The call as a checked function of the tensors in its arguments, and these. `open_extents` is the share of extents that
    are `?`. Raises `Refused`."""
    name, attrs, args = made
    rng = random.Random(f"{name} {attrs}")
    op = OPS[name]
    params: list[Var] = []
    inputs: list[Any] = []
    operands: list[Any] = []

    def leaf(x: Any) -> Var:
        inputs.append(x)
        shape = [ANY if rng.random() < open_extents else n for n in x.shape]
        params.append(Var(f"p{len(params)}", TensorType(shape, x.dtype.name), span=SPAN))
        return params[-1]

    for arg in args:
        operands.append(Tuple([leaf(x) for x in arg], span=SPAN) if isinstance(arg, tuple) else leaf(arg))
    if name == "arange":
        attrs = {**attrs, **dict(zip(("start", "stop", "step"), (Constant(np.asarray(a)) for a in args)))}
    try:
        given = make_attrs(op.attrs, attrs) if op.attrs is not None else None
    except AttrError as problem:
        raise Refused(str(problem)) from None
    made_function = Function(params, Call(op, operands, given, span=SPAN))
    found = [d for d in infer(made_function, fragment=True) if d.severity == "error"]
    if found:
        raise Refused(found[0].title)
    return made_function, inputs


def wrong(made: Made, open_extents: float = 0) -> str | None:
    """The fault of a call's value, or of the report of its failure; None if there is none."""
    try:
        call, inputs = function(made, open_extents)
    except Refused:
        return None
    except Exception as problem:
        return f"the checker raises {type(problem).__name__}: {problem}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            value = evaluate(call, *inputs)
    except RelayError as problem:
        first = problem.diagnostics[0]
        if first.code in ("R0406", "R0408"):
            return None
        cause = problem.__cause__
        if not isinstance(cause, (KernelError, Fault)):
            return f"raw {type(cause).__name__}: {cause} [{first.title}]"
        if first.span is None:
            return f"no place: {first.title}"
        return None
    except Exception as problem:
        return f"raises {type(problem).__name__}: {problem}"
    assert call.body.checked_type is not None
    said = mismatch(value, call.body.checked_type)
    return f"value {said}" if said else None


__all__ = ["Refused", "function", "wrong"]
