"""Attributes of operators that users register under TVM's names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relaylang.diagnostics import RelayError, did_you_mean, error
from relaylang.ops.extensions import find
from relaylang.ops.extensions import names as operator_names
from relaylang.partition.support import OP_SUPPORT
from relaylang.passes.layout.registry import (
    register_alter_op_layout,
    register_convert_op_layout,
    register_infer_correct_layout,
)
from relaylang.passes.quantize.legalizations import register_legalize
from relaylang.passes.quantize.registered_integer_rules import (
    register_fake_quantization_to_integer,
    register_optional_fake_quantization_to_integer,
)


def register_op_attr(op_name: str, attr_key: str, value: Any = None, level: int = 10) -> Any:
    """Set an attribute of an operator, under TVM's name; without `value` this is a decorator.

    - `target.<name>`: a function that gets a call, and returns True or the reason why the accelerator refuses it.
    - `FTVMLegalize`, and your own maps with this ending.
    - `FTVMAlterOpLayout`, `FTVMConvertOpLayout`, `FInferCorrectLayout`, `FTVMFakeQuantizationToInteger`: as the functions
      `relaylang.transform.register_...`.

    The last registration counts. Raises `RelayError` for an unknown operator or key.
    """
    if find(op_name) is None:
        near = did_you_mean(op_name, operator_names())
        notes = [f"did you mean {near}?"] if near else []
        raise RelayError(error("R0219", f"there is no operator {op_name}", notes=notes))

    def add(function: Any) -> Any:
        if attr_key.startswith("target."):
            if not callable(function):
                raise RelayError(error("R0219", f"{attr_key} of {op_name} is a function of a call, not {function!r:.60}"))
            OP_SUPPORT.setdefault(attr_key.removeprefix("target."), {})[op_name] = function
        elif attr_key in _REGISTERS:
            _REGISTERS[attr_key](op_name, function)
        else:
            register_legalize(op_name, function, attr_key)
        return function

    known = attr_key.startswith("target.") or attr_key in _REGISTERS or attr_key.endswith("Legalize")
    if not known:
        notes = [f"there are target.<name>, FTVMLegalize, {', '.join(_REGISTERS)}"]
        raise RelayError(error("R0219", f"relaylang does not use the attribute {attr_key} of operators", notes=notes))
    return add(value) if value is not None else add


_REGISTERS: dict[str, Callable[..., Any]] = {
    "FTVMAlterOpLayout": register_alter_op_layout,
    "FTVMConvertOpLayout": register_convert_op_layout,
    "FInferCorrectLayout": register_infer_correct_layout,
    "FTVMFakeQuantizationToInteger": register_fake_quantization_to_integer,
    "FTVMOptionalFakeQuantizationToInteger": register_optional_fake_quantization_to_integer,
}


__all__ = ["register_op_attr"]
