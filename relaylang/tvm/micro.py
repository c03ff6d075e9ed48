"""Programs for microcontrollers, under the names of `tvm.micro`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from relaylang.backends.bare_metal.library_format import save
from relaylang.backends.bare_metal.program import MicroProgram
from relaylang.diagnostics import RelayError, error
from relaylang.tvm.runtime.program import ExecutorFactoryModule


def export_model_library_format(mods: ExecutorFactoryModule | Sequence[ExecutorFactoryModule],
                                file_name: str | os.PathLike[str]) -> Path:  # fmt: skip
    """Write programs of `relay.build(..., executor=Executor("aot"), runtime=Runtime("crt"))` to a `.tar`.

    The names of several must differ (`mod_name`). Raises `RelayError` (R0001, R0603, R0609).
    """
    found = list(mods) if isinstance(mods, (list, tuple)) else [mods]
    programs = []
    for module in found:
        program = getattr(module, "artifact", None)
        if not isinstance(program, MicroProgram):
            notes = ['build it so: relay.build(mod, "c", executor=Executor("aot"), runtime=Runtime("crt"))']
            raise RelayError(error("R0609", "the Model Library Format is for programs for microcontrollers", notes=notes))
        programs.append(program)
    save(programs, file_name)
    return Path(file_name)


__all__ = ["export_model_library_format"]
