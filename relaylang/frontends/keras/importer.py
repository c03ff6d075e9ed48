"""Keras to Relay: the walk over a file's layers. Conversions of layers are in the tables of `families/`."""

from __future__ import annotations

import heapq
import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from relaylang.diagnostics import Diagnostic, RelayError, first_ones
from relaylang.frontends.common import (
    Builder,
    Imported,
    Layer,
    Listing,
    Malformed,
    Report,
    Unsupported,
    check_axes,
    check_names,
    damaged,
    external,
    failure,
    finish,
    name_extents,
    no_model,
    value_for,
)
from relaylang.frontends.common.versions import Versions
from relaylang.frontends.keras.calls import Call, Ref, calls_of, found, outputs_of
from relaylang.frontends.keras.live import is_live, live_model
from relaylang.frontends.keras.node import Node, Tensor, policy
from relaylang.frontends.keras.reader import Model, read_model
from relaylang.frontends.keras.spec import BATCH, DEEPEST, Path, Spec, input_shape
from relaylang.frontends.keras.table import REFUSED, table
from relaylang.frontends.options import DEFAULTS, Options
from relaylang.ir import ANY, Expr, TensorType, Var, rewrite
from relaylang.ir import Call as ExprCall
from relaylang.ir.bulk import gc_paused
from relaylang.ir.typed import retype
from relaylang.runtime.budget import Budget
from relaylang.runtime.text import read_bytes
from relaylang.typing.valid_types import unsound

#: The first number of the version of Keras that wrote a file. Keras reads a file whatever its version is.
_VERSIONS = Versions("the version of Keras", 1, 3)
#: The value of a tensor whose layer was not converted.
MISSING = object()
#: Layers that hand the mask of their operand on.
_PASSES = frozenset(
    (
        "Activation",
        "ActivityRegularization",
        "AlphaDropout",
        "BatchNormalization",
        "Dense",
        "Dropout",
        "ELU",
        "GaussianDropout",
        "GaussianNoise",
        "GroupNormalization",
        "Identity",
        "LayerNormalization",
        "LeakyReLU",
        "Normalization",
        "PReLU",
        "ReLU",
        "Rescaling",
        "Softmax",
        "SpatialDropout1D",
        "SpatialDropout2D",
        "SpatialDropout3D",
        "SpectralNormalization",
        "ThresholdedReLU",
        "TimeDistributed",
        "UnitNormalization",
        "GroupedQueryAttention",
        "MultiHeadAttention",
        "RMSNormalization",
    )
)


