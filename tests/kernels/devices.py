"""Operator cases as kernels for devices, and what the interpreter makes of them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from relaylang.backends.cpu import lower_module
from relaylang.backends.cpu.isa import SCALAR
from relaylang.backends.cpu.program import Program, Run, walk
from relaylang.interpreter import KERNELS
from relaylang.kernels.device import Language, Launch, Module
from relaylang.ops import get, make_attrs
from tests.backends.cpu.test_ops import USED, program

#: Cases by their numbers.
NUMBERS = range(len(USED))
#: The first case of each operator.
FIRST = {USED[n][0]: n for n in reversed(NUMBERS)}
#: Operators of each kind of kernel: `make test` runs their first cases, `make sweeps` all of all operators.
QUICK = (
    "add",
    "exp",
    "floor_divide",
    "cast",
    "sum",
    "argmax",
    "nn.softmax",
    "nn.max_pool2d",
    "take",
    "nn.conv2d",
    "nn.dense",
    "qnn.requantize",
    "random.threefry_split",
    "random.normal",
)
#: Cases in groups, each a file.
GROUPS = [[FIRST[name] for name in QUICK], *(list(NUMBERS[n : n + 100]) for n in range(0, len(NUMBERS), 100))]


@cache
def lowered(number: int) -> tuple[Program, dict[str, np.ndarray]]:
    """A case's program for a machine without vectors, and its arguments."""
    mod, values = program([(number, USED[number])])
    return lower_module(mod, "main", (), SCALAR), values


def kernels(numbers: Sequence[int], language: Language) -> tuple[str, dict[int, list[Launch]]]:
    """The kernels of cases as one text, and the launches of each by the kernel's `id`."""
    module, launches = Module(language), {}
    for number in numbers:
        found, _ = lowered(number)
        for item in walk([*found.prepare, *found.run]):
            if isinstance(item, Run) and id(item.kernel) not in launches:
                launches[id(item.kernel)] = module.add(item.kernel)
    return module.text(), launches


def expected(number: int) -> Any:
    """What the interpreter's kernel gives."""
    name, attrs, args, _ = USED[number]
    op = get(name)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return KERNELS[name](make_attrs(op.attrs, attrs) if op.attrs is not None else None, *args)
