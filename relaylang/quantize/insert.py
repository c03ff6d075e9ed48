"""The network with a quantize and a dequantize around each layer, from which FakeQuantizationToInteger makes integers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relaylang.ir import Call, Expr, Function, Tuple, TupleGetItem, TupleType, post_order, rebuild, rebuilt
from relaylang.ir import children as children_of
from relaylang.ir.typed import forget_stale_types, retype, typed_constant
from relaylang.ops.build import op_call
from relaylang.ops.record import Op
from relaylang.quantize.layers import Layer, Plan, Value
from relaylang.rules.quantization.forms import channel_axis, with_bias


@dataclass(frozen=True)
class Scale:
    """A value's scale and zero point."""

    scale: float
    zero: int
    dtype: str

    def quantized(self, x: Expr) -> Call:
        return op_call("qnn.quantize", [x, *self._parts()], out_dtype=self.dtype, axis=-1)

    def real(self, x: Expr) -> Call:
        return op_call("qnn.dequantize", [x, *self._parts()], axis=-1, out_dtype="float32")

    @property
    def range(self) -> tuple[float, float]:
        """The least and the greatest real number."""
        info = np.iinfo(self.dtype)
        return (info.min - self.zero) * self.scale, (info.max - self.zero) * self.scale

    def _parts(self) -> list[Expr]:
        return [typed_constant(np.asarray(self.scale, "float32")), typed_constant(np.asarray(self.zero, "int32"))]


@dataclass
class Weight:
    """A weight in whole numbers: `ints` (int8) times `scales`, one for all or one for each index of `axis`."""

    ints: np.ndarray
    scales: np.ndarray
    axis: int

    @property
    def real(self) -> np.ndarray:
        return self.ints.astype("float32") * self.spread

    @property
    def spread(self) -> np.ndarray:
        """The scales, broadcast along the axis."""
        if not self.scales.ndim:
            return self.scales
        return self.scales.reshape([-1 if i == self.axis else 1 for i in range(self.ints.ndim)])

    def expr(self) -> Expr:
        scales, zeros = typed_constant(self.scales), typed_constant(np.zeros(self.scales.shape, "int32"))
        return op_call("qnn.dequantize", [typed_constant(self.ints), scales, zeros], axis=self.axis, out_dtype="float32")


@dataclass
class Parameters:
    """The numbers of a quantised network: the scales of its values, its weights and biases (float32)."""

    scales: dict[int, Scale] = field(default_factory=dict)  # by the identity of the value
    weights: dict[int, Weight] = field(default_factory=dict)  # by the identity of the layer
    biases: dict[int, np.ndarray] = field(default_factory=dict)

    def of(self, value: Value) -> Scale:
        return self.scales[id(value)]

    def renamed(self, layer: Layer, copy: Layer) -> Parameters:
        """The same with a layer's weight and bias for its copy."""
        weights = {**self.weights, id(copy): self.weights[id(layer)]}
        biases = dict(self.biases)
        if id(layer) in biases:
            biases[id(copy)] = biases[id(layer)]
        return Parameters(self.scales, weights, biases)


@dataclass
class Inserted:
    """A function with conversions. `results` has the expression of each layer's result, in the order of the plan."""

    func: Function
    results: list[Expr]


def insert(plan: Plan, numbers: Parameters) -> Inserted:
    """The plan's function with quantised values at the scales of `numbers`. The checker must infer its types."""
    heads = {id(layer.head): layer for layer in plan.layers}
    inside = {id(node): layer for layer in plan.layers for node in (layer.head, layer.bias, *layer.limits) if node is not None}
    done: dict[int, Expr] = {}
    quantized: set[int] = set()  # the nodes that are conversions already
    converted: dict[int, Expr] = {}

    def taken(operand: Expr) -> Expr:
        """A layer's operand, converted."""
        if id(operand) in quantized:
            return done[id(operand)]
        if id(operand) not in converted:
            scale = numbers.of(plan.value_of[id(operand)])
            converted[id(operand)] = scale.real(scale.quantized(done[id(operand)]))
        return converted[id(operand)]

    def field_of(node: TupleGetItem) -> bool:
        return id(node.tuple_value) in quantized

    for node in post_order(plan.func):
        if id(node) in heads:
            layer = heads[id(node)]
            layer_expr = _layer(layer, plan, numbers, taken, done)
            done[id(node)] = done[id(layer.tail)] = layer_expr
            if not layer.open:
                quantized.add(id(layer.tail))
        elif id(node) in inside:
            if node is not inside[id(node)].tail:
                done[id(node)] = done[id(inside[id(node)].tail)]  # nothing else uses it
        elif isinstance(node, TupleGetItem) and field_of(node):
            scale = numbers.of(plan.value_of[id(node.tuple_value)])
            done[id(node)] = scale.real(scale.quantized(TupleGetItem(done[id(node.tuple_value)], node.index, node.span)))
            quantized.add(id(node))
        else:
            done[id(node)] = retype(rebuilt(node, done), node)
    func = forget_stale_types(done[id(plan.func)])
    assert isinstance(func, Function)
    return Inserted(func, [done[id(layer.tail)] for layer in plan.layers])