class Importer:
    """Converts one model. `file` is its name in diagnostics."""

    def __init__(self, model: Model, file: str, options: Options, budget: Budget, pictures_first: bool = False) -> None:
        # Whether pictures of @main have their channels second, where those of the network have them last.
        self.turned = pictures_first and not _channels_first(model.spec)
        self.budget = budget
        self.model = model
        self.file = file
        self.options = options
        self.rules = table()
        self.report = Report(file, self.rules.names(), warnings=_VERSIONS.warnings(model.spec.major, file))
        self.builder = Builder(Listing(file), self.report, options, budget)
        self.errors: list[Diagnostic] = []
        self._arrays: dict[Path, list[np.ndarray]] = {}
        self._weights: dict[Any, Expr] = {}
        self._depth = 0

    def run(self) -> Imported:
        """The program. Raises `RelayError` with everything that is wrong."""
        spec = self.model.spec
        entries = _inputs_of(spec)
        extents = {name: [BATCH if n == 0 and d is ANY else "" for n, d in enumerate(input_shape(x) or ())] for name, x in entries}
        name_extents(self.builder, extents)
        check_names(self.file, self.options, extents, (), self.builder.extents)
        tensors, inputs = [], []
        for name, entry in entries:
            value = self._input(name, entry)
            if isinstance(value, Var):
                inputs.append(value)
            tensors.append(Tensor(self._turn(value, "NCHW", "NHWC") if self.turned else value))
        results = self.network(spec, (), tensors)
        if self.errors:
            raise RelayError(first_ones(self.errors))
        if not self.options.partial:
            self.report.raise_if_any()
        if not results or any(r is MISSING for r in results):
            self.report.raise_if_any()
            raise damaged(self.file, "an output of the model is not defined")
        outputs = [r.x for r in results]
        if self.turned:
            self.builder.span = None
            outputs = [self._turn(x, "NHWC", "NCHW") for x in outputs]
        imported = finish(self.builder, inputs, outputs)
        if self.turned:
            imported.module["main"] = rewrite(imported.module["main"], _without_round_trip)
        return imported

    def _turn(self, x: Expr, source: str, target: str) -> Expr:
        """A picture in another layout; anything else as it is."""
        is_picture = isinstance(x.checked_type, TensorType) and len(x.checked_type.shape) == 4
        return self.builder.op("layout_transform", x, src_layout=source, dst_layout=target) if is_picture else x

    def _input(self, name: str, entry: Spec) -> Expr:
        b = self.builder
        stated = input_shape(entry)
        if self.turned and stated is not None and len(stated) == 4:
            stated = tuple(stated[i] for i in (0, 3, 1, 2))
        dtype = self.options.dtypes.get(name) or policy(entry.config.get("dtype") or entry.config.get("input_dtype"))
        dtype = {"mixed_float16": "float32", "mixed_bfloat16": "float32"}.get(dtype, dtype)
        shape = self.options.shapes.get(name)
        if shape is not None and stated is not None:
            check_axes(self.file, name, stated, shape)
        if stated and stated[0] is ANY:
            stated = b.extents.named(BATCH), *stated[1:]
        shape = stated if shape is None else tuple(shape)
        if shape is None:
            raise damaged(self.file, f"the input {name[:60]!r} has no shape", f"--shape {name}=1x224x224x3 gives it")
        ty = TensorType(list(shape), dtype)
        wrong = unsound(ty)
        if wrong is not None:
            raise damaged(self.file, f"the input {name[:60]!r}: {wrong}")
        if name in self.options.values:
            return b.const(value_for(self.file, name, self.options.values[name], ty.shape, ty.dtype))
        b.span = b.listing.add(Layer("Input", "", (), (name,)))
        return b.variable(b.unique(name), ty)

    # ---- weights

    def arrays(self, path: Path, spec: Spec) -> list[np.ndarray]:
        """The weights of a layer, read once."""
        if path not in self._arrays:
            self._arrays[path] = [read() for read in self.model.weights(path, spec)]
        return self._arrays[path]

    def weight(self, key: Any, name: str, made: Callable[[], np.ndarray]) -> Expr:
        """A weight, shared by all calls of the layer."""
        if key not in self._weights:
            self._weights[key] = self.builder.weight(name, made())
        return self._weights[key]

    # ---- models

    def network(self, spec: Spec, path: Path, given: Sequence[Any]) -> list[Any]:
        """The results of a model for these operands."""
        self._depth += 1
        try:
            if self._depth > DEEPEST:
                raise Unsupported(f"models contain models more than {DEEPEST} deep")
            return self._sequential(spec, path, given) if spec.is_sequential else self._functional(spec, path, given)
        finally:
            self._depth -= 1

    def _sequential(self, spec: Spec, path: Path, operands: Sequence[Any]) -> list[Any]:
        places = {id(member): place for place, member in spec.layers(path)}
        values = list(operands)
        names = ["input"]
        for member in spec.members:
            if id(member) not in places:
                continue
            self.budget.grant(layers=1)
            first = values[0] if len(values) == 1 else values
            values = self._layer(member, places[id(member)], Call([first], {}), names, [member.name])
            names = [member.name]
        return values

    def _functional(self, spec: Spec, path: Path, arguments: Sequence[Any]) -> list[Any]:
        members: dict[str, Spec] = {}
        for member in spec.members:
            if members.setdefault(member.name, member) is not member:
                raise damaged(self.file, f"two layers have the name {member.name[:60]!r}")
        places = {id(member): place for place, member in spec.layers(path)}
        inputs = list(found(outputs_of(spec.config.get("input_layers"), self.file)))
        outputs = [_of_first(r, members) for r in found(outputs_of(spec.config.get("output_layers"), self.file))]
        if len(inputs) != len(arguments):
            raise Malformed(f"it has {len(inputs)} inputs, and it gets {len(arguments)}")
        values: dict[tuple[str, int, int], Any] = {(r.layer, r.call, r.result): v for r, v in zip(inputs, arguments)}
        called = {name: calls_of(member) for name, member in members.items()}
        self.budget.grant(layers=sum(map(len, called.values())))
        first = _first_calls(members, called, outputs)
        types = _types(called) if self.options.partial else {}
        for ready, member, number, call in self._ordered(members, called, first, {r.layer for r in inputs}):
            if not ready:
                raise damaged(self.file, f"the layer {member.name[:60]!r} takes its own result, or that of no layer")
            operands = list(call.refs())
            filled = _filled(call, values)
            name = member.name if number == 0 else f"{member.name}:{number}"
            inner = [_name(r) for r in operands]
            stated = types.get((member.name, number + first[member.name]), {})
            last = max(stated, default=-1)
            known = list(map(stated.get, range(last + 1))) if last < 1024 else []
            results = self._layer(member, places.get(id(member), ()), filled, inner, [name], known)
            for i, result in enumerate(results):
                values[member.name, number + first[member.name], i] = result
        missing = [r for r in outputs if (r.layer, r.call, r.result) not in values]
        if missing:
            raise damaged(self.file, f"no layer makes the output {missing[0].layer[:60]!r}")
        return [values[r.layer, r.call, r.result] for r in outputs]

    @staticmethod
    def _ordered(
        members: Mapping[str, Spec], called: Mapping[str, list[Call]], first: Mapping[str, int], inputs: Iterable[str]
    ) -> Iterable[tuple[bool, Spec, int, Call]]:
        """All calls so that each comes after those that it uses. Calls in a cycle come last, and are not ready."""
        known = {(name, first[name]) for name in inputs if name in members}
        order = [(name, i) for name in members for i in range(len(called[name])) if members[name].kind != "InputLayer"]
        users: dict[tuple[str, int], list[int]] = {}
        waits: list[int] = []
        for at, (name, i) in enumerate(order):
            needed = {(r.layer, r.call) for r in called[name][i].refs()} - known
            waits.append(len(needed))
            for ref in needed:
                users.setdefault(ref, []).append(at)
        heap = [at for at, count in enumerate(waits) if not count]
        heapq.heapify(heap)
        done = 0
        while heap:
            at = heapq.heappop(heap)
            name, i = order[at]
            done += 1
            yield True, members[name], i, called[name][i]
            for user in users.pop((name, i + first[name]), ()):
                waits[user] -= 1
                if not waits[user]:
                    heapq.heappush(heap, user)
        if done < len(order):
            at = next(at for at, count in enumerate(waits) if count)
            name, i = order[at]
            yield False, members[name], i, called[name][i]

    # ---- layers

    def _layer(
        self, spec: Spec, path: Path, call: Call, inputs: Sequence[str], outputs: Sequence[str], types: Sequence[Any] = ()
    ) -> list[Any]:
        """The results of a call of a layer; `MISSING` for one that cannot be converted."""
        b = self.builder
        tensors: list[Any] = [t for t in _flat([call.args, call.kwargs]) if isinstance(t, Tensor) or t is MISSING]
        layer = Layer(spec.kind, spec.name, inputs, outputs)
        before = b.span
        b.span = span = b.listing.add(layer)
        results: list[Any] = [MISSING]
        try:
            if any(t is MISSING for t in tensors):
                if self._rule(spec) is None and not spec.is_model:
                    raise Unsupported(REFUSED.get(spec.kind, ""))
                return [MISSING] * max(len(types), 1)
            results = self.apply(spec, path, call.args, call.kwargs)
        except Unsupported as why:
            self.report.unsupported(spec.kind, layer.label, span, why.reason)
            if self.options.partial and types and all(t is not None for t in types):
                results = [Tensor(x) for x in external(b, spec.kind, [t.x for t in tensors], types)] or results
        except Exception as wrong:
            self.errors += failure(wrong, layer, span, [t.x for t in tensors if isinstance(t, Tensor)])
        b.span = before
        return results

    def _rule(self, spec: Spec) -> Any:
        return self.rules.find(spec.kind, 1, "ops" if spec.operation else "")

    def apply(self, spec: Spec, path: Path, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Tensor]:
        """The results of a layer for the arguments of a call."""
        kwargs = {k: v for k, v in kwargs.items() if v is not None}
        if kwargs.get("training") is True and spec.major < 3:  # Keras 3 calls all layers for inference.
            raise Unsupported("it is called for training")
        if spec.is_model:
            return self.network(spec, path, [t for t in _flat([args, kwargs]) if isinstance(t, Tensor)])
        rule = self._rule(spec)
        if rule is None:
            raise Unsupported(REFUSED.get(spec.kind, ""))
        masks = _masks(spec, args, kwargs)
        node = Node(self, spec, path, masks, args, kwargs)
        if spec.operation:
            values, named = ([_without_masks(v, None, self) for v in group] for group in (args, kwargs.values()))
            converted = _bound(rule.convert, node, values, dict(zip(kwargs, named)))
        else:
            values = [_without_masks(a, node, self) for a in args]
            wrong = self.rules.wrong_operands(rule, values) if values else "its call has no operand"
            if wrong:
                raise Malformed(wrong)
            converted = rule.convert(node, *values)
        results = [converted] if isinstance(converted, (Expr, Tensor)) else list(converted)
        passed = next(iter(masks), None) if spec.kind in _PASSES and not spec.operation else None
        return [r if isinstance(r, Tensor) else Tensor(r, passed) for r in results]


