"""What tvmc works on: a network, a compiled package, the result of a run."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from relaylang.backends.bare_metal.program import MicroProgram
from relaylang.cli.outputs import archive
from relaylang.diagnostics import RelayError, error
from relaylang.ir import IRModule
from relaylang.runtime.benchmark import BenchmarkResult
from relaylang.runtime.files import atomic_write, together
from relaylang.runtime.params import load_params, save_params
from relaylang.runtime.text import read_text, reason
from relaylang.syntax import astext, fromtext
from relaylang.tvm.runtime.program import Program, load_module
from relaylang.tvm.runtime.vm import Library

_MODULE, _PARAMS = "model.relay", "model.params"


class TVMCModel:
    """A network: its module and its weights by name."""

    def __init__(self, mod: IRModule | None = None, params: Mapping[str, Any] | None = None, model_path: str | None = None) -> None:
        if model_path is not None:
            folder = Path(model_path)
            source = read_text(str(folder / _MODULE))
            parsed = fromtext(source.text, source.name)
            mod = parsed if isinstance(parsed, IRModule) else None
            params = load_params(folder / _PARAMS)
        if not isinstance(mod, IRModule):
            raise RelayError(error("R0640", "a model has a module", notes=["tvmc.load(path) reads one"]))
        self.mod = mod
        self.params = dict(params or {})

    def save(self, model_path: str) -> None:
        """Write text and weights to a folder. Raises `RelayError` (R0001, R0013)."""
        folder = Path(model_path)
        try:
            os.makedirs(folder, exist_ok=True)
            with together():
                atomic_write(folder / _MODULE, astext(self.mod))
                save_params(folder / _PARAMS, self.params)
        except OSError as e:
            raise RelayError(error("R0001", f"cannot write to {folder}: {reason(e)}")) from None

    def default_package_path(self) -> str:
        """A new name for a package in the temporary folder."""
        return str(Path(tempfile.mkdtemp(prefix="relay-")) / "model_package.tar")

    def summary(self, file: IO[str] | None = None) -> None:
        """Print the module's text."""
        print(self.mod, file=file)


class TVMCPackage:
    """A compiled program's file. Loading it runs code from it. `type` is "mlf" for a program for a microcontroller."""

    def __init__(self, package_path: str, project_dir: str | None = None) -> None:
        if project_dir is not None:
            notes = ["tvmc compile -f mlf writes the C for a project"]
            raise RelayError(error("R0609", "there are no projects for microcontrollers", notes=notes))
        self.package_path = str(package_path)
        loaded = load_module(package_path)
        if isinstance(loaded, Library):
            raise RelayError(error("R0609", f"{package_path} is a program of the VM", notes=["relay run runs it"]))
        self.lib_module: Program = loaded
        self.type = "mlf" if isinstance(loaded.artifact, MicroProgram) else "classic"
        self.graph = loaded.get_graph_json()
        self.params = loaded.get_params()


class TVMCResult:
    """The outputs of a run by name (`output_0`, ...), and its times where they were measured."""

    def __init__(self, outputs: Mapping[str, np.ndarray], times: BenchmarkResult | None = None) -> None:
        self.outputs = dict(outputs)
        self.times = times

    def format_times(self) -> str:
        """The times as a table."""
        return str(self.times) if self.times is not None else ""

    def get_output(self, name: str) -> np.ndarray:
        """An output by its name. Raises `KeyError`."""
        return self.outputs[name]

    def save(self, output_path: str) -> None:
        """Write the outputs to a .npz file. Raises `RelayError` (R0013)."""
        try:
            atomic_write(output_path, archive(self.outputs))
        except OSError as e:
            raise RelayError(error("R0013", f"cannot write {output_path}: {reason(e)}")) from None

    def top(self, count: int) -> np.ndarray:
        """The places and the values of the largest elements in the first row of the first output: shape (2, count)."""
        row = self.outputs["output_0"].reshape(-1, self.outputs["output_0"].shape[-1] if self.outputs["output_0"].ndim else 1)[0]
        order = np.argsort(row, kind="stable")[::-1][:count]
        return np.array([order, row[order]])

    def __str__(self) -> str:
        times = self.format_times()
        return "\n".join([*([times] if times else []), "Output Names:", f" {list(self.outputs)}"])


__all__ = ["TVMCModel", "TVMCPackage", "TVMCResult"]
