"""Classes of operators, which give pictures their colours."""

from __future__ import annotations

from functools import cache

from relaylang.ops import FAMILIES, OPS
from relaylang.ops.record import Op, OpPattern
from relaylang.ops.traits import Trait

#: Classes by facts; the first that fits counts.
_BY_TRAIT = (
    ("quantised", (Trait.QUANTISE, Trait.DEQUANTISE, Trait.QUANTISED)),
    ("product", (Trait.CONV, Trait.CONV_TRANSPOSE, Trait.MATMUL)),
    ("pool", (Trait.POOL, Trait.GLOBAL_POOL, Trait.ADAPTIVE_POOL, Trait.REDUCTION)),
)
#: Families of which all other members are in one class.
_BY_FAMILY = {"qnn": "quantised", "nn_pool": "pool", "transform": "move", "create": "data"}
_BY_PATTERN = {
    OpPattern.OUT_ELEMWISE_FUSABLE: "product",
    OpPattern.COMM_REDUCE: "pool",
    OpPattern.ELEMWISE: "element",
    OpPattern.BROADCAST: "element",
    OpPattern.INJECTIVE: "move",
}
#: Operators of which an extent is a value are in the class of those without this beginning.
_DYNAMIC = "dyn."


@cache
def _home() -> dict[str, str]:
    """The family of each operator."""
    return {op.name: name for name, family in FAMILIES.items() for op in family}


def family(op: Op) -> str:
    """The class of an operator by which pictures colour it: "product", "pool", "norm", "element", "move", ..."""
    op = OPS.get(op.name.removeprefix(_DYNAMIC), op)
    for name, traits in _BY_TRAIT:
        if any(t in op.traits for t in traits):
            return name
    home = _home().get(op.name, "")
    if home in _BY_FAMILY:
        return _BY_FAMILY[home]
    if home == "nn_norm" and op.pattern not in (OpPattern.ELEMWISE, OpPattern.BROADCAST, OpPattern.INJECTIVE):
        return "norm"
    return _BY_PATTERN.get(op.pattern, "other")


__all__ = ["family"]