def _masks(spec: Spec, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """The masks of a call's first operands, or those that it names itself."""
    mask = kwargs.get("mask")
    if mask is None or spec.operation:
        first = args[:1] or [next(iter(kwargs.values()), None)]
        return [t.mask for t in _flat(first) if isinstance(t, Tensor)]
    masks = [m.x if isinstance(m, Tensor) else m for m in (mask if isinstance(mask, list) else [mask])]
    if not all(m is None or isinstance(m, Expr) for m in masks):
        raise Unsupported("its mask is no tensor")
    return masks


def _without_round_trip(old: Expr, new: Expr) -> Expr:
    """A change of layout and back is nothing."""
    if isinstance(new, ExprCall) and getattr(new.op, "name", "") == "layout_transform":
        inner = new.args[0]
        if isinstance(inner, ExprCall) and getattr(inner.op, "name", "") == "layout_transform":
            if (inner.attrs.src_layout, inner.attrs.dst_layout) == (new.attrs.dst_layout, new.attrs.src_layout):
                return inner.args[0]
    return retype(new, old)


def _channels_first(spec: Spec) -> bool:
    """Whether a layer of the model, or of a model in it, has its channels second."""
    stack = [spec]
    while stack:
        part = stack.pop()
        if part.config.get("data_format") == "channels_first":
            return True
        stack += part.members if part.is_model else []
    return False


def _bound(convert: Callable[..., Any], node: Node, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """An operation's conversion, called with arguments by position and by name."""
    try:
        inspect.signature(convert).bind(node, *args, **kwargs)
    except TypeError:
        raise Malformed(f"it has {len(args)} operands and the arguments {', '.join(kwargs) or 'none'}, which do not fit") from None
    return convert(node, *args, **kwargs)


def _without_masks(value: Any, node: Node | None, importer: Importer) -> Any:
    """An argument with expressions for tensors, in the layer's element type where they are real and `node` is given."""
    if isinstance(value, Tensor):
        if not isinstance(value.x, Expr):
            raise Malformed("an operand is not a tensor")
        b = importer.builder
        real = node is not None and isinstance(value.x.checked_type, TensorType) and "float" in b.dtype(value.x)
        if node is None or not real or node.config.get("autocast") is False or "float" not in node.dtype:
            return value.x
        return b.cast(value.x, node.dtype)
    if isinstance(value, (list, tuple)):
        return [_without_masks(v, node, importer) for v in value]
    if isinstance(value, dict):
        return {k: _without_masks(v, node, importer) for k, v in value.items()}
    if isinstance(value, np.ndarray):
        return importer.builder.const(value)
    return value


def _flat(value: Any) -> list[Any]:
    """The leaves of nested lists and dictionaries; those of a dictionary in the order of its keys."""
    leaves, stack = [], [value]
    while stack:
        part = stack.pop()
        if isinstance(part, list):
            stack += reversed(part)
        elif isinstance(part, dict):
            stack += [part[k] for k in sorted(part, key=str, reverse=True)]
        else:
            leaves.append(part)
    return leaves


def _filled(call: Call, values: Mapping[tuple[str, int, int], Any]) -> Call:
    """A call with values in the places of references."""

    def fill(part: Any) -> Any:
        if isinstance(part, Ref):
            return values.get((part.layer, part.call, part.result), MISSING)
        if isinstance(part, list):
            return [fill(p) for p in part]
        if isinstance(part, dict):
            return {k: fill(v) for k, v in part.items()}
        return part

    return Call(fill(call.args), fill(call.kwargs))


def _first_calls(members: Mapping[str, Spec], called: Mapping[str, list[Call]], outputs: Iterable[Ref]) -> dict[str, int]:
    """The number of each layer's first call. Keras 2 counts the calls of a model inside another one from 1."""
    used: dict[str, set[int]] = {}
    for refs in [outputs, *[c.refs() for calls in called.values() for c in calls]]:
        for ref in refs:
            used.setdefault(ref.layer, set()).add(ref.call)
    return {n: int(m.is_model and m.major < 3 and 0 not in used.get(n, {0})) for n, m in members.items()}


def _of_first(ref: Ref, members: Mapping[str, Spec]) -> Ref:
    """An output. Keras 3 counts the calls of functional models from 1 there, and from 0 elsewhere."""
    member = members.get(ref.layer)
    late = member is not None and member.major >= 3 and member.is_model and not member.is_sequential
    return Ref(ref.layer, ref.call - 1, ref.result) if late else ref


def _name(ref: Ref) -> str:
    return ref.layer if not ref.call else f"{ref.layer}:{ref.call}"


def _types(called: Mapping[str, list[Call]]) -> dict[tuple[str, int], dict[int, TensorType]]:
    """The types of results that Keras 3 states where another layer uses them."""
    stated: dict[tuple[str, int], dict[int, TensorType]] = {}
    for ref in [r for calls in called.values() for c in calls for r in c.refs()]:
        if ref.shape is not None and all(d is None or (isinstance(d, int) and d >= 0) for d in ref.shape):
            ty = TensorType([ANY if d is None else d for d in ref.shape], ref.dtype or "float32")
            if unsound(ty) is None:
                stated.setdefault((ref.layer, ref.call), {})[ref.result] = ty
    return stated


def _inputs_of(spec: Spec) -> list[tuple[str, Spec]]:
    """The inputs of the outermost model: their names, and the layers that state their shapes."""
    if not spec.is_sequential:
        members = {m.name: m for m in spec.members}
        names = [r.layer for r in found(outputs_of(spec.config.get("input_layers"), spec.file))]
        for name in names:
            if name not in members:
                raise damaged(spec.file, f"there is no layer {name[:60]!r}, which is an input")
        if len(set(names)) < len(names):
            raise damaged(spec.file, "it names an input twice")
        return [(name, members[name]) for name in names]
    if not spec.members:
        raise damaged(spec.file, f"the model {spec.name[:60]!r} has no layers")
    first = spec.members[0]
    if first.kind == "InputLayer":
        return [(first.name, first)]
    if first.is_model:
        inner = _inputs_of(first)
        return [(f"{first.name}_input" if first.is_sequential else name, entry) for name, entry in inner]
    config = dict(first.config)
    shape = spec.config.get("build_input_shape")
    if input_shape(first) is None and shape is not None:
        config["batch_input_shape"] = shape
    return [(f"{first.name}_input", Spec("InputLayer", first.name, config, file=spec.file))]


def import_keras(model: Any, options: Options = DEFAULTS, file: str = "", pictures_first: bool = False) -> Imported:
    """A program from the bytes of a `.h5` or `.keras` file, its path, or a model of Keras.

    With `pictures_first`, inputs and outputs of four axes are NCHW, where the network's are NHWC.
    Raises `RelayError`: the file is damaged (R0802), the package h5py is missing (R0803), options do not fit (R0804),
    layers are wrong (R0805) or cannot be converted (R0801).
    """
    if isinstance(model, (str, os.PathLike)):
        file = file or os.fspath(model)
        model = read_bytes(os.fspath(model))
    name = file or "the model"
    with gc_paused(), np.errstate(all="ignore"):
        if is_live(model):
            budget = Budget(name, 0, options.nodes, options.bytes, options.work)
            return Importer(live_model(model, name, budget), name, options, budget, pictures_first).run()
        if not isinstance(model, (bytes, bytearray, memoryview)):
            raise RelayError(no_model(model, "model of Keras", "the importer takes a model, a file's bytes, or its path"))
        data = bytes(model)
        budget = Budget(name, len(data), options.nodes, options.bytes, options.work)
        return Importer(read_model(data, name, budget), name, options, budget, pictures_first).run()


__all__ = ["Importer", "import_keras"]
