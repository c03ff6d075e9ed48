"""Code generators in TVM's way: `tvm.register_func("relay.ext.NAME")` and modules of C text.

The function gets the partitioned function. It returns what `relaylang.runtime.external` takes, or a module of C text
(`runtime.CSourceModuleCreate`). Its C follows relaylang's rule: `int32_t SYMBOL(const T* in0, ..., T* out0, ...)`.
A Python function that it returns is called with `tvm.nd` arrays, inputs first, then outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.partition.passes.partition_graph import OPTIMIZERS
from relaylang.runtime.external import CODEGENS, Code, Generator, Region
from relaylang.tvm.runtime.module import SourceModule
from relaylang.tvm.runtime.ndarray import NDArray

PREFIX = "relay.ext."
_OPTIMIZE = "optimize"
#: Other functions below the prefix, and what replaces them.
_HOOKS = {
    "constant_updater": "a code generator returns Code(source=..., constants=[...]): these constants come behind the inputs",
    "relay_to_tir": "there is no TIR: the code generator relay.ext.NAME returns C text, object code or a Python function",
    "tir_to_runtime": "there is no TIR: the code generator relay.ext.NAME returns C text, object code or a Python function",
}


#: Lines in front of all C text of a code generator, by the accelerator's name.
INCLUDES: dict[str, Callable[[], str]] = {}


def added(name: str, function: Callable[..., Any]) -> None:
    """Make a function registered under `relay.ext.NAME` the code generator of NAME.

    One under `relay.ext.NAME.optimize` gets each partition as PartitionGraph makes it: a module with @main. Raises
    `RelayError` (R0609) for other hooks below such a name, and says what replaces them.
    """
    compiler, dot, hook = name.removeprefix(PREFIX).partition(".")
    if hook == _OPTIMIZE:
        OPTIMIZERS[compiler] = function
        return
    if dot:
        instead = _HOOKS.get(hook.lower().replace("relaytotir", "relay_to_tir"), "relay.ext.NAME alone is called")
        raise RelayError(error("R0609", f"the function {name} is never called", notes=[instead]))

    def generate(region: Region) -> Any:
        code = _code(function(region.function))
        head = INCLUDES[compiler]() if compiler in INCLUDES else ""
        if head and isinstance(code, str):
            return f"{head}\n{code}"
        return replace(code, source=f"{head}\n{code.source}") if head and isinstance(code, Code) and code.source else code

    CODEGENS[compiler] = Generator(generate)


def removed(name: str) -> None:
    """Forget the code generator of `relay.ext.NAME`, or the optimizer of `relay.ext.NAME.optimize`."""
    compiler, _, hook = name.removeprefix(PREFIX).partition(".")
    (OPTIMIZERS if hook == _OPTIMIZE else CODEGENS).pop(compiler, None)


def _code(generated: Any) -> Any:
    if isinstance(generated, SourceModule):
        return Code(source=generated.code, constants=generated.constants)
    if isinstance(generated, Code):
        return generated if generated.call is None else replace(generated, call=_with_tensors(generated.call))
    return _with_tensors(generated) if callable(generated) else generated


def _with_tensors(function: Callable[..., Any]) -> Callable[..., Any]:
    """A Python function that is called with `tvm.nd` arrays over the same memory."""

    def call(*arrays: np.ndarray) -> Any:
        returned = function(*map(NDArray, arrays))
        values = returned if isinstance(returned, (tuple, list)) else [returned]
        plain = [np.asarray(v) if isinstance(v, NDArray) else v for v in values]
        return plain if isinstance(returned, (tuple, list)) else plain[0]

    return call


__all__ = ["INCLUDES", "PREFIX", "SourceModule", "added", "removed"]
