"""Every lowering in other element types than its cases': what the interpreter computes, wherever the checker accepts it."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest

from relaylang.backends import compile_module
from relaylang.backends.cpu.lower import gap
from relaylang.diagnostics import RelayError
from relaylang.interpreter import KERNELS
from relaylang.interpreter.kernels.common import KernelError
from relaylang.ops import get, make_attrs
from relaylang.typing import check
from tests.backends.cpu.cases import Case
from tests.backends.cpu.test_ops import program, same
from tests.interpreter.every_case import EVERY

DTYPES = ("float16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64", "uint64", "bool")
#: Cases of one operator that are tried in a type.
EACH = 2
#: Compiled as several operators, each of which rounds to a half.
SEVERAL = frozenset({"nn.group_norm", "nn.layer_norm", "nn.instance_norm", "nn.l2_normalize"})


def changed(case: Case, dtype: str) -> Case | None:
    """The case with every value of the first argument's type in another type. None if that changes nothing."""
    name, attrs, args, constant = case
    parts = [p for a in args for p in (a if isinstance(a, tuple) else (a,))]
    if not parts or parts[0].dtype == dtype:
        return None
    source = parts[0].dtype

    def turn(part: np.ndarray) -> np.ndarray:
        return part.astype(dtype) if part.dtype == source else part

    return name, attrs, [tuple(map(turn, a)) if isinstance(a, tuple) else turn(a) for a in args], constant


def computed(case: Case) -> Any:
    """What the interpreter makes of it; None where the checker or the interpreter refuses it."""
    name, attrs, args, _ = case
    record = get(name)
    try:
        check(program([(0, case)])[0])
        return KERNELS[name](make_attrs(record.attrs, attrs) if record.attrs is not None else None, *args)
    except (RelayError, KernelError):
        return None


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_lowering_in_a_type(dtype: str) -> None:
    tried: Counter[str] = Counter()
    cases: list[Case] = []
    wanted = []
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for case in EVERY:
            if gap(case[0]) or tried[case[0]] == EACH or (dtype == "float16" and case[0] in SEVERAL):
                continue
            new = changed(case, dtype)
            value = computed(new) if new is not None else None
            if new is not None and value is not None:
                tried[case[0]] += 1
                cases.append(new)
                wanted.append(value)
    mod, values = program(list(enumerate(cases)))
    ours = compile_module(mod, "c -num-threads=1 -cflags=-O1").run(**values)
    for case, one, other in zip(cases, ours, wanted, strict=True):
        try:
            same(case[0], one, other)
        except AssertionError as wrong:
            raise AssertionError(f"{case[0]} {case[1]}") from wrong
