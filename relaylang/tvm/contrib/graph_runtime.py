"""`tvm.contrib.graph_runtime`: the earlier name of `graph_executor`."""

from relaylang.tvm.contrib.graph_executor import GraphModule, create, get_device

__all__ = ["GraphModule", "create", "get_device"]
