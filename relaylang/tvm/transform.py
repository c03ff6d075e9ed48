"""Passes under TVM's names: each is called for a pass, and the pass with a module.

    mod = Sequential([SimplifyInference(), FoldConstant(), FuseOps()])(mod)

A name is imported from its home when it is first used.
"""

from __future__ import annotations

import importlib
from typing import Any

from relaylang.passes import PASSES

#: Module below `relaylang` -> the names that stand here beside the passes.
_HOMES = {
    "passes": "PASSES",
    "passes.context": "PassContext PassInfo PassInstrument",
    "passes.devices.virtual_device": "CompilationConfig VirtualDevice make_compilation_config",
    "passes.instruments": (
        "PassTimingInstrument PrintAfterAll PrintBeforeAll PrintChanged PrintIRAfter PrintIRBefore Verify pass_instrument"
    ),
    "passes.layout.registry": (
        "LayoutConfig TempOpAttr register_alter_op_layout register_convert_op_layout register_infer_correct_layout"
    ),
    "passes.manager": "FunctionPass ModulePass Pass Sequential function_pass module_pass",
    "passes.normal_forms.un_cps": "un_cps",
    "passes.quantize.registered_integer_rules": (
        "TensorAffineType TupleAffineType register_fake_quantization_to_integer register_optional_fake_quantization_to_integer"
    ),
    "passes.quantize.legalizations": "register_legalize",
    "passes.spec": "parse_passes",
    "rules.layout.rule": "InferCorrectLayoutOutput",
    "tvm.expression_passes": "Defunctionalization FoldConstantExpr InferTypeLocal ToANormalFormExpr gradient to_cps",
}


def names() -> dict[str, str]:
    """Every name of this module, and the module that defines it."""
    own = {name: f"relaylang.{module}" for module, said in _HOMES.items() for name in said.split()}
    return dict(sorted({**PASSES.modules, **own}.items()))


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return list(names())
    home = names().get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(home), name)
    return value


def __dir__() -> list[str]:
    return list(names())
