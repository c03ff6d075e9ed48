"""TVM's functions that make calls of operators: `relaylang.tvm.op.add`, `relaylang.tvm.op.nn.conv2d`, ...

Those at the top are `relaylang.add` and so on, too; the modules below are `relaylang.nn`, `relaylang.image`, ....
`get` finds an operator by its name, `register` adds one.
"""

from __future__ import annotations

import importlib
from typing import Any

from relaylang.ops.extensions import find, register, unknown
from relaylang.ops.record import Op
from relaylang.tvm.op.build import TupleWrapper
from relaylang.tvm.op.namespace import lazy


def get(name: str) -> Op:
    """The operator of a name, also one that an installed package adds. Raises `KeyError`."""
    op = find(name)
    if op is None:
        raise KeyError(unknown(name))
    return op


_MODULES = ("annotation", "contrib", "image", "nn", "random", "vision", "vm")
#: Names that TVM has among the operators, and that stand above them here: rules for passes.
_ABOVE = (
    "register_alter_op_layout",
    "register_convert_op_layout",
    "register_fake_quantization_to_integer",
    "register_infer_correct_layout",
    "register_legalize",
    "register_optional_fake_quantization_to_integer",
)
_operator, __dir__ = lazy(__name__, "", _MODULES)


def __getattr__(name: str) -> Any:
    return getattr(importlib.import_module("relaylang.tvm.transform"), name) if name in _ABOVE else _operator(name)


__all__ = ["TupleWrapper", "get", "register"]
