"""`tvm.contrib.debugger.debug_executor`: an executor that shows the time of each kernel."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.runtime.cpu import CpuArtifact
from relaylang.runtime.files import atomic_path, atomic_write, together
from relaylang.runtime.profile import Profile
from relaylang.runtime.text import reason
from relaylang.runtime.vm.profile import VMProfile
from relaylang.tvm.contrib.graph_executor import GraphModule, check_graph, devices, program_of
from relaylang.tvm.runtime.graph import GraphExecutor
from relaylang.tvm.runtime.ndarray import Device, NDArray


def create(graph_json_str: str, libmod: Any, device: Device | Sequence[Device], dump_root: str | None = None) -> GraphModuleDebug:
    """An executor of what `relay.build` returned; it compiles the program again, with clocks.

    Raises `RelayError`: R0608 for a device that is not here, R0609 for a loaded program without clocks.
    """
    program = program_of(libmod)
    check_graph(program, graph_json_str)
    return GraphModuleDebug(program.debug_executor(*devices(device)), device, graph_json_str, dump_root)


class Report:
    """The time of each kernel. `calls` has a row for each, `str` is the table."""

    def __init__(self, profile: Profile | VMProfile, executor: str = "Graph") -> None:
        self.profile = profile
        self.calls = profile.record()["kernels"]
        self.device_metrics = {"cpu0": {"Duration (us)": 1e6 * profile.seconds}}
        self.configuration = {"Executor": executor, "Number of threads": profile.threads}

    def table(self, sort: bool = True, aggregate: bool = True, col_sums: bool = True) -> str:
        """The table as text, the costliest kernels first."""
        return self.profile.table()

    def json(self) -> str:
        """The rows as JSON."""
        return self.profile.json()

    def csv(self) -> str:
        """The rows as comma-separated values."""
        names = list(self.calls[0]) if self.calls else []
        rows = [names, *([row[n] for n in names] for row in self.calls)]
        return "".join(",".join(json.dumps(v) if isinstance(v, str) else str(v) for v in row) + "\n" for row in rows)

    __str__ = table


class DebugResult:
    """The nodes of a program's graph, with the times and the tensors of the last run."""

    def __init__(self, graph_json: str, module: GraphExecutor) -> None:
        self._graph = json.loads(graph_json)
        self._module = module
        self.profile: Profile | None = None

    def get_graph_nodes(self) -> list[dict[str, Any]]:
        """The nodes: inputs, weights and kernels."""
        return list(self._graph["nodes"])

    def get_graph_node_shapes(self) -> list[list[int]]:
        """The shapes of all results of nodes, in order."""
        return list(self._graph["attrs"]["shape"][1])

    def get_graph_node_dtypes(self) -> list[str]:
        """The element types of all results of nodes, in order."""
        return list(self._graph["attrs"]["dltype"][1])

    def get_graph_node_output_num(self, node: Mapping[str, Any]) -> int:
        """The number of a node's results."""
        return 1 if node["op"] == "null" else int(node["attrs"]["num_outputs"])

    def get_output_tensors(self) -> dict[str, NDArray]:
        """The tensors of all nodes for the present inputs, by the nodes' names and numbers. Raises `RelayError` (R0609)."""
        values = self._module.inner_values()
        return {
            f"{node['name']}____topo-index:{number}____output-num:{output}": values.tensor(number, output)
            for number, node in enumerate(values.graph["nodes"])
            for output in range(self.get_graph_node_output_num(node))
        }

    def get_debug_result(self, sort_by_time: bool = True) -> str:
        """The table of the kernels' times in the last run, "" before the first."""
        return "" if self.profile is None else self.profile.table()

    def display_debug_result(self, sort_by_time: bool = True) -> None:
        """Print the table."""
        print(self.get_debug_result(sort_by_time))


class GraphModuleDebug(GraphModule):
    """An executor whose `run` prints each kernel's time; with `dump_root` it also writes graph, times and outputs there."""

    def __init__(self, module: GraphExecutor, device: Device | Sequence[Device], graph_json_str: str, dump_root: str | None) -> None:
        super().__init__(module)
        self.graph = graph_json_str
        self.device = device
        self._dump_root = dump_root
        self.debug_datum = DebugResult(graph_json_str, module)

    def run(
        self,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: int = 1,
        limit_zero_time_iterations: int = 100,
        cooldown_interval_ms: int = 0,
        repeats_to_cooldown: int = 1,
        **input_dict: Any,
    ) -> None:
        """Run the program, print the times of its kernels (medians of `number` * `repeat` runs), and write the dump."""
        self.set_input(**input_dict)
        self.module.run()
        profile = self.debug_datum.profile = self._profile(number * repeat)
        print(profile)
        if self._dump_root is not None:
            self._dump(profile)

    def run_individual(
        self,
        number: int,
        repeat: int = 1,
        min_repeat_ms: int = 0,
        limit_zero_time_iterations: int = 100,
        cooldown_interval_ms: int = 0,
        repeats_to_cooldown: int = 1,
    ) -> list[list[float]]:
        """The seconds of each kernel: for each, `repeat` means of `number` runs."""
        times = self._profile(number * repeat).times
        seconds = (times[:, :, 1] - times[:, :, 0]).reshape(repeat, number, -1).mean(axis=1) / 1e9
        return [list(map(float, column)) for column in seconds.T]

    def profile(self, collectors: Any = None, repeat: int = 10, **input_dict: Any) -> Report:
        """The time of each kernel over `repeat` runs."""
        self.set_input(**input_dict)
        return Report(self._profile(repeat))

    def get_debug_result(self, sort_by_time: bool = True) -> str:
        """The table of the kernels' times in the last run."""
        return self.debug_datum.get_debug_result(sort_by_time)

    def _profile(self, repeat: int) -> Profile:
        assert isinstance(self.module.artifact, CpuArtifact)
        return self.module.artifact.profile(repeat=repeat, inputs=self.module.arguments())

    def _dump(self, profile: Profile) -> None:
        folder = Path(self._dump_root or ".")
        try:
            os.makedirs(folder, exist_ok=True)
            with together():
                atomic_write(folder / "_tvmdbg_graph_dump.json", self.graph)
                atomic_write(folder / "_tvmdbg_execution_trace.json", profile.chrome_trace())
                with atomic_path(folder / "output_tensors.npz") as place, open(place, "wb") as file:
                    np.savez(file, **{f"output_{n}": self.get_output(n).numpy() for n in range(self.get_num_outputs())})
        except OSError as e:
            raise RelayError(error("R0001", f"cannot write to {folder}: {reason(e)}")) from None

    def exit(self) -> None:
        """Forget where dumps go."""
        self._dump_root = None


__all__ = ["DebugResult", "GraphModuleDebug", "Report", "create"]
