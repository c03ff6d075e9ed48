"""Relay to ONNX: a graph of opset 21. The operators' rules are in the tables of `families/`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from relaylang.diagnostics.unsupported import Unsupported
from relaylang.export.onnx.kernels import carrier
from relaylang.export.onnx.recurrent import with_layers
from relaylang.export.walk import Loop, Value, Walk, grouped, leaves, tensor_types
from relaylang.frontends.common.builder import Builder
from relaylang.frontends.common.files import need_package
from relaylang.frontends.common.listing import Listing
from relaylang.frontends.options import Options
from relaylang.ir import Expr, Function, GlobalVar, IRModule, TensorType, TypeVar
from relaylang.ir.types import dim_text
from relaylang.passes.normal_forms import to_graph_normal_form
from relaylang.passes.normal_forms.extents_as_operands import extents_as_operands
from relaylang.passes.rewriting import is_kernel

#: The opset that is written.
OPSET = 21
#: Element types that ONNX names otherwise.
_DTYPES = {"float32": "FLOAT", "float64": "DOUBLE", "float4_e2m1fn": "FLOAT4E2M1"}
#: More nodes and bytes than there are.
_UNBOUNDED = 1 << 62


class Emitter(Walk):
    """The graph as it grows. `blocks` are the lists of layers of the graph and of the branches around the place."""

    format = "ONNX"
    dynamic = True

    def __init__(self, mod: IRModule, file: str, rules: Any) -> None:
        self.rules = rules
        self.onnx = need_package("onnx", "onnx", "the export to ONNX")
        super().__init__(mod, file)
        self.blocks: list[list[Any]] = [[]]
        self.weights: list[Any] = []
        self.numbers: dict[tuple[Any, ...], Value] = {}
        self.fresh: dict[str, Any] = {}
        self.turned: dict[str, tuple[Value, list[int]]] = {}
        self.shared: dict[str, Any] = {}
        self.padded: dict[str, tuple[Value, Value]] = {}

    # ---- for rules

    def _cast_back(self, kind: str, values: Sequence[Value], results: list[str], carried: Mapping[str, str]) -> list[Value]:
        """The results of a layer in the element types that `carried` has by the letters of the layer's signature."""
        letters = [*results, *results[-1:] * len(values)]
        return [self.cast(v, carried[t], carrier(kind, carried[t])) if t in carried else v for t, v in zip(letters, values)]

    def op(self, kind: str, *inputs: Value | None, ty: TensorType | None = None, outputs: int = 1, **attrs: Any) -> Any:
        """A layer; gives its result, or a list of them. Element types that onnxruntime has no kernel for are cast around it."""
        types, results, _ = _signature(self.onnx, kind)
        letters = [types[min(i, len(types) - 1)] for i in range(len(inputs))]
        carried: dict[str, str] = {}
        for letter, value in zip(letters, inputs):
            if value is not None and carrier(kind, value.dtype) != value.dtype and letter.startswith("T"):
                carried[letter] = value.dtype
        if carried:
            held = [v if v is None or t not in carried else self.cast(v, carrier(kind, v.dtype)) for t, v in zip(letters, inputs)]
            outs = self.op(kind, *held, outputs=outputs, **attrs)
            back = self._cast_back(kind, outs if isinstance(outs, list) else [outs], results, carried)
            for value in back:
                value.type = ty or value.type
            return back if isinstance(outs, list) else back[0]
        dtype = self._dtype(kind, inputs)
        names = [self.unique(f"{self.wish}.{kind}") for _ in range(outputs)]
        kept = {name: value for name, value in attrs.items() if value is not None}
        names_in = ["" if v is None else v.name for v in inputs]
        while names_in and not names_in[-1]:
            names_in.pop()
        layer = self.onnx.helper.make_node(kind, names_in, names, name=names[0], **kept)
        self.blocks[-1].append(layer)
        for name in names_in:
            self.fresh.pop(name, None)
        unknown = ty or TensorType((), dtype)
        outs = [Value(n, unknown) for n in names]
        if outputs == 1:
            self.fresh[names[0]] = layer
        return outs if outputs > 1 else outs[0]

    def custom(self, domain: str, kind: str, *inputs: Value, results: Sequence[TensorType], **attrs: Any) -> Any:
        """A layer of an operator of another domain, whose meaning a runtime gets elsewhere; its result, or a list of them."""
        values = [Value(self.unique(f"{self.wish}.{kind}"), ty) for ty in results]
        operands, names = [v.name for v in inputs], [v.name for v in values]
        self.blocks[-1].append(self.onnx.helper.make_node(kind, operands, names, name=names[0], domain=domain, **attrs))
        return values if len(values) != 1 else values[0]

    def _dtype(self, kind: str, inputs: Sequence[Value | None]) -> str:
        """The element type of a layer's first result. Raises `Unsupported` for operands that the operator does not take."""
        types, (result, *_), allowed = _signature(self.onnx, kind)
        bound: dict[str, str] = {}
        for number, value in enumerate(inputs):
            letter = types[min(number, len(types) - 1)]
            if value is None or letter not in allowed:
                continue
            bound.setdefault(letter, value.dtype)
            if value.dtype not in allowed[letter]:
                raise Unsupported(f"ONNX's {kind} does not take {value.dtype}")
        only = allowed.get(result, set())
        return bound.get(result) or (next(iter(only)) if len(only) == 1 else "") or result.removeprefix("tensor(").rstrip(")")

    def named(self, made: Any) -> Any:
        """The last layer of a rule takes the name of the call."""
        layer = self.fresh.get(made.name) if isinstance(made, Value) else None
        if layer is not None:
            self.taken.discard(made.name)
            old, made.name = made.name, self.unique(self.wish)
            layer.output[0] = layer.name = made.name
            if old in self.turned:
                self.turned[made.name] = self.turned.pop(old)
        self.fresh = {}
        return made

    def ints(self, values: Sequence[int], name: str = "shape") -> Value:
        """A constant vector of int64."""
        return self.array(np.asarray(list(values), np.int64), name)

    def scalar(self, value: Any, dtype: str, name: str = "number") -> Value:
        """A constant scalar."""
        return self.array(np.asarray(value).astype(np.dtype(dtype)), name, dtype)

    def array(self, data: np.ndarray, name: str, dtype: str = "") -> Value:
        """A constant; equal small ones are one."""
        ty = TensorType(data.shape, dtype or data.dtype.name)
        key = (data.shape, ty.dtype, data.tobytes()) if data.size <= 64 else (id(data), data.shape, ty.dtype)
        constant = self.numbers.get(key)
        if constant is None:
            constant = self.numbers[key] = Value(self.unique(name), ty, data)
            tensor = self.onnx.numpy_helper.from_array(np.ascontiguousarray(data).reshape(data.shape), constant.name)
            self.weights.append(tensor)
        return constant

    def transpose(self, x: Value, axes: Sequence[int]) -> Value:
        """A transposition: folded into a constant, and joined with a transposition before it."""
        axes = list(axes)
        if axes == sorted(axes):
            return x
        if x.data is not None:
            return self.array(np.ascontiguousarray(x.data.transpose(axes)), x.name, x.dtype)
        before = self.turned.get(x.name)
        if before is not None:
            return self.transpose(before[0], [before[1][a] for a in axes])
        known = len(axes) == x.rank
        ty = TensorType(tuple([x.shape[a] for a in axes]), x.dtype) if known else None
        transposed = self.op("Transpose", x, perm=axes, ty=ty)
        self.turned[transposed.name] = (x, axes)
        return transposed

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        """A reshape to known extents, with one -1 at most."""
        if x.data is not None:
            return self.array(x.data.reshape(tuple(shape)), x.name, x.dtype)
        return self.op("Reshape", x, self.ints(shape), ty=TensorType(tuple(shape), x.dtype))

    def unsqueeze(self, x: Value, axes: Sequence[int]) -> Value:
        return self.op("Unsqueeze", x, self.ints(axes, "axes")) if axes else x

    def cast(self, x: Value, dtype: str, source: str = "") -> Value:
        if (source or x.dtype) == dtype:
            return x
        if x.data is not None:
            return self.array(x.data.astype(np.dtype(dtype)), x.name, dtype)
        return self.op("Cast", x, to=self.kind(dtype), ty=TensorType(x.type.shape, dtype))

    def origin(self, name: str, through: Sequence[str]) -> Any:
        """The layer that makes a value, beyond layers of these operators; None for an input or a constant."""
        while True:
            layer = next((n for block in self.blocks for n in reversed(block) if name in n.output), None)
            if layer is None or layer.op_type not in through:
                return layer
            name = layer.input[0]

    def kind(self, dtype: str) -> int:
        """ONNX's number of an element type."""
        name = _DTYPES.get(dtype, dtype.upper().replace("_", "") if dtype.startswith("float8") else dtype.upper())
        kinds = self.onnx.TensorProto.DataType
        if name not in kinds.keys():
            raise Unsupported(f"ONNX has no element type {dtype}")
        return int(kinds.Value(name))

    # ---- what the walk asks for

    def prepared(self, function: Function) -> Expr:
        options = Options(nodes=_UNBOUNDED, bytes=_UNBOUNDED)  # what the layers take, the program has
        numbered = extents_as_operands(function)
        return with_layers(numbered, lambda: Builder(Listing(self.file), self.report, options), self._callee)

    def _callee(self, op: Expr) -> Function | None:
        """The function that a call calls, in graph normal form; None for one without a body, and for one that is computed."""
        function = self.mod.functions.get(op) if isinstance(op, GlobalVar) else op
        if not isinstance(function, Function) or function.body is None or is_kernel(function):
            return None
        if isinstance(op, GlobalVar) and op.name_hint not in self.shared:
            self.shared[op.name_hint] = to_graph_normal_form.convert(function)
        return self.shared[op.name_hint] if isinstance(op, GlobalVar) else function

    def legal(self, name: str) -> str:
        return re.sub(r"[^\w.:/\-]", "_", name)

    def constant(self, data: np.ndarray, ty: TensorType, name: str) -> Value:
        return self.array(data, name, ty.dtype)

    @contextmanager
    def block_of(self) -> Any:
        """A list of layers for a graph inside a layer."""
        self.blocks.append([])
        try:
            yield self.blocks[-1]
        finally:
            self.blocks.pop()

    def graph(self, name: str, inputs: Sequence[Any], layers: list[Any], outputs: Sequence[Value], types: Sequence[TensorType]) -> Any:
        """A graph inside a layer. Its results must be made inside it, under names of their own."""
        infos = []
        for value, ty in zip(outputs, types):
            own = self.unique(f"{value.name}_out")
            layers.append(self.onnx.helper.make_node("Identity", [value.name], [own], name=own))
            infos.append(self.info(own, ty))
        return self.onnx.helper.make_graph(layers, name, list(inputs), infos)

    def info(self, name: str, ty: TensorType) -> Any:
        shape = [n if isinstance(n, int) else dim_text(n) if isinstance(n, TypeVar) else None for n in ty.shape]
        return self.onnx.helper.make_tensor_value_info(name, self.kind(ty.dtype), shape)

    def if_(self, condition: Value, branches: Sequence[Callable[[], list[Value]]], types: list[TensorType]) -> list[Value]:
        graphs = []
        for branch, name in zip(branches, ("then", "else")):
            with self.block_of() as layers:
                outputs = branch()
                graphs.append(self.graph(name, [], layers, outputs, types))
        outs = self.op("If", condition, outputs=len(types), then_branch=graphs[0], else_branch=graphs[1])
        return self._typed(outs, types)

    def _typed(self, results: Any, types: Sequence[TensorType]) -> list[Value]:
        values = results if isinstance(results, list) else [results]
        for value, ty in zip(values, types):
            value.type = ty
        return values

    def not_(self, condition: Value) -> Value:
        return self.op("Not", condition, ty=TensorType((), "bool"))

    def loop(self, loop: Loop) -> Any:
        types = [t for ty in loop.types for t in tensor_types(ty)]

        begin = [v for x in loop.initial for v in leaves(x)]
        first = loop.test(loop.initial)
        turn, going = self.unique("turn"), self.unique("going")
        state = [Value(self.unique(v.name), t) for v, t in zip(begin, types)]
        with self.block_of() as layers:
            after = [v for x in loop.body(grouped(state, loop.types)) for v in leaves(x)]
            again = loop.test(grouped(after, loop.types))
            inputs = [self.info(turn, TensorType((), "int64")), self.info(going, TensorType((), "bool"))]
            inputs += [self.info(v.name, t) for v, t in zip(state, types)]
            body = self.graph("body", inputs, layers, [again, *after], [TensorType((), "bool"), *types])
        outs = self.op("Loop", None, first, *begin, outputs=len(types), body=body)
        return loop.rest(grouped(self._typed(outs, types), loop.types))


@cache
def _signature(onnx: Any, kind: str) -> tuple[list[str], list[str], dict[str, set[str]]]:
    """The types of an operator's inputs and of its outputs, and the element types that each letter stands for."""
    schema = onnx.defs.get_schema(kind, OPSET)
    allowed = {c.type_param_str: {_relay_name(t) for t in c.allowed_type_strs} for c in schema.type_constraints}
    return [i.type_str for i in schema.inputs] or ["T"], [o.type_str for o in schema.outputs], allowed


def _relay_name(text: str) -> str:
    """`tensor(float)` as Relay names it: float32."""
    name = text.removeprefix("tensor(").rstrip(")")
    return {"float": "float32", "double": "float64"}.get(name, name.replace("float8", "float8_"))


__all__ = ["OPSET", "Emitter"]
