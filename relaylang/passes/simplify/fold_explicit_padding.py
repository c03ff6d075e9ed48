"""FoldExplicitPadding: nn.pad in front of a convolution or pool becomes its padding."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from relaylang.ir import Call, Expr, IRModule
from relaylang.ops.record import Op
from relaylang.passes.manager import Pass
from relaylang.passes.rewriting import is_call, per_function, rewrite_typed, scalar_value, with_attrs

_CONVS = frozenset({"nn.conv1d", "nn.conv2d", "nn.conv3d", "qnn.conv2d", "nn.contrib_conv2d_NCHWc"})


_MAX_POOLS = frozenset({"nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d"})


_AVG_POOLS = frozenset({"nn.avg_pool1d", "nn.avg_pool2d", "nn.avg_pool3d"})


def _padding(call: Call, rank: int) -> list[int]:
    """Padding in front of each spatial axis, then behind each, from any of the forms that it may be written in."""
    given = list(call.attrs.padding)
    if len(given) == 1:
        return given * (2 * rank)
    if len(given) == rank:
        return given * 2
    return given


def fold_explicit_padding(mod: IRModule) -> IRModule:
    """A typed module in which nn.pad is part of the convolution or pool behind it, where that computes the same."""

    def put(old: Expr, new: Expr) -> Expr:
        if not isinstance(new, Call) or not isinstance(new.op, Op) or not new.args or not is_call(new.args[0], "nn.pad"):
            return new
        name, pad = new.op.name, new.args[0]
        assert isinstance(pad, Call)
        if name not in _CONVS | _MAX_POOLS | _AVG_POOLS or pad.attrs.pad_mode != "constant":
            return new
        layout = new.attrs.data_layout if name in _CONVS else new.attrs.layout
        parts = re.findall(r"\d*[A-Za-z]", layout)
        axes = [i for i, c in enumerate(parts) if c in ("D", "H", "W")]
        widths = [(int(b), int(a)) for b, a in pad.attrs.pad_width]
        if len(parts) != len(widths) or any(w != (0, 0) for i, w in enumerate(widths) if i not in axes):
            return new
        if any(w < 0 for pair in widths for w in pair) or not _fills(name, new, pad):
            return new
        own = _padding(new, len(axes))
        total = [own[i] + widths[a][0] for i, a in enumerate(axes)]
        total += [own[len(axes) + i] + widths[a][1] for i, a in enumerate(axes)]
        # What was padded before is counted in averages, whatever the pool says of its own padding.
        counted = {"count_include_pad": True} if name in _AVG_POOLS else {}
        return with_attrs(new, [pad.args[0], *new.args[1:]], padding=total, **counted)

    return per_function(mod, lambda f: rewrite_typed(f, put))


def _fills(name: str, call: Call, pad: Call) -> bool:
    """Whether what the pad fills in is what the operator's own padding stands for."""
    value = scalar_value(pad.args[1])
    if value is None:
        return False
    if name == "qnn.conv2d":
        zero_point = scalar_value(call.args[2])
        return zero_point is not None and value == zero_point
    if name in _CONVS:
        return value == 0
    nothing = all(p == 0 for p in call.attrs.padding)
    if name in _AVG_POOLS:
        return value == 0 and not call.attrs.ceil_mode and (nothing or call.attrs.count_include_pad)
    ty = pad.args[0].checked_type
    dtype = getattr(ty, "dtype", "")
    if dtype.startswith(("int", "uint")):
        return value == np.iinfo(dtype).min
    return value == -np.inf or value <= float(np.finfo(dtype).min if dtype.startswith("float") else -np.inf)


@dataclass(frozen=True)
class FoldExplicitPadding(Pass):
    """nn.pad in front of a convolution or pool becomes its padding."""

    def run(self, mod: IRModule) -> IRModule:
        return fold_explicit_padding(mod)
