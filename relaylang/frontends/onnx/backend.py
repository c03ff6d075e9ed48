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
from relaylang.frontends.common import Options
from relaylang.frontends.onnx.importer import import_onnx, load_onnx
from relaylang.interpreter.evaluate import Evaluator
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
        self._run: Any = None
        try:
            self._ready(options)
        except RelayError as why:
            self._refused = why

    def _ready(self, options: Options) -> None:
        imported = import_onnx(self.model, options)
        self.inputs = [p.name_hint for p in imported.module["main"].params]
        if self._compiled:
            self._run = service("compile")(imported.module, "c", params=imported.params).run
        else:
            evaluator = Evaluator(imported.module, imported.params)
            self._run = lambda **named: evaluator.call("main", (), named)

    def run(self, inputs: Sequence[Any] | Mapping[str, Any], **_: Any) -> tuple[Any, ...]:
        """The outputs for arrays in the order of the model's inputs, or by name. Raises `RelayError`."""
        named = dict(inputs) if isinstance(inputs, Mapping) else dict(zip(_names(self.model), inputs))
        if self._refused is not None:
            values = {n: v for n, v in named.items() if v is None or isinstance(v, list) or np.size(v) <= _SMALL}
            try:
                self._ready(replace(self.options, values=values))
            except RelayError:
                raise self._refused from None
        result = self._run(**{n: np.asarray(v) for n, v in named.items() if n in self.inputs})
        outputs = self.model.graph.output
        if len(outputs) == 1:
            return (list(result) if outputs[0].type.WhichOneof("value") != "tensor_type" and isinstance(result, tuple) else result,)
        return tuple(result)


def _names(model: Any) -> list[str]:
    """The names of a model's inputs, without its weights."""
    weights = {t.name for t in model.graph.initializer}
    return [i.name for i in model.graph.input if i.name not in weights]


class RelayBackend:
    """ONNX's backend interface, as class methods."""

    @classmethod
    def is_compatible(cls, model: Any, device: str = "CPU", **_: Any) -> bool:
        """Whether the model can be run."""
        return Prepared(load_onnx(model), Options())._refused is None and cls.supports_device(device)

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
        given = [helper.make_tensor_value_info(n, k, x.shape) for n, k, x in zip(node.input, kinds, arrays)]
        graph = helper.make_graph([node], "node", given, [helper.make_empty_tensor_value_info(n) for n in node.output])
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
