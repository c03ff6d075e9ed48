"""The layers of a float network, and the values between them that get a scale."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relaylang.diagnostics import did_you_mean
from relaylang.ir import Call, Constant, Expr, Function, If, IRModule, Let, Match, Tuple, TupleGetItem, TupleType, children, post_order
from relaylang.ir.tensors import static_shape, tensor_type
from relaylang.ops.record import Op
from relaylang.passes.rewriting import is_call
from relaylang.quantize.prepare import refuse
from relaylang.rules.fake_quantization import RULES as INTEGER
from relaylang.rules.quantization.forms import bias_of
from relaylang.rules.quantization.static import BOUNDED, ROLES, TARGETS, Role, Wishes


@dataclass
class Layer:
    """An operator between values with scales.

    `head` is its call, `bias` the constant sum behind it, `limits` the limits behind that. `tail` is the last of them: the layer's
    result. `operands` are the values that it takes, its weight apart.
    """

    name: str
    head: Call
    role: Role
    operands: list[Expr]
    weight: Constant | None = None
    bias: Call | None = None
    limits: list[Call] = field(default_factory=list)
    #: The result stays in floats: nothing takes it in whole numbers.
    open: bool = False

    @property
    def tail(self) -> Call:
        return self.limits[-1] if self.limits else self.bias if self.bias is not None else self.head


@dataclass
class Value:
    """Tensors with one scale. The numbers of all others are moved or chosen from those of `source`."""

    source: Expr
    #: The least and the greatest number, where they are known without data.
    bounds: tuple[float, float] | None = None


@dataclass
class Plan:
    """The layers to quantise, and their values. `value_of` has the value of each tensor by its node's identity."""

    func: Function
    layers: list[Layer]
    values: list[Value]
    value_of: dict[int, Value]
    #: Layers that stay in floats, and the reasons.
    floats: list[tuple[str, str]]


def make_plan(func: Function, wishes: Wishes, keep_float: Collection[str] = ()) -> Plan:
    """The layers of a typed function that are quantised.

    `keep_float` names layers that stay in floats, by their names or the names of the imported network's nodes. Raises
    `RelayError` (R0530) for names of no layer.
    """
    floats: list[tuple[str, str]] = []
    candidates = list(_candidates(func, wishes, floats))
    labels = {layer.name: {label for label in _labels(layer) if label} for layer in candidates}
    known = {name for layer in candidates for name in (layer.name, *labels[layer.name])}
    for name in keep_float:
        if name not in known:
            near = did_you_mean(name, sorted(known))
            shown = [layer.name for layer in candidates if layer.role is not Role.SAME]
            more = f"did you mean {near}?" if near else f"its layers: {', '.join(shown[:12])}" + ", ..." * (len(shown) > 12)
            raise refuse(f"the network has no layer {name}", more)
    kept = set(keep_float)
    layers = []
    for layer in candidates:
        if kept & {layer.name, *labels[layer.name]}:
            floats.append((layer.name, "kept in floats"))
        else:
            layers.append(layer)
    if not wishes.everything:
        recurrent = _recurrent(func, layers)
        floats += [(layer.name, "its weight is that of a recurrent layer") for layer in layers if id(layer.weight) in recurrent]
        layers = _connected([layer for layer in layers if id(layer.weight) not in recurrent])
        taken = {id(operand) for layer in layers for operand in layer.operands}
        for layer in layers:
            layer.open = layer.role is Role.PRODUCT and layer.weight is not None and id(layer.tail) not in taken
    used = {id(layer) for layer in layers}
    reasons = {name for name, _ in floats}
    floats += [
        (layer.name, "no layers of integers on both sides")
        for layer in candidates
        if id(layer) not in used and layer.name not in reasons
    ]
    values, value_of = _values(layers)
    return Plan(func, layers, values, value_of, floats)


def named_layers(mod: IRModule, names: Collection[str]) -> list[Layer]:
    """The layers of @main with some names. Raises `RelayError` (R0530) for other names."""
    if not names:
        return []
    plan = make_plan(mod["main"], TARGETS["c"])
    rest = {id(layer.head) for layer in make_plan(mod["main"], TARGETS["c"], names).layers}
    return [layer for layer in plan.layers if id(layer.head) not in rest]


