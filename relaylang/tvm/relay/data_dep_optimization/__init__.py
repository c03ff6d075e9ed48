"""`tvm.relay.data_dep_optimization`: changes of a function that depend on its parameters' values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from relaylang.ir import Function, IRModule
from relaylang.tvm.arrays import from_python
from relaylang.tvm.conventions import typed
from relaylang.tvm.runtime.ndarray import NDArray
from relaylang.typing import check

_Values = dict[str, np.ndarray]


def converted(
    func: Function, params: Mapping[str, Any], change: Callable[[Function, _Values], tuple[Function, _Values]]
) -> tuple[Function, dict[str, NDArray]]:
    """What `change` makes of a typed function and its parameters. Raises `RelayError`."""
    mod = IRModule.from_expr(func)
    check(mod)
    made, values = change(mod["main"], {name: from_python(value) for name, value in params.items()})
    return typed(IRModule.from_expr(made))["main"], {name: NDArray(value) for name, value in values.items()}
