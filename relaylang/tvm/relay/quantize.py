"""What `tvm.relay.quantize` has beside `relaylang.quantize`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from relaylang import quantize as whole_numbers
from relaylang.diagnostics import RelayError
from relaylang.ir import Expr, IRModule
from relaylang.rules.quantization.annotate import Annotation
from relaylang.rules.quantization.common import current_qconfig
from relaylang.tvm.arrays import from_python


class NotQuantized(RelayError, AssertionError):
    """A network that cannot be quantised as the configuration says; TVM has an assertion there."""


def quantize(mod: IRModule, params: Mapping[str, Any] | None = None, dataset: Iterable[Mapping[str, Any]] | None = None) -> IRModule:
    """A float network's @main in whole numbers, as `qconfig` says. Raises `NotQuantized`, a `RelayError`."""
    values = {name: from_python(value) for name, value in (params or {}).items()}
    try:
        return whole_numbers.quantize(mod, values, dataset)
    except RelayError as wrong:
        raise NotQuantized(wrong.diagnostics) from wrong


def attach_simulated_quantize(data: Expr, kind: int, sign: bool = True, rounding: str = "round") -> Expr:
    """A value rounded as one of a kind (`QAnnotateKind`); its scale and bounds are free variables."""
    return Annotation(current_qconfig()).round(data, kind, sign, rounding)


__all__ = ["NotQuantized", "attach_simulated_quantize", "quantize"]