def alone(layer: Layer, plan: Plan, numbers: Parameters) -> Expr:
    """A layer's quantised result where its operands are those of the float network."""
    done = {id(node): node for node in children_of(layer.head)}
    fields = [f for a in layer.head.args if isinstance(a, Tuple) for f in a.fields]
    done.update({id(f): f for f in fields})

    def taken(operand: Expr) -> Expr:
        scale = numbers.of(plan.value_of[id(operand)])
        return scale.real(scale.quantized(operand))

    return _layer(layer, plan, numbers, taken, done)


def _layer(layer: Layer, plan: Plan, numbers: Parameters, taken: Any, done: Mapping[int, Expr]) -> Expr:
    head = layer.head
    wanted = {id(o) for o in layer.operands}

    def operand(old: Expr) -> Expr:
        return taken(old) if id(old) in wanted else done[id(old)]

    args: list[Expr] = []
    for old in head.args:
        if isinstance(old, Tuple):
            args.append(Tuple([operand(f) for f in old.fields], old.span))
        elif old is layer.weight:
            args.append(numbers.weights[id(layer)].expr())
        else:
            args.append(operand(old))
    layer_expr: Expr = rebuild(head, (*args, *children_of(head)[len(head.args) :]))
    bias = numbers.biases.get(id(layer))
    if bias is not None:
        x = numbers.of(plan.value_of[id(layer.operands[0])])
        layer_expr = with_bias(layer_expr, _bias(bias, x, numbers.weights[id(layer)]), channel_axis(head))
    if isinstance(head.checked_type, TupleType):
        return layer_expr
    layer_expr.span = layer_expr.span or head.span
    if layer.open:
        for limit in layer.limits:
            layer_expr = rebuild(limit, (layer_expr, *children_of(limit)[1:]))
        return layer_expr
    scale = numbers.of(plan.value_of[id(layer.tail)])
    for limit in layer.limits:
        if not _redundant(limit, scale):
            layer_expr = rebuild(limit, (scale.real(scale.quantized(layer_expr)), *children_of(limit)[1:]))
    return scale.real(scale.quantized(layer_expr))


def _redundant(limit: Call, scale: Scale) -> bool:
    """Whether quantised numbers are within a limit anyway."""
    low, high = scale.range
    assert isinstance(limit.op, Op)
    attrs: Any = limit.attrs
    least, most = (0.0, np.inf) if limit.op.name == "nn.relu" else (attrs.a_min, attrs.a_max)
    return bool(low >= least - scale.scale / 2 and high <= most + scale.scale / 2)


def bias_scale(x: Scale, weight: Weight) -> np.ndarray:
    """The scale of a product's sums, float32."""
    return np.asarray(np.float32(x.scale) * weight.scales, "float32")


def _bias(bias: np.ndarray, x: Scale, weight: Weight) -> Expr:
    if x.dtype != "int8":
        return typed_constant(bias)  # sums have 64 bits, which qnn.dequantize does not take
    scale = bias_scale(x, weight)
    ints = np.clip(np.rint(bias.astype("float64") / scale), -(2**31), 2**31 - 1).astype("int32")
    zeros = typed_constant(np.zeros(scale.shape, "int32"))
    return op_call("qnn.dequantize", [typed_constant(ints), typed_constant(scale), zeros], axis=0, out_dtype="float32")


__all__ = ["Inserted", "Parameters", "Scale", "Weight", "alone", "bias_scale", "insert"]
