"""Passes under TVM's names: each is called for a pass, and the pass with a module.

    mod = Sequential([SimplifyInference(), FoldConstant(), FuseOps()])(mod)

`PASSES` lists them by name; `parse_passes("FoldConstant,FuseOps(fuse_opt_level=2)")` makes passes of a text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relaylang.ir import IRModule
from relaylang.passes.context import PassContext, PassInfo, PassInstrument
from relaylang.passes.fuse_ops import fuse_ops
from relaylang.passes.instruments import (
    PassTimingInstrument,
    PrintAfterAll,
    PrintBeforeAll,
    PrintChanged,
    PrintIRAfter,
    PrintIRBefore,
    Verify,
    pass_instrument,
)
from relaylang.passes.manager import BuiltinPass, FunctionPass, ModulePass, Pass, Sequential, function_pass, module_pass
from relaylang.passes.simplify_inference import simplify_inference
from relaylang.passes.spec import parse_passes as _parse_passes
from relaylang.passes.to_anf import to_anf
from relaylang.passes.to_bbnf import to_bbnf
from relaylang.passes.to_gnf import to_gnf
from relaylang.typing import check


def InferType() -> Pass:
    """The types of every node, found in place. Raises `RelayError`."""

    def infer_type(mod: IRModule) -> IRModule:
        check(mod)
        return mod

    return BuiltinPass("InferType", infer_type, typed=False)


def ToANormalForm() -> Pass:
    """Every value bound by a let, where it is computed."""
    return BuiltinPass("ToANormalForm", to_anf, 1)


def ToGraphNormalForm() -> Pass:
    """Lets dissolved into shared nodes, but for recursion and effects."""
    return BuiltinPass("ToGraphNormalForm", to_gnf, 1)


def ToBasicBlockNormalForm() -> Pass:
    """What several blocks need bound by a let in front of them."""
    return BuiltinPass("ToBasicBlockNormalForm", to_bbnf, 1)


def SimplifyInference() -> Pass:
    """Batch normalisation, dropout and the like as the arithmetic that they are when a network only answers."""
    return BuiltinPass("SimplifyInference", simplify_inference, 0)


def FuseOps(fuse_opt_level: int = -1) -> Pass:
    """Group operators into primitive functions, each one kernel.

    Level 0 gives each operator a function of its own; all levels above are one and the same. -1 takes the context's
    `opt_level`. The context's `relay.FuseOps.max_depth` (256) limits the size of a group.
    """

    def run(mod: IRModule) -> IRModule:
        ctx = PassContext.current()
        level = ctx.opt_level if fuse_opt_level == -1 else fuse_opt_level
        fused: IRModule = fuse_ops(mod, max_depth=ctx.config.get("relay.FuseOps.max_depth", 256), merge=level > 0)
        return fused

    return BuiltinPass("FuseOps", run, 0)


#: Every pass by name: what makes it.
PASSES: dict[str, Callable[..., Pass]] = {
    "InferType": InferType,
    "ToANormalForm": ToANormalForm,
    "ToGraphNormalForm": ToGraphNormalForm,
    "ToBasicBlockNormalForm": ToBasicBlockNormalForm,
    "SimplifyInference": SimplifyInference,
    "FuseOps": FuseOps,
}


def parse_passes(text: str, more: dict[str, Any] | None = None) -> list[Pass]:
    """The passes that a text lists; `more` are further ones by name. Raises `RelayError`."""
    return _parse_passes(text, {**PASSES, **(more or {})})


__all__ = [
    "PASSES", "FunctionPass", "ModulePass", "Pass", "PassContext", "PassInfo", "PassInstrument", "PassTimingInstrument",
    "PrintAfterAll", "PrintBeforeAll", "PrintChanged", "PrintIRAfter", "PrintIRBefore", "Sequential", "Verify",
    "function_pass", "module_pass", "parse_passes", "pass_instrument", *PASSES,
]  # fmt: skip
