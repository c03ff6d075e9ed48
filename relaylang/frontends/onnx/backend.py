"""relaylang as a backend of ONNX: the interface `onnx.backend.base.Backend`, for tools and tests that speak it.

    rep = relaylang.frontends.onnx.backend.prepare(model)
    outputs = rep.run([x])

The device "CPU" evaluates the program with the interpreter; "CPU:1" compiles it first, with the C backend.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError
from relaylang.frontends.common import Imported, Options
from relaylang.frontends.onnx.importer import import_onnx
from relaylang.interpreter.evaluate import Evaluator
from relaylang.services import service


class Prepared:
    """A model that is ready to run."""

    def __init__(self, imported: Imported, compiled: bool = False) -> None:
        self.imported = imported
        self.inputs = [p.name_hint for p in imported.module["main"].params]
        self._machine: Any = None
        if compiled:
            self._machine = service("compile")(imported.module, "c", params=imported.params)
        else:
            self._evaluator = Evaluator(imported.module, imported.params)

    def run(self, inputs: Sequence[Any] | Mapping[str, Any], **_: Any) -> tuple[Any, ...]:
        """The outputs for arrays in the order of the model's inputs, or by name."""
        named = dict(inputs) if isinstance(inputs, Mapping) else dict(zip(self.inputs, inputs))
        if self._machine is not None:
            result = self._machine.run(**named)
        else:
            result = self._evaluator.call("main", (), {n: np.asarray(v) for n, v in named.items()})
        return tuple(result) if isinstance(result, (tuple, list)) else (result,)


class RelayBackend:
    """ONNX's backend interface, as class methods."""

    @classmethod
    def is_compatible(cls, model: Any, device: str = "CPU", **_: Any) -> bool:
        """Whether the model can be run."""
        try:
            import_onnx(model)
        except RelayError:
            return False
        return cls.supports_device(device)

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **options: Any) -> Prepared:
        """Import a model for a device. `options` are those of `Options`. Raises `RelayError`."""
        return Prepared(import_onnx(model, Options(**options)), device == "CPU:1")

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
