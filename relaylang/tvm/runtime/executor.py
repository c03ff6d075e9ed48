"""`AotModule(lib["default"](dev))`: the executor of programs that were built ahead of time."""

from __future__ import annotations

from relaylang.tvm.contrib.graph_executor import GraphModule


class AotModule(GraphModule):
    """An executor; see `GraphModule`."""


__all__ = ["AotModule"]
