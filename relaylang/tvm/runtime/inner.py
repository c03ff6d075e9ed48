"""The tensors inside a compiled program, which was compiled with `-keep-values`: each has memory of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import ml_dtypes  # (gives numpy the name bfloat16)  # noqa: F401
import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.runtime.cpu import CpuArtifact
from relaylang.tvm.runtime.ndarray import NDArray


class InnerValues:
    """The tensors of the nodes of a program's graph after a run. `graph` is the graph.

    `inputs` are the run's inputs by name, `result` its result.
    """

    def __init__(self, artifact: CpuArtifact, inputs: Mapping[str, NDArray], result: Any) -> None:
        self.graph: dict[str, Any] = json.loads(artifact.graph)
        self._memory = {name: memory.copy() for name, memory in artifact.memory().items()}
        self._inputs = inputs
        self._params = dict(artifact.params)
        self._outputs = _flat(result)

    def tensor(self, node: int, output: int = 0) -> NDArray:
        """A result of a node, by numbers. Raises `RelayError` (R0640) where there is none."""
        rows = self.graph["node_row_ptr"]
        if not 0 <= node < len(rows) - 1 or not 0 <= output < rows[node + 1] - rows[node]:
            raise RelayError(error("R0640", f"the graph has no result {output} of a node {node}"))
        entry = rows[node] + output
        shape, dtype = self.graph["attrs"]["shape"][1][entry], np.dtype(self.graph["attrs"]["dltype"][1][entry])
        kind, number, start, strides = self.graph["places"][entry]
        if kind == "input":
            memory = np.asarray(self._inputs[self.graph["nodes"][node]["name"]])
        elif kind == "param":
            memory = self._params[self.graph["nodes"][node]["name"]]
        elif kind == "output":
            memory = self._outputs[number]
        else:
            memory = self._memory[kind][number:]
        elements = memory.reshape(-1).view(np.uint8)[start * dtype.itemsize :]
        steps = [step * dtype.itemsize for step in strides]
        return NDArray(np.ndarray(tuple(shape), dtype, elements, strides=tuple(steps)).copy())


def _flat(result: Any) -> list[np.ndarray]:
    """The tensors of a result in order."""
    out: list[np.ndarray] = []
    stack = [result]
    while stack:
        item = stack.pop()
        if isinstance(item, (tuple, list)):
            stack.extend(reversed(item))
        else:
            out.append(np.ascontiguousarray(item))
    return out


__all__ = ["InnerValues"]