def _labels(layer: Layer) -> Iterator[str]:
    for node in (layer.head, layer.bias, *layer.limits):
        if node is not None and node.span is not None:
            yield node.span.label


def _inner(func: Function) -> set[int]:
    """The nodes of nested functions and branches, whose values are not there for every input."""
    inner_ids: set[int] = set()
    for node in post_order(func.body):
        if isinstance(node, Function) and node is not func:
            roots: Iterable[Expr] = (node,)
        elif isinstance(node, If):
            roots = (node.true_branch, node.false_branch)
        elif isinstance(node, Match):
            roots = tuple(c.rhs for c in node.clauses)
        elif isinstance(node, Let):
            roots = (node,)
        else:
            continue
        stack = list(roots)
        while stack:
            one = stack.pop()
            if id(one) not in inner_ids:
                inner_ids.add(id(one))
                stack += children(one)
    return inner_ids


def _real(expr: Expr) -> bool:
    ty, shape = tensor_type(expr), static_shape(expr.checked_type)
    return ty is not None and ty.dtype == "float32" and shape is not None and 0 not in shape


def _candidates(func: Function, wishes: Wishes, floats: list[tuple[str, str]]) -> Iterator[Layer]:
    """All layers that could be quantised, operands first. Products that cannot be, and the reasons, go to `floats`."""
    order = list(post_order(func))
    inner = _inner(func)
    users: dict[int, list[Expr]] = {}
    for node in order:
        for child in children(node):
            users.setdefault(id(child), []).append(node)
    taken: set[int] = set()
    count: Counter[str] = Counter()

    def after(node: Expr) -> Call | None:
        """The call that alone uses a value."""
        mine = users.get(id(node), [])
        return mine[0] if len(mine) == 1 and isinstance(mine[0], Call) else None

    for node in order:
        if not isinstance(node, Call) or not isinstance(node.op, Op) or id(node) in inner:
            continue
        role = ROLES.get(node.op.name)
        if role is None:
            continue
        name = f"{node.op.name.rpartition('.')[2]}_{count[node.op.name]}"
        count[node.op.name] += 1
        if id(node) in taken:
            continue
        layer = _layer(name, node, role, wishes)
        if layer is None:
            if role is Role.PRODUCT:
                floats.append((name, _why_float(node)))
            continue
        if role is Role.PRODUCT:
            bias = after(node)
            if bias is not None and is_call(bias, "nn.bias_add") and bias_of(bias, node) is not None:
                layer.bias = bias
        if role is not Role.SAME and node.op.name not in BOUNDED:
            limit = after(layer.tail)
            while limit is not None and isinstance(limit.op, Op) and ROLES.get(limit.op.name) is Role.LIMIT:
                layer.limits.append(limit)
                limit = after(limit)
        taken.update(id(n) for n in (layer.bias, *layer.limits) if n is not None)
        yield layer


def _layer(name: str, node: Call, role: Role, wishes: Wishes) -> Layer | None:
    assert isinstance(node.op, Op)
    leaves = [f for a in node.args for f in (a.fields if isinstance(a, Tuple) else (a,))]
    if role is Role.PRODUCT:
        return _product(name, node)
    if role is Role.BIAS:
        role = Role.OTHER
    if role is Role.TABLE and not wishes.tables and node.op.name not in INTEGER:
        return None
    if role is Role.SAME and not _moves_reals(node):
        return None
    results = node.checked_type.fields if isinstance(node.checked_type, TupleType) else [node.checked_type]
    if not all(static_shape(ty) is not None and 0 not in static_shape(ty) and ty.dtype == "float32" for ty in results):  # type: ignore
        return None
    operands = [a for a in leaves if not isinstance(a, Constant)]
    if role is Role.SAME:
        operands = operands[:1]
    if not operands or not all(_real(a) for a in operands):
        return None
    if any(isinstance(a, Constant) and a.data.dtype.kind == "f" and not np.isfinite(a.data).all() for a in leaves):
        return None
    return Layer(name, node, role, operands)


