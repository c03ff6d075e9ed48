"""TVM's Model Library Format, version 7: an archive of C for microcontrollers, with a description of its memory.

Its files:

    metadata.json                       for each module: sizes of memory, inputs, outputs, targets
    codegen/host/src/NAME_libN.c        the C; codegen/host/lib has objects of other code generators
    codegen/host/include/tvmgen_NAME.h  the interface
    parameters/NAME.params              the values that were bound to parameters
    src/NAME.relay                      the program
    executor-config/graph/NAME.graph    the graph that calls the C, for the executor "graph"
    runtime/README.md                   how to build it: the C needs no runtime
    manifest.json, regions/             for relay: how to run the program here
    sha256sums                          the digests of all these
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relaylang.backends.aot.file import FLAGS
from relaylang.backends.bare_metal.cmsis_nn import HEADER, SINGLE_ROUNDING
from relaylang.backends.bare_metal.host import calls_cmsis_nn
from relaylang.backends.bare_metal.npu import DRIVER
from relaylang.backends.ethosu.artifact import region_files, region_records
from relaylang.diagnostics import RelayError, error
from relaylang.runtime.artifact import TensorSpec, write_sealed
from relaylang.runtime.files import atomic_write
from relaylang.runtime.manifest import ELEMENTS
from relaylang.runtime.params import params_bytes
from relaylang.runtime.text import reason

if TYPE_CHECKING:
    from relaylang.backends.bare_metal.program import MicroProgram

#: TVM's version of the format, and ours of `manifest.json`.
TVM_VERSION = 7
FORMAT, VERSION = "relaylang-mlf", 1
#: The CPU's number among TVM's devices.
_CPU = 1
_HOST = "codegen/host"


def save(programs: Sequence[MicroProgram], path: str | os.PathLike[str]) -> None:
    """Write programs of different names to one archive, whole or not at all. Raises `RelayError` (R0001, R0603)."""
    names = [program.module for program in programs]
    if not names or len(set(names)) < len(names):
        said = "two modules have one name" if names else "no module is given"
        notes = ["relay.build(..., mod_name=...) names a module"]
        raise RelayError(error("R0603", f"{said}: an archive has modules of different names", notes=notes))
    try:
        atomic_write(path, write_sealed({f"./{name}": content for name, content in files(programs).items()}))
    except OSError as e:
        raise RelayError(error("R0001", f"cannot write {os.fspath(path)}: {reason(e)}")) from None


def files(programs: Sequence[MicroProgram]) -> dict[str, bytes]:
    """The files of an archive by their names. Equal programs give equal bytes; SOURCE_DATE_EPOCH dates them."""
    metadata = {"version": TVM_VERSION, "modules": {program.module: _metadata(program) for program in programs}}
    manifest = {"format": FORMAT, "version": VERSION, "modules": {program.module: _manifest(program) for program in programs}}
    out = {"metadata.json": _json(metadata), "manifest.json": _json(manifest), "runtime/README.md": _readme(programs).encode()}
    for program in programs:
        for name, content in program.files.items():
            out[_place(program, name)] = content
        out[f"parameters/{program.module}.params"] = params_bytes(program.weights_by_name)
        out[f"src/{program.module}.relay"] = program.text.encode()
        if program.graph:
            out[f"executor-config/graph/{program.module}.graph"] = program.graph.encode()
        out.update(region_files(program.regions))
    return out


def _place(program: MicroProgram, name: str) -> str:
    """Where a file of a program lies in the archive."""
    if name.endswith(".h"):
        return f"{_HOST}/include/{name}"
    number = list(program.files).index(name)
    folder = "src" if name.endswith(".c") else "lib"
    return f"{_HOST}/{folder}/{program.module}_lib{number and number - 1}{Path(name).suffix}"


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=2, sort_keys=True) + "\n").encode()


def _metadata(program: MicroProgram) -> dict[str, Any]:
    """A module of `metadata.json`."""
    moment = time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH") or 0))
    inputs = {name: _tensor(spec) for name, spec in program.input_tensors.items()}
    outputs = {name: _tensor(spec) for name, spec in program.output_tensors.items()}
    main = {
        "device": _CPU,
        "workspace_size_bytes": program.workspace,
        **({"fast_memory_size_bytes": program.fast_bytes} if program.fast_bytes else {}),
        "constants_size_bytes": program.constant_bytes,
        "io_size_bytes": sum(t["size"] for t in [*inputs.values(), *outputs.values()]),
        "inputs": inputs,
        "outputs": outputs,
    }
    operators = [
        {"function_name": name, "workspace": [{"device": _CPU, "workspace_size_bytes": size}]} for name, size in program.operators
    ]
    return {
        "model_name": program.module,
        "export_datetime": time.strftime("%Y-%m-%d %H:%M:%SZ", moment),
        "memory": {"functions": {"main": [main], "operator_functions": operators}},
        "target": program.targets,
        "executors": ["graph" if program.graph else "aot"],
        "style": "full-model",
    }


def _tensor(spec: TensorSpec) -> dict[str, Any]:
    return {"size": math.prod(spec.shape, start=ELEMENTS[spec.dtype]), "dtype": spec.dtype}


def _manifest(program: MicroProgram) -> dict[str, Any]:
    """A module of `manifest.json`."""
    return {
        "name": program.name,
        "files": {name: _place(program, name) for name in program.files},
        "inputs": [[name, spec.record(), list(path)] for name, spec, path in program.tensors],
        "outputs": [spec.record() for spec in program.output_tensors.values()],
        "fields": program.fields,
        "structure": program.structure,
        "workspace": program.workspace,
        "regions": region_records(program.regions),
    }


def _readme(programs: Sequence[MicroProgram]) -> str:
    machine = "".join(f"{flag} " for flag in programs[0].targets[-1].split()[1:] if flag.startswith("-m"))
    lines = [
        "# Building",
        "",
        "The C needs no runtime, but a C library with `memcpy`, `memset` and mathematical functions.",
        "",
        f"    cc {machine}{FLAGS} -Icodegen/host/include -c codegen/host/src/*.c",
        "",
    ]
    if any(program.regions for program in programs):
        lines += [
            f"`{DRIVER}` is the header of Arm's ethos-u-core-driver. The caller initialises the driver,",
            "and gives its handle as `devices->ethos_u`.",
            "",
        ]
    if any(calls_cmsis_nn(program.files) for program in programs):
        lines += [f"`{HEADER}` is the header of CMSIS-NN. Compile it and this C with `-D{SINGLE_ROUNDING}`.", ""]
    return "\n".join(lines)


__all__ = ["FORMAT", "TVM_VERSION", "VERSION", "files", "save"]
