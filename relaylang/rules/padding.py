"""FoldExplicitPadding: the operators that can pad by themselves, and the number that they pad with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relaylang.ir import Call
from relaylang.ir.tensors import scalar_value
from relaylang.ops import Trait, having

#: The operator whose padding the others absorb.
PAD = "nn.pad"


def both_sides(padding: Iterable[int], rank: int) -> list[int]:
    """Padding in front of each spatial axis, then behind each, from any of the forms in which attributes write it."""
    sides = list(padding)
    if len(sides) == 1:
        return sides * (2 * rank)
    return sides * 2 if len(sides) == rank else sides


@dataclass(frozen=True)
class Rule:
    """`fills(call, value, dtype)`: whether the call's own padding is `value`, of a tensor of the element type `dtype`.

    `layout` names the attribute with the data's layout. `changes` are attributes of the call that pads by itself.
    """

    fills: Callable[[Call, float, str], bool]
    layout: str = "data_layout"
    changes: Mapping[str, Any] = field(default_factory=dict)


def _with_zero(call: Call, value: float, dtype: str) -> bool:
    return value == 0


def _with_least(call: Call, value: float, dtype: str) -> bool:
    """A window's largest element stays the same when the element type's least number is added to the window."""
    if dtype.startswith(("int", "uint")):
        return bool(value == np.iinfo(dtype).min)
    return value == -np.inf or value <= float(np.finfo(dtype).min if dtype.startswith("float") else -np.inf)


def _with_counted_zero(call: Call, value: float, dtype: str) -> bool:
    """The pool pads nothing itself, or counts its padding."""
    attrs = call.attrs
    return value == 0 and not attrs.ceil_mode and (attrs.count_include_pad or not any(attrs.padding))


RULES: Mapping[str, Rule] = {
    **dict.fromkeys(having(Trait.CONV, without=[Trait.QUANTISED, Trait.BLOCKED]), Rule(_with_zero)),
    "nn.contrib_conv2d_NCHWc": Rule(_with_zero),
    "qnn.conv2d": Rule(lambda call, value, dtype: scalar_value(call.args[2]) == value),
    **dict.fromkeys(having(Trait.POOL, Trait.LARGEST), Rule(_with_least, "layout")),
    # The pad's elements are counted in averages, whatever the pool says of its own padding.
    **dict.fromkeys(
        having(Trait.POOL, Trait.AVERAGE, without=[Trait.QUANTISED]),
        Rule(_with_counted_zero, "layout", {"count_include_pad": True}),
    ),
}