def _moves_reals(node: Call) -> bool:
    """Whether elements of the first operand are moved, and only zeros come from elsewhere."""
    if isinstance(node.args[0], Constant):
        return False
    if not is_call(node, "nn.pad"):
        return True
    value, attrs = node.args[1], node.attrs
    return (
        isinstance(value, Constant)
        and not value.data.any()
        and getattr(attrs, "pad_mode", "constant") in ("constant", "edge", "reflect")
    )


def _product(name: str, node: Call) -> Layer | None:
    data, weight = node.args[:2]
    attrs: Any = node.attrs
    if not _real(data) or not _real(weight) or not _real(node) or isinstance(data, Constant):
        return None
    if not isinstance(weight, Constant):
        return None if hasattr(attrs, "kernel_layout") else Layer(name, node, Role.PRODUCT, [data, weight])
    if hasattr(attrs, "kernel_layout") and not (attrs.kernel_layout.isalpha() and attrs.data_layout.isalpha()):
        return None
    if not np.isfinite(weight.data).all():
        raise refuse(f"the weight of the layer {name} has numbers that are not finite", span=node.span)
    return Layer(name, node, Role.PRODUCT, [data], weight)


def _why_float(node: Call) -> str:
    """Why a product has no form in whole numbers."""
    if not all(_real(x) for x in (*node.args[:2], node)):
        return "its operands are not float32 of known shapes"
    if not isinstance(node.args[1], Constant):
        return "its weight is computed when the network runs"
    return "its data are constant" if isinstance(node.args[0], Constant) else "its layout has blocks"


def _connected(layers: list[Layer]) -> list[Layer]:
    """Products, and the other layers between them whose operands and some user are quantised, too."""
    quantized: set[int] = set()
    tentative: list[Layer] = []
    for layer in layers:
        if layer.role is Role.PRODUCT or all(id(a) in quantized for a in map(_origin, layer.operands)):
            tentative.append(layer)
            quantized.add(id(layer.tail))
    wanted: set[int] = set()
    kept: list[Layer] = []
    for layer in reversed(tentative):
        if layer.role is Role.PRODUCT or id(layer.tail) in wanted:
            kept.append(layer)
            wanted.update(id(_origin(a)) for a in layer.operands)
    return kept[::-1]


def _recurrent(func: Function, layers: Iterable[Layer]) -> set[int]:
    """The weights of products whose data depend on another product of the same weight, by id.

    The rounding of such a state would add up from step to step.
    """
    weight_of = {id(layer.head): layer.weight for layer in layers if layer.weight is not None}
    uses = Counter(id(weight) for weight in weight_of.values())
    bits = {weight: 1 << number for number, weight in enumerate(w for w, count in uses.items() if count > 1)}
    behind: dict[int, int] = {}  # by a node: the bits of the weights that it depends on
    recurrent = 0
    for node in post_order(func) if bits else ():
        weights = 0
        for child in children(node):
            weights |= behind[id(child)]
        own = bits.get(id(weight_of.get(id(node))), 0)
        recurrent |= weights & own
        behind[id(node)] = weights | own
    return {weight for weight, bit in bits.items() if recurrent & bit}


def _origin(expr: Expr) -> Expr:
    """The tuple that an expression is a field of."""
    return expr.tuple_value if isinstance(expr, TupleGetItem) else expr


def _values(layers: list[Layer]) -> tuple[list[Value], dict[int, Value]]:
    """The values of all layers' operands and results, operands first."""
    values: list[Value] = []
    value_of: dict[int, Value] = {}

    def value(node: Expr) -> Value:
        origin = _origin(node)
        if id(origin) in value_of and origin is not node:  # a part of moved elements
            value_of[id(node)] = value_of[id(origin)]
        elif id(node) not in value_of:
            values.append(Value(node))
            value_of[id(node)] = values[-1]
        return value_of[id(node)]

    for layer in layers:
        inputs = [value(operand) for operand in layer.operands]
        if layer.role is Role.SAME:
            value_of[id(layer.tail)] = inputs[0]
            continue
        if layer.open:
            continue
        assert isinstance(layer.head.op, Op)
        result = value(layer.tail)
        if layer.head.op.name in BOUNDED:
            scale, least = BOUNDED[layer.head.op.name]
            result.bounds = least, least + 255 * scale
    return values, value_of


__all__ = ["Layer", "Plan", "Value", "make_plan", "named_layers"]
