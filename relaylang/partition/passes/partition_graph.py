"""PartitionGraph: lift regions into functions."""

from __future__ import annotations

from dataclasses import dataclass

from relaylang.ir import IRModule
from relaylang.partition.annotations import partition_graph
from relaylang.passes.manager import Pass


@dataclass(frozen=True)
class PartitionGraph(Pass):
    """Lift each region into a function of the module, marked for its compiler."""

    mod_name: str = "default"
    bind_constants: bool = True

    def run(self, mod: IRModule) -> IRModule:
        return partition_graph(mod, self.mod_name, self.bind_constants)
