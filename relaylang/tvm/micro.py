"""Programs for microcontrollers, under the names of `tvm.micro`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from relaylang.backends.bare_metal import compile_bare_metal
from relaylang.backends.bare_metal.library_format import save
from relaylang.backends.bare_metal.program import MicroProgram
from relaylang.diagnostics import RelayError, error
from relaylang.tvm.runtime.graph import simple_graph
from relaylang.tvm.runtime.program import ExecutorFactoryModule


def export_model_library_format(
    mods: ExecutorFactoryModule | Sequence[ExecutorFactoryModule], file_name: str | os.PathLike[str]
) -> Path:
    """Write programs of `relay.build(..., runtime=Runtime("crt"))` to a `.tar`, for the executors "aot" and "graph".

    The graph of a program for "graph" has one node, which calls the C. The names of several must differ (`mod_name`).
    Raises `RelayError` (R0001, R0603, R0609).
    """
    modules: list[Any] = list(mods) if isinstance(mods, (list, tuple)) else [mods]
    programs = []
    for module in modules:
        program: Any = getattr(module, "artifact", None)
        crt = isinstance(module, ExecutorFactoryModule) and getattr(module.runtime, "name", "") == "crt"
        if crt and not isinstance(program, MicroProgram) and module.ir_mod is not None:
            program = compile_bare_metal(module.ir_mod, module.target, module.values, name=module.libmod_name)
            program.graph = simple_graph(program, f"tvmgen_{module.libmod_name}_run")
        if not isinstance(program, MicroProgram):
            notes = ['build it so: relay.build(mod, "c", runtime=Runtime("crt"))']
            raise RelayError(error("R0609", "the Model Library Format is for programs for microcontrollers", notes=notes))
        programs.append(program)
    save(programs, file_name)
    return Path(file_name)


__all__ = ["export_model_library_format"]
