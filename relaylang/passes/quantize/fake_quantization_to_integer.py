"""FakeQuantizationToInteger: convert float operators between qnn.dequantize and qnn.quantize to integer ones.

Behind each dequantize, a tensor is known as whole numbers with a scale and a zero point. It stays known as long as the
operators on the way have integer forms. A quantize at which such a tensor arrives takes the whole numbers. A sum on the
way has the scale of the quantize to which it flows. That scale must be the same on all ways. Everything else stays in
floats. Results may be off by one unit of the last place. There the float program rounds once and the integer one twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.ir import (
    Call,
    Constant,
    Expr,
    Function,
    IRModule,
    TensorType,
    Tuple,
    TupleGetItem,
    children,
    post_order,
    rebuild,
)
from relaylang.ir.tensors import tensor_type
from relaylang.ir.typed import forget_stale_types, retype
from relaylang.ops.record import Op
from relaylang.ops.traits import Trait
from relaylang.passes.manager import Pass
from relaylang.passes.quantize.registered_integer_rules import OWN, OWN_OPTIONAL, own_rule
from relaylang.passes.rewriting import per_function
from relaylang.passes.simplify.fold_constant import fold_typed
from relaylang.rules.fake_quantization import FLOWS, FOLLOWS, OPTIONAL, RULES, WIDE
from relaylang.rules.fake_quantization.affine import Affine, Rule, Wanted, affine, at, at_channels, one, real

#: What qnn.requantize makes.
_MADE = ("int8", "uint8", "int16", "int32")


def _quantize_of(node: Expr) -> Wanted | None:
    """The scale and zero point of a quantize with single known ones."""
    assert isinstance(node, Call)
    scale, zero = node.args[1:3]
    if not isinstance(scale, Constant) or not isinstance(zero, Constant) or scale.data.size != 1 or zero.data.size != 1:
        return None
    if node.attrs.out_dtype not in _MADE or not 0 < float(scale.data.reshape(-1)[0]) < np.inf:
        return None
    return Wanted(scale.data.reshape(()), zero.data.reshape(()), node.attrs.out_dtype)


def _wanted(order: list[Expr]) -> dict[int, Wanted | None]:
    """The quantize that each value flows to; None where ways part, or lead elsewhere."""
    wanted: dict[int, Wanted | None] = {}
    for node in reversed(order):
        mine: Wanted | None = None
        if isinstance(node, (Tuple, TupleGetItem)):
            mine = wanted.get(id(node))
        elif isinstance(node, Call) and isinstance(node.op, Op):
            if Trait.QUANTISE in node.op.traits:
                mine = _quantize_of(node)
            elif node.op.name in FLOWS:
                mine = wanted.get(id(node))
        for child in children(node):
            if id(child) not in wanted:
                wanted[id(child)] = mine
            elif not _alike(wanted[id(child)], mine):
                wanted[id(child)] = None
    return wanted


def _alike(a: Wanted | None, b: Wanted | None) -> bool:
    return a is b or (a is not None and b is not None and a.dtype == b.dtype and a.scale == b.scale and bool(a.zero == b.zero))


def _quantized(call: Call, x: Affine) -> Expr | None:
    """A quantize of a tensor that is known in integers."""
    wanted = _quantize_of(call)
    if wanted is not None:
        return at(x, wanted.scale, wanted.zero, wanted.dtype).ints
    scale, zero = call.args[1:3]
    ty = tensor_type(call.args[0])
    if not isinstance(scale, Constant) or not isinstance(zero, Constant) or ty is None or not ty.shape:
        return None
    if call.attrs.out_dtype not in _MADE or not np.all(scale.data > 0) or not np.isfinite(scale.data).all():
        return None
    scales, zeros = (one(v.data.reshape(-1) if v.data.size > 1 else v.data.reshape(())) for v in (scale, zero))
    if not scales.ndim and not zeros.ndim:
        return at(x, scales, zeros, call.attrs.out_dtype).ints
    quantized = at_channels(x, scales, zeros, call.attrs.out_dtype, call.attrs.axis, len(ty.shape))
    return quantized.ints if quantized is not None else None


def fake_quantization_to_integer(
    mod: IRModule,
    hard_fail: bool = False,
    use_qat: bool = False,
    optional_qnn_ops: Sequence[str] = (),
    fold: Callable[[Expr], Expr] = lambda e: e,
) -> IRModule:
    """A typed module in which fake-quantized parts compute in integers; its types must be inferred again.

    With `hard_fail` a part with an operator that has no integer form is an error (`RelayError`, R0516). Without, it
    stays in floats. With `use_qat` values that flow to no quantize are computed in integers too, with a dequantize
    behind them. Their scale must follow from their operands'. `optional_qnn_ops`: operators of `OPTIONAL` that are to
    have integer forms. `fold` makes constants of what rules of others say of scales.
    """
    unknown = [name for name in optional_qnn_ops if not {name} & {*OPTIONAL, *OWN_OPTIONAL, *RULES}]
    if unknown:
        raise RelayError(error("R0516", f"{unknown[0]} has no integer form", notes=[f"there are {', '.join(OPTIONAL)}"]))
    rules = {**RULES, **{name: rule for name, rule in OPTIONAL.items() if name in optional_qnn_ops}}
    own = {**{name: f for name, f in OWN_OPTIONAL.items() if name in optional_qnn_ops}, **OWN}
    rules |= {name: own_rule(name, f, fold, hard_fail) for name, f in own.items()}
    return per_function(mod, lambda f: _Conversion(f, rules, hard_fail, use_qat).run())


class _Conversion:
    """One function. `affine` has the nodes known in integers. `follows` has those whose scale follows from the
    operands' all the way, and `blame` the first operator that stopped that.
    """

    def __init__(self, func: Function, rules: dict[str, Rule], hard_fail: bool, use_qat: bool) -> None:
        self.func = func
        self.rules = rules
        self.hard_fail = hard_fail
        self.use_qat = use_qat
        self.order = list(post_order(func))
        self.wanted = _wanted(self.order)
        self.affine: dict[int, Affine] = {}
        self.follows: set[int] = set()
        self.blame: dict[int, Expr] = {}

    def run(self) -> Expr:
        done: dict[int, Expr] = {}
        for node in self.order:
            new = retype(rebuild(node, tuple([done[id(c)] for c in children(node)])), node)
            if isinstance(new, TupleGetItem) and isinstance(node, TupleGetItem):
                source = self.affine.get(id(node.tuple_value))
                if source is not None:
                    part = TupleGetItem(source.ints, node.index, node.span)
                    if id(node.tuple_value) in self.follows:
                        self.follows.add(id(node))
                    self.affine[id(node)] = Affine(part, source.scale, source.zero, source.dtype)
            elif isinstance(new, Call) and isinstance(node, Call) and isinstance(node.op, Op):
                new = self.call(node, new)
            if self.hard_fail and id(node) not in self.affine and id(node) not in self.blame:
                self.follow(node)
            done[id(node)] = new
        return forget_stale_types(done[id(self.func)])

    def follow(self, node: Expr) -> None:
        """Remember which operator it was that left the integers."""
        if isinstance(node, Call) and isinstance(node.op, Op) and Trait.QUANTISE in node.op.traits:
            return
        for child in children(node):
            if id(child) in self.blame:
                self.blame[id(node)] = self.blame[id(child)]
                return
        inner = [f for c in children(node) for f in (c.fields if isinstance(c, Tuple) else (c,))]
        if isinstance(node, Call) and any(id(c) in self.affine for c in inner):
            self.blame[id(node)] = node

    def call(self, node: Call, new: Call) -> Expr:
        assert isinstance(node.op, Op)
        if Trait.DEQUANTISE in node.op.traits:
            self.dequantize(node, new)
            return new
        if Trait.QUANTISE in node.op.traits:
            return self.quantize(node, new)
        rule = self.rules.get(node.op.name)
        return new if rule is None else self.by_rule(rule, node, new)

    def dequantize(self, node: Call, new: Call) -> None:
        scale, zero = node.args[1:3]
        ty = tensor_type(node.args[0])
        if isinstance(scale, Constant) and isinstance(zero, Constant) and ty is not None and np.all(scale.data > 0):
            self.affine[id(node)] = affine(new.args[0], scale.data, zero.data, ty.dtype, node.attrs.axis)
            self.follows.add(id(node))
        elif self.hard_fail:
            self.blame[id(node)] = node

    def quantize(self, node: Call, new: Call) -> Expr:
        assert isinstance(node.op, Op)
        x = self.affine.get(id(node.args[0]))
        if self.hard_fail and id(node.args[0]) in self.blame:
            stopped = self.blame[id(node.args[0])]
            what = stopped.op.name if isinstance(stopped, Call) and isinstance(stopped.op, Op) else "this call"
            raise RelayError(error("R0516", f"{what} has no integer form here", stopped.span))
        quantized = _quantized(new, x) if x is not None else None
        if self.hard_fail and x is not None and quantized is None:
            raise RelayError(error("R0516", f"{node.op.name} has no integer form here", node.span))
        return retype(quantized, node) if quantized is not None else new

    def by_rule(self, rule: Rule, node: Call, new: Call) -> Expr:
        assert isinstance(node.op, Op)
        values = [f for a in node.args for f in (a.fields if isinstance(a, Tuple) else (a,))]
        operands = [self.affine.get(id(a)) for a in values]
        if node.op.name not in WIDE:
            operands = [None if o is not None and o.dtype == "int64" else o for o in operands]
        integers = rule(new, operands, self.wanted.get(id(node))) if any(o is not None for o in operands) else None
        if integers is None:
            return new
        self.affine[id(node)] = integers
        known = all(id(a) in self.follows for a, o in zip(values, operands) if o is not None)
        if self.use_qat and known and node.op.name in FOLLOWS:
            self.follows.add(id(node))
            if isinstance(node.checked_type, TensorType):
                return retype(real(integers, node.checked_type.dtype, len(node.checked_type.shape)), node)
        return new


@dataclass(frozen=True)
class FakeQuantizationToInteger(Pass):
    """Convert float operators between qnn.dequantize and qnn.quantize to integer ones.

    `hard_fail`: an operator without an integer form is an error (R0516); else it stays in floats. `use_qat`: convert
    operators without a quantize behind them, too. `optional_qnn_ops` names the operators to convert on demand: nn.softmax, and add
    and subtract with one rounding.
    """

    hard_fail: bool = False
    use_qat: bool = False
    optional_qnn_ops: list[str] | None = None

    def run(self, mod: IRModule) -> IRModule:
        optional = list(self.optional_qnn_ops or ())
        return fake_quantization_to_integer(mod, self.hard_fail, self.use_qat, optional, fold_typed)
