"""relaylang as a backend of ONNX: the interface `onnx.backend.base.Backend`, for tools and tests that speak it.

    rep = relaylang.frontends.onnx.backend.prepare(model)
    outputs = rep.run([x])

The device "CPU" evaluates the program with the interpreter; "CPU:1" compiles it first, with the C backend.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError
from relaylang.frontends.onnx.importer import import_onnx, load_onnx
from relaylang.frontends.onnx.tensors import TEXTS
from relaylang.frontends.onnx.texts import decoded, encoded
from relaylang.frontends.options import Options
from relaylang.interpreter.evaluate import Evaluator
from relaylang.interpreter.values import ConstructorValue, mismatch
from relaylang.ir import GlobalTypeVar, TensorType, Type, TypeCall
from relaylang.services import service

#: Inputs of so few elements may be constants of the program.
_SMALL = 64


class Prepared:
    """A model that is ready to run.

    Some models shape their program by the values of inputs: the sizes of a resize, the length of a sequence. Such a model
    is imported at each run, with the values of its small inputs, sequences and optionals as constants.
    """

    def __init__(self, model: Any, options: Options, compiled: bool = False) -> None:
        self.model = model
        self.options = options
        self._compiled = compiled
        self._refused: RelayError | None = None
        self._ready: _Ready | None = None
        try:
            self._ready = _Ready(model, options, compiled)
        except RelayError as why:
            self._refused = why

    @property
    def refused(self) -> bool:
        """Whether the model needs values of its inputs, or cannot be imported."""
        return self._ready is None

    def run(self, inputs: Sequence[Any] | Mapping[str, Any], **_: Any) -> tuple[Any, ...]:
        """The outputs for arrays in the order of the model's inputs, or by name. Raises `RelayError`.

        A sequence is a Python list, and None an optional without a value.
        """
        named = dict(inputs) if isinstance(inputs, Mapping) else dict(zip(_names(self.model), inputs))
        ready = self._ready
        arguments = ready.arguments(named) if ready is not None else None
        if arguments is None:
            values = {n: v for n, v in named.items() if v is None or isinstance(v, list) or np.size(v) <= _SMALL}
            try:
                ready = _Ready(self.model, replace(self.options, values=values), self._compiled)
            except RelayError as why:
                raise self._refused or why from None
            arguments = ready.arguments(named) or {}
        assert ready is not None
        result = ready.run(**arguments)
        outputs = self.model.graph.output
        results = [_python(v) for v in (result if len(outputs) > 1 else [result])]
        return tuple([decoded(r) if o.type.tensor_type.elem_type == TEXTS else r for r, o in zip(results, outputs)])


class _Ready:
    """The imported program: what it takes, and how it runs."""

    def __init__(self, model: Any, options: Options, compiled: bool) -> None:
        imported = import_onnx(model, options)
        self.module = imported.module
        self.inputs = {p.name_hint: p.checked_type for p in imported.module["main"].params}
        if compiled:
            self.run = service("compile")(imported.module, "c", params=imported.params).run
        else:
            evaluator = Evaluator(imported.module, imported.params)
            self.run = lambda **named: evaluator.call("main", (), named)

    def arguments(self, named: Mapping[str, Any]) -> dict[str, Any] | None:
        """The program's arguments; None where the elements of a sequence are not what the program takes."""
        arguments = {n: self._value(v, self.inputs[n]) for n, v in named.items() if n in self.inputs}
        return None if any(v is None for v in arguments.values()) else arguments

    def _value(self, value: Any, ty: Type | None) -> Any:
        """A Python value as one of a list or an option; None where it does not fit."""
        if not isinstance(ty, TypeCall):
            array = np.asarray(value)
            return encoded(array, int(ty.shape[-1])) if array.dtype.kind in "OSU" and isinstance(ty, TensorType) else array  # type: ignore[arg-type]
        assert isinstance(ty.func, GlobalTypeVar)
        makers = {c.name_hint: c for c in self.module.type_definitions[ty.func].constructors}
        inner = ty.args[0]
        if "Some" in makers and value is None:
            return ConstructorValue(makers["None"])
        if "Nil" in makers and not isinstance(value, (list, tuple)):
            return None
        items = [self._value(v, inner) for v in ([value] if "Some" in makers else value)]
        if any(v is None or mismatch(v, inner) for v in items):
            return None
        if "Some" in makers:
            return ConstructorValue(makers["Some"], (items[0],))
        cells = ConstructorValue(makers["Nil"])
        for item in reversed(items):
            cells = ConstructorValue(makers["Cons"], (item, cells))
        return cells


def _python(value: Any) -> Any:
    """A result with lists for sequences, and None for an option without a value."""
    if isinstance(value, tuple):
        return [_python(v) for v in value]
    if not isinstance(value, ConstructorValue):
        return value
    if value.constructor.name_hint in ("Some", "None"):
        return _python(value.fields[0]) if value.fields else None
    items = []
    while value.fields:
        items.append(_python(value.fields[0]))
        value = value.fields[1]
    return items


def _names(model: Any) -> list[str]:
    """The names of a model's inputs, without its weights."""
    weights = {t.name for t in model.graph.initializer}
    return [i.name for i in model.graph.input if i.name not in weights]


class RelayBackend:
    """ONNX's backend interface, as class methods."""

    @classmethod
    def is_compatible(cls, model: Any, device: str = "CPU", **_: Any) -> bool:
        """Whether the model can be run."""
        return not Prepared(load_onnx(model), Options()).refused and cls.supports_device(device)

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **options: Any) -> Prepared:
        """Import a model for a device. `options` are those of `Options`. Raises `RelayError` for a damaged model."""
        return Prepared(load_onnx(model), Options(**options), device == "CPU:1")

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: str = "CPU", **options: Any) -> tuple[Any, ...]:
        """The outputs of a model."""
        return cls.prepare(model, device, **options).run(inputs)

    @classmethod
    def run_node(cls, node: Any, inputs: Sequence[Any], device: str = "CPU", outputs_info: Any = None, **_: Any) -> tuple[Any, ...]:
        """The outputs of one layer."""
        from onnx import helper

        arrays = [np.asarray(x) for x in inputs]
        kinds = [helper.np_dtype_to_tensor_dtype(x.dtype) for x in arrays]
        infos = [helper.make_tensor_value_info(n, k, x.shape) for n, k, x in zip(node.input, kinds, arrays)]
        graph = helper.make_graph([node], "node", infos, [helper.make_empty_tensor_value_info(n) for n in node.output])
        return cls.run_model(helper.make_model(graph), arrays, device)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether programs run there: "CPU" for the interpreter, "CPU:1" for compiled code."""
        return device in ("CPU", "CPU:0", "CPU:1")


prepare = RelayBackend.prepare
run_model = RelayBackend.run_model
run_node = RelayBackend.run_node
supports_device = RelayBackend.supports_device
is_compatible = RelayBackend.is_compatible

__all__ = ["Prepared", "RelayBackend", "is_compatible", "prepare", "run_model", "run_node", "supports_device"]
