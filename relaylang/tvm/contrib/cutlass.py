"""`tvm.contrib.cutlass`: how scripts save and load programs with regions for CUTLASS.

There is no code generator for it: the table (`relay.op.contrib.cutlass`) partitions, and one's own `relay.ext.cutlass` compiles.
"""

from __future__ import annotations

import os
from typing import Any

from relaylang.ir import Function, IRModule
from relaylang.tvm.registry import get_global_func
from relaylang.tvm.runtime.program import Program, load_module
from relaylang.tvm.runtime.vm import Executable, Library


def has_cutlass() -> bool:
    """Whether a code generator for CUTLASS is registered."""
    return get_global_func("relay.ext.cutlass", allow_missing=True) is not None


def num_cutlass_partitions(mod: IRModule) -> int:
    """How many functions of a module are for CUTLASS."""
    return sum(isinstance(f, Function) and f.attrs.get("Compiler") == "cutlass" for f in mod.functions.values())


def finalize_modules(lib: Any, lib_path: str = "compile.so", tmp_dir: str = "./tmp") -> Program | Library:
    """The program of `relay.build`, written to a library in a folder, and loaded from there. Raises `RelayError`."""
    path = os.path.join(tmp_dir, lib_path)
    os.makedirs(tmp_dir, exist_ok=True)
    lib.export_library(path)
    return load_module(path)


def finalize_modules_vm(
    vm_exec: Executable, lib_path: str = "compile.so", vmcode_path: str = "vmcode.ro", tmp_dir: str = "./tmp"
) -> Executable:
    """The executable of `relay.vm.compile`, written as code and library to a folder, and loaded from there."""
    code, lib = vm_exec.save()
    os.makedirs(tmp_dir, exist_ok=True)
    with open(os.path.join(tmp_dir, vmcode_path), "wb") as file:
        file.write(code)
    path = os.path.join(tmp_dir, lib_path)
    lib.export_library(path)
    return Executable.load_exec(code, load_module(path))


__all__ = ["finalize_modules", "finalize_modules_vm", "has_cutlass", "num_cutlass_partitions"]
