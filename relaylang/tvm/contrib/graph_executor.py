"""`tvm.contrib.graph_executor`: runs compiled programs by setting inputs and reading outputs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.runtime.benchmark import BenchmarkResult
from relaylang.tvm.runtime.graph import GraphExecutor
from relaylang.tvm.runtime.ndarray import Device, NDArray
from relaylang.tvm.runtime.program import ExecutorFactoryModule, Program


def create(graph_json_str: str, libmod: Any, device: Device | Sequence[Device]) -> GraphModule:
    """An executor of what `relay.build` returned as graph and library, on the CPU.

    The program's own graph is what runs; another one is refused. Raises `RelayError` (R0608, R0640).
    """
    program = program_of(libmod)
    check_graph(program, graph_json_str)
    return GraphModule(program.executor(*devices(device)))


def check_graph(program: Program, graph_json_str: str) -> None:
    """Raise `RelayError` (R0640) where a graph is not the program's own."""
    if graph_json_str == program.get_graph_json():
        return
    try:
        graph, own = json.loads(graph_json_str), json.loads(program.get_graph_json())
    except (ValueError, TypeError, RecursionError):
        raise RelayError(error("R0640", "the graph is no JSON text")) from None
    if graph != own:
        notes = ["give create the graph that relay.build returned with this library, or lib.get_graph_json()"]
        raise RelayError(error("R0640", "the graph is not that of the library", notes=notes))


def program_of(libmod: Any) -> Program:
    """The compiled program of a module. Raises `RelayError` (R0640) for another value."""
    program = libmod.lib if isinstance(libmod, ExecutorFactoryModule) else libmod
    if not isinstance(program, Program):
        raise RelayError(error("R0640", f"a {type(libmod).__name__} is no compiled program"))
    return program


def devices(device: Device | Sequence[Device]) -> list[Device]:
    """One or several devices as a list. Raises `RelayError` (R0608) for other values and for devices that are not here."""
    device_list: list[Any] = list(device) if isinstance(device, (list, tuple)) else [device]
    for dev in device_list:
        if not isinstance(dev, Device):
            raise RelayError(error("R0608", f"a {type(dev).__name__} is no device", notes=["give it tvm.cpu()"]))
        dev.check()
    return device_list


def get_device(libmod: Any, device: Device | Sequence[Device]) -> tuple[list[Device], int, list[int]]:
    """Devices as a list, the number of remote ones (0), and their kinds and numbers in a row."""
    device_list = devices(device)
    return device_list, 0, [number for dev in device_list for number in (dev.device_type, dev.device_id)]


class GraphModule:
    """An executor: `GraphModule(lib["default"](dev))`. `module` is the module of its functions."""

    def __init__(self, module: GraphExecutor) -> None:
        if not isinstance(module, GraphExecutor):
            raise RelayError(error("R0640", f"a {type(module).__name__} is no executor", notes=['write lib["default"](tvm.cpu())']))
        self.module = module

    def set_input(self, key: str | int | None = None, value: Any = None, **params: Any) -> None:
        """Copy a value into the input `key`, and others by name. Unknown names in `params` are left out.

        Values are converted to the inputs' element types. Raises `RelayError` (R0640).
        """
        if key is not None:
            self.module.set_input(key, value)
        if params:
            known = {name: value for name, value in params.items() if self.module.get_input_index(name) >= 0}
            self.module.set_inputs(known)

    def set_input_zero_copy(self, key: str | int | None = None, value: Any = None, **params: Any) -> None:
        """Let runs read tensors in place."""
        for name, tensor in ({} if key is None else {key: value}).items():
            self.module.set_input_zero_copy(name, tensor)
        for name, tensor in params.items():
            if self.module.get_input_index(name) >= 0:
                self.module.set_input_zero_copy(name, tensor)

    def set_output_zero_copy(self, key: str | int, value: NDArray) -> None:
        """Let runs write an output into a tensor in place."""
        self.module.set_output_zero_copy(key, value)

    def run(self, **input_dict: Any) -> None:
        """Run the program, after setting inputs by name."""
        if input_dict:
            self.set_input(**input_dict)
        self.module.run()

    def get_num_outputs(self) -> int:
        """The number of tensors in the result."""
        return self.module.get_num_outputs()

    def get_num_inputs(self) -> int:
        """The number of inputs, weights included."""
        return self.module.get_num_inputs()

    def get_input(self, index: str | int, out: NDArray | None = None) -> NDArray:
        """The tensor of an input or weight; copied into `out` if that is given."""
        tensor = self.module.get_input(index)
        return tensor.copyto(out) if out is not None else tensor

    def get_input_index(self, name: str) -> int:
        """The number of an input or weight; -1 where there is none of this name."""
        return self.module.get_input_index(name)

    def get_input_info(self) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
        """The shapes and the element types of the inputs by name, weights left out."""
        info = self.module.get_input_info()
        return info["shape"], info["dtype"]

    def get_output(self, index: int, out: NDArray | None = None) -> NDArray:
        """An output of the last run; copied into `out` if that is given."""
        return self.module.get_output(index, out)

    def debug_get_output(self, node: str | int, out: NDArray | None = None) -> NDArray:
        """The tensor of a node of the graph, by its number or name, for the present inputs.

        It is copied into `out` if that is given. Of several nodes of one name, the first one counts.

        Raises `RelayError` (R0609) for an executor that is no debugger: kernels share their memory there.
        """
        return self.module.debug_get_output(node, out)

    def load_params(self, params_bytes: bytes) -> None:
        """Set inputs and weights from the bytes of `save_param_dict`."""
        self.module.load_params(params_bytes)

    def share_params(self, other: GraphModule, params_bytes: bytes) -> None:
        """Take another executor's tensors for the names in such bytes, without copies."""
        self.module.share_params(other.module, params_bytes)

    def __getitem__(self, key: str) -> Any:
        return self.module[key]

    def benchmark(
        self,
        device: Device,
        func_name: str = "run",
        repeat: int = 5,
        number: int = 5,
        min_repeat_ms: float | None = None,
        limit_zero_time_iterations: int = 100,
        end_to_end: bool = False,
        cooldown_interval_ms: float = 0,
        repeats_to_cooldown: int = 1,
        **kwargs: Any,
    ) -> BenchmarkResult:
        """The time of a run with inputs by name. With `end_to_end`, inputs are copied in and outputs are read, too.

        Raises `RelayError`: R0608 for a device that is not here, R0640 for values that do not fit.
        """
        device.check()
        least = 0 if min_repeat_ms is None else min_repeat_ms
        self.set_input(**kwargs)
        name = func_name
        if end_to_end:
            arrays = {key: np.asarray(value) for key, value in kwargs.items()}
            name = "end_to_end"

            def run_end_to_end() -> None:
                self.run(**arrays)
                for index in range(self.get_num_outputs()):
                    self.get_output(index).numpy()

            self.module._functions[name] = run_end_to_end
        pauses = {"cooldown_interval_ms": cooldown_interval_ms, "repeats_to_cooldown": repeats_to_cooldown}
        measure = self.module.time_evaluator(name, device, number, repeat, least, **pauses)  # type: ignore[arg-type]
        return measure()


class AotModule(GraphModule):
    """`AotModule(lib["default"](dev))`: the executor of programs that were built ahead of time."""


__all__ = ["AotModule", "GraphModule", "create", "get_device"]
