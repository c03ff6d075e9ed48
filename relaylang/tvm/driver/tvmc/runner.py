"""Runs packages for tvmc."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError, did_you_mean, error
from relaylang.runtime.cpu import CpuArtifact
from relaylang.runtime.params import load_params
from relaylang.tvm.driver.tvmc.compiler import refused
from relaylang.tvm.driver.tvmc.model import TVMCPackage, TVMCResult
from relaylang.tvm.runtime.graph import GraphExecutor
from relaylang.tvm.runtime.ndarray import device as device_of

FILLS = ("random", "zeros", "ones")


def generate_tensor_data(shape: Any, dtype: str, fill_mode: str) -> np.ndarray:
    """A tensor of zeros, ones or random values (0 to 1; whole numbers from 0 to 127). Raises `RelayError` (R0707)."""
    if fill_mode not in FILLS:
        near = did_you_mean(fill_mode, FILLS)
        notes = [f"did you mean {near}?" if near else f"fill modes: {', '.join(FILLS)}"]
        raise RelayError(error("R0707", f"unknown fill mode {fill_mode}", notes=notes))
    kind = np.dtype(dtype)
    if fill_mode != "random":
        return np.full(shape, fill_mode == "ones", kind)
    rng = np.random.default_rng()
    if kind.kind in "iu":
        return rng.integers(0, 128, shape).astype(kind)
    return rng.integers(0, 2, shape).astype(kind) if kind.kind == "b" else rng.random(shape).astype(kind)


def inputs_of(executor: GraphExecutor, inputs: Mapping[str, Any] | str | None, fill_mode: str) -> dict[str, Any]:
    """A value for each input: the given ones, and others as `fill_mode` has them. Raises `RelayError` (R0640)."""
    arrays = load_params(inputs) if isinstance(inputs, (str, os.PathLike)) else dict(inputs or {})
    known = [i.name for i in executor.inputs]
    values: dict[str, Any] = {}
    for name, value in arrays.items():
        if executor.get_input_index(name) < 0:
            near = did_you_mean(name, known)
            notes = [f"did you mean {near}?"] if near else [f"its inputs: {', '.join(known) or 'none'}"]
            raise RelayError(error("R0640", f"the program has no input {name}", notes=notes))
        values[name] = value
    for slot in executor.inputs:
        if slot.name not in values and slot.value is not None:
            values[slot.name] = generate_tensor_data(slot.value.shape, slot.value.dtype, fill_mode)
    return values


def run_module(
    tvmc_package: TVMCPackage,
    device: str = "cpu",
    hostname: str | None = None,
    port: int | str = 9090,
    rpc_key: str | None = None,
    inputs: Mapping[str, Any] | str | None = None,
    fill_mode: str = "random",
    benchmark: bool = False,
    repeat: int = 10,
    number: int = 10,
    profile: bool = False,
    end_to_end: bool = False,
    options: Mapping[str, Any] | None = None,
) -> TVMCResult:
    """Run a package, on this machine's CPU. Raises `RelayError`: R0608 for devices, R0609 for what only TVM has."""
    if hostname or rpc_key:
        raise refused("a run on another machine", "copy the package there, and run it with relay run")
    if device == "micro":
        raise refused("--device micro", "-f mlf writes the C for a firmware; tvmc run runs that on this machine, too")
    dev = device_of(device)
    dev.check()
    program = tvmc_package.lib_module
    executor = program.debug_executor(dev) if profile else program.executor(dev)
    executor.set_inputs(inputs_of(executor, inputs, fill_mode))
    executor.run()
    if profile:
        assert isinstance(executor.artifact, CpuArtifact)
        print(executor.artifact.profile(inputs=executor.arguments()))
    times = None
    if benchmark:
        if end_to_end:

            def run_all() -> None:
                executor.run()
                for output in executor.outputs or ():
                    output.numpy()

            executor._functions["run_all"] = run_all
        times = executor.time_evaluator("run_all" if end_to_end else "run", dev, number=number, repeat=repeat)()
    return TVMCResult({f"output_{n}": o.numpy() for n, o in enumerate(executor.outputs or ())}, times)


__all__ = ["generate_tensor_data", "inputs_of", "run_module"]
