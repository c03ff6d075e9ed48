"""What a text of the loop language need not say: types that follow from operands, or from the place of an expression.

Numbers, and vectors made of one number, take their type from the operands beside them, else from where they stand. The
printer and the reader ask the same functions, so the one leaves out what the other finds again. None stands for a type
that an expression does not say itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from relaylang.kernels.ir import INDEX, vector_of
from relaylang.kernels.ops import TESTS

Types = Sequence["str | None"]

#: Operations that compute with indices as soon as one operand is an index, or an index is asked for.
ON_INDICES = frozenset({"add", "sub", "mul", "quotient", "remainder", "min", "max"})
#: Intrinsics that have the type of where they stand.
OPEN = frozenset({"splat", "splat_single", "splat_pair", "splat_quad", "two_rows", "low"})
#: Intrinsics whose later operands are numbers of lanes, and how many vectors come first.
_NUMBERED = {"mix": 2, "lane": 1}


def result_of(name: str, types: Types, intrinsic: bool) -> str | None:
    """The type of a result by those of the operands; None where no operand says it."""
    if intrinsic:
        if name in OPEN:
            return None
        known = [t for t in types[: _NUMBERED.get(name)] if t is not None]
        if name in ("sum", "lane"):
            return vector_of(known[0])[0] if known else None
        return (known[0] if name == "mix" else known[-1]) if known else None
    if name in TESTS:
        return "bool"
    if name == "select":
        types = types[1:]
    if name in ON_INDICES and INDEX in types:
        return INDEX
    return next((t for t in types if t is not None), None)


def wanted(name: str, types: Types, result: str | None, intrinsic: bool) -> list[str | None]:
    """The types that the places of the operands ask for."""
    count = len(types)
    if intrinsic:
        if name in ("splat", "splat_single"):
            return [None if result is None else vector_of(result)[0]] * count
        if name in _NUMBERED:
            vectors = _NUMBERED[name]
            return [result if name == "mix" else None] * vectors + [INDEX] * (count - vectors)
        return [result if name == "fma" else None] * count
    if name == "select":
        return ["bool", result, result]
    if name in ON_INDICES and result == INDEX:
        return [INDEX] * count
    known = next((t for t in types if t is not None), None if name in TESTS else result)
    return [known] * count
