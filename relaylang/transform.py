"""Passes under TVM's names: each is called for a pass, and the pass with a module.

mod = Sequential([SimplifyInference(), InferType(), FuseOps()])(mod)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relaylang.diagnostics import RelayError, define_codes, error
from relaylang.ir import IRModule
from relaylang.passes.fuse_ops import fuse_ops
from relaylang.passes.simplify_inference import simplify_inference
from relaylang.passes.to_anf import ToANormalForm
from relaylang.passes.to_bbnf import ToBasicBlockNormalForm
from relaylang.passes.to_gnf import ToGraphNormalForm
from relaylang.typing import InferType

define_codes({"R0501": "a pass has no such option"})

Pass = Callable[[IRModule], IRModule]


def SimplifyInference() -> Pass:
    """Batch normalisation, dropout and the like as the arithmetic that they are when a network only answers."""
    return simplify_inference


def FuseOps(fuse_opt_level: int = -1) -> Pass:
    """Group operators into primitive functions, each one kernel. Levels 2 and more, and -1, are one and the same here.

    Raises `RelayError` for the levels 0 and 1, at which TVM puts each operator into a function of its own.
    """
    if fuse_opt_level in (0, 1):
        raise RelayError(error("R0501", f"FuseOps has no level {fuse_opt_level}"))
    return fuse_ops


def Sequential(passes: Sequence[Pass]) -> Pass:
    """The passes one after the other, with the types found before each."""

    def sequential(mod: IRModule) -> IRModule:
        for transform in passes:
            mod = transform(InferType()(mod))
        return mod

    return sequential


__all__ = [
    "FuseOps", "InferType", "Pass", "Sequential", "SimplifyInference", "ToANormalForm", "ToBasicBlockNormalForm",
    "ToGraphNormalForm",
]  # fmt: skip
