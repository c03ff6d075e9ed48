"""What regions of reductions and sorts do.

A region of scalars becomes a function of tensors. What a region that compares and selects alone computes is found by trying
every order of its values, because it depends on nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations, product
from typing import Any

import numpy as np

from relaylang.diagnostics.unsupported import Unsupported
from relaylang.frontends.common.hlo_joins import Join, join_of, replacing
from relaylang.frontends.common.report import Malformed
from relaylang.frontends.stablehlo.families.elementwise import ELEMENTWISE
from relaylang.frontends.stablehlo.node import Node
from relaylang.frontends.stablehlo.program import Region, Splat, Tensor
from relaylang.ir import Expr

_MOVES = frozenset(
    f"stablehlo.{name}" for name in ("and", "compare", "constant", "maximum", "minimum", "not", "or", "return", "select", "xor")
) | {"func.return"}
#: Values on both sides of 0, the one constant beside NaN that comparators have.
_VALUES = (-2, -1, 0, 1, 2)
_UNSIGNED = (0, 1, 2)
#: Comparators of more operands are not tried.
_MOST_KEYS = 3


def only_moves(region: Region) -> bool:
    """Whether a region compares and selects alone, with no other constants than 0, bools and NaN."""
    for op in region.ops:
        if op.name not in _MOVES or op.regions:
            return False
        if op.name == "stablehlo.constant":
            value = op.attributes.get("value")
            array = np.asarray(value.element if isinstance(value, Splat) else value)
            if array.dtype.kind not in "biuf" and array.dtype.name not in ("bfloat16", "float16"):
                return False
            if array.dtype != bool and not all(v == 0 or v != v for v in array.reshape(-1)):
                return False
    return True


def _trial(n: Node, region: Region, columns: list[np.ndarray]) -> list[np.ndarray] | None:
    """The results of a region for columns of values; None where they are not constants."""
    results = n.apply(region, [n.b.const(c) for c in columns], lifted=True)
    values = [n.b.value(m) if isinstance(m, Expr) else None for m in results]
    if any(v is None for v in values):
        return None
    return [np.broadcast_to(v, columns[0].shape) for v in values if v is not None]


def _columns(n: Node, region: Region, real: tuple[int, ...] = _VALUES) -> list[np.ndarray] | None:
    """Every combination of values for the parameters, one column a parameter."""
    kinds: list[Any] = [n.importer.program.types[p] for p in region.parameters]
    if any(not isinstance(k, Tensor) or k.is_complex or k.quantised is not None for k in kinds):
        return None
    choices = [(0, 1) if k.dtype == "bool" else _UNSIGNED if k.dtype.startswith("uint") else real for k in kinds]
    rows = np.array(list(product(*choices)), np.float64).reshape(-1, len(kinds))
    return [rows[:, i].astype(np.dtype(k.dtype)) for i, k in enumerate(kinds)]


def extreme_of(n: Node, region: Region) -> str:
    """ "argmax" or "argmin" where a region of (value, place, value, place) keeps the greatest or the least value with the
    first place that has it; "" for others."""
    columns = _columns(n, region)
    if columns is None:
        return ""
    # The parameters are the left value and place, then the right ones.
    results = _trial(n, region, columns)
    if results is None:
        return ""
    a, i, c, j = columns
    for name, better in (("argmax", a > c), ("argmin", a < c)):
        left = better | ((a == c) & (i < j))
        if np.array_equal(results[0], np.where(better, a, c)) and np.array_equal(results[1], np.where(left, i, j)):
            return name
    return ""


def keys_of(n: Node, region: Region) -> list[tuple[int, bool]] | None:
    """The operands that a comparator compares, the most significant one first, each with whether it rises; None for others."""
    count = len(region.parameters) // 2
    if not only_moves(region) or not count:
        return None
    used = {v for op in region.ops for v in op.operands}
    keys = [i for i in range(count) if region.parameters[2 * i] in used or region.parameters[2 * i + 1] in used]
    if not 1 <= len(keys) <= _MOST_KEYS:
        return None
    chosen = [region.parameters[2 * i + side] for i in keys for side in (0, 1)]
    trial = _columns(n, Region(chosen), _VALUES if len(keys) < 3 else (-1, 0, 1))
    if trial is None:
        return None
    columns = []
    for at, parameter in enumerate(region.parameters):
        if parameter in chosen:
            columns.append(trial[chosen.index(parameter)])
        else:
            ty: Any = n.importer.program.types[parameter]
            columns.append(np.zeros_like(trial[0], np.dtype(ty.dtype)) if isinstance(ty, Tensor) else trial[at % len(trial)])
    results = _trial(n, region, columns)
    if results is None or len(results) != 1:
        return None
    return _order(results[0], keys, columns)


def _order(less: np.ndarray, keys: list[int], columns: list[np.ndarray]) -> list[tuple[int, bool]] | None:
    """The keys and their directions that explain a table of comparisons."""
    for order in permutations(keys):
        for rising in product((True, False), repeat=len(order)):
            wanted = np.zeros_like(less, bool)
            for key, up in reversed(list(zip(order, rising))):
                a, c = columns[2 * key], columns[2 * key + 1]
                first = a < c if up else a > c
                wanted = first | ((a == c) & wanted)
            if np.array_equal(wanted, less):
                return list(zip(order, rising))
    return None


def region_function(n: Node, region: Region) -> Callable[[Sequence[Any]], list[Any]]:
    """A region of scalars as a function of tensors. Raises `Unsupported` where it does more than arithmetic."""
    for op in region.ops:
        if op.regions or op.name not in ELEMENTWISE:
            raise Unsupported(f"its region has the operation {op.name}, which is no arithmetic of elements")
    return lambda values: n.apply(region, values, lifted=True)


def region_join(n: Node, index: int = 0) -> Join:
    """How a region joins two elements, or two lists of them."""
    region = n.region(index)
    ops, parameters = region.ops, region.parameters
    count = len(parameters) // 2
    if len(parameters) % 2 or not ops:
        raise Malformed(f"its region has {len(parameters)} parameters")
    last = ops[-1].operands
    if len(last) != count:
        raise Malformed(f"its region gives {len(last)} results for {count} operands")
    if count == 1 and len(ops) == 1 and last == parameters[1:]:
        return replacing()
    if count == 1 and len(ops) == 2 and sorted(ops[0].operands) == sorted(parameters) and last == ops[0].results:
        ty = n.importer.program.types[parameters[0]]
        join = join_of(n.b, ops[0].name.removeprefix("stablehlo."), ty.dtype) if isinstance(ty, Tensor) else None
        if join is not None:
            return join
    apply = region_function(n, region)
    extreme = extreme_of(n, region) if count == 2 and only_moves(region) else ""
    return Join(lambda x, y: apply([*x, *y]), extreme=extreme)


__all__ = ["keys_of", "region_function", "region_join"]
