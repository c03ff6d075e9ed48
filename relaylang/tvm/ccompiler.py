"""TVM's code generator `ccompiler`: sums, differences and products in C, as scripts for TVM partition them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from relaylang.diagnostics import RelayError, error
from relaylang.ir import Call, Constant, Expr, Tuple, Var, post_order
from relaylang.ir.tensors import tensor_type
from relaylang.kernels.dtypes import CTYPES
from relaylang.ops.record import Op
from relaylang.runtime.artifact import TensorSpec
from relaylang.runtime.external import Code, Region

_SIGNS = {"add": "+", "subtract": "-", "multiply": "*"}


def generate(region: Region) -> Code:
    """C for a region: for each output a loop over its elements. Raises `RelayError` (R0605) for other operators."""
    body = region.function.body
    nodes = [n for n in post_order(body) if isinstance(n, Call)]
    constants = [n for n in post_order(body) if isinstance(n, Constant)]
    for node in nodes:
        if not isinstance(node.op, Op) or node.op.name not in _SIGNS:
            title = f"ccompiler computes {', '.join(_SIGNS)}, not {getattr(node.op, 'name', 'this call')}"
            raise RelayError(error("R0605", title, node.span))
    places = {p: f"in{n}" for n, p in enumerate([*region.function.params, *constants])}
    results = body.fields if isinstance(body, Tuple) else (body,)
    types = [*[s.dtype for s in region.inputs], *[c.dtype for c in constants]]
    arguments = [f"const {CTYPES[dtype]}* in{n}" for n, dtype in enumerate(types)]
    arguments += [f"{CTYPES[s.dtype]}* out{n}" for n, s in enumerate(region.outputs)]
    lines = ["#include <stdbool.h>", "#include <stdint.h>", f"int32_t {region.symbol}({', '.join(arguments)}) {{"]
    for number, (result, spec) in enumerate(zip(results, region.outputs, strict=True)):
        lines += [f"  for (int64_t i = 0; i < {prod(spec.shape)}; i++) {{", *_element(result, spec, places, f"out{number}"), "  }"]
    return Code("\n".join([*lines, "  return 0;", "}", ""]), constants=[region.constant_names[id(c)] for c in constants])


def _element(result: Expr, spec: TensorSpec, places: dict[Expr, str], out: str) -> list[str]:
    """The lines that compute element `i` of a result."""
    lines: list[str] = []
    names: dict[Expr, str] = {}
    for node in post_order(result):
        if isinstance(node, (Var, Constant)):
            ty = tensor_type(node)
            assert ty is not None
            names[node] = f"{places[node]}[{_index(ty.shape, spec.shape)}]"  # type: ignore[arg-type]
        elif isinstance(node, Call):
            left, right = (names[a] for a in node.args)
            names[node] = f"v{len(lines)}"
            lines.append(f"    const {CTYPES[spec.dtype]} v{len(lines)} = {left} {_SIGNS[node.op.name]} {right};")  # type: ignore[attr-defined]
    return [*lines, f"    {out}[i] = {names[result]};"]


def _index(shape: Sequence[int], result_shape: Sequence[int]) -> str:
    """Where the element is that broadcasting puts at place `i` of the whole."""
    if tuple(shape) == tuple(result_shape):
        return "i"
    parts = []
    for axis in range(1, len(shape) + 1):
        if shape[-axis] != 1:
            before, own = prod(result_shape[len(result_shape) - axis + 1 :]), prod(shape[len(shape) - axis + 1 :])
            parts.append(f"i / {before} % {result_shape[-axis]} * {own}")
    return " + ".join(parts) or "0"


__all__ = ["generate"]
