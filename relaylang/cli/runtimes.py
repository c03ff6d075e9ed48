"""The runtimes of compiled programs. A row says what compiles for one, what its file is, and which options it alone has.

A compiler is imported by the call that needs it: most calls of the command compile nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from relaylang.backends import compile_module
from relaylang.backends.target import Target
from relaylang.cli.common import COMPILED
from relaylang.ir import IRModule
from relaylang.runtime.artifact import Artifact


@dataclass(frozen=True)
class Runtime:
    """A value of --runtime. `compile` takes a module, targets, values of parameters, the entry and the options of the call.

    `options` are those that no other runtime has, each with what a refusal says after the runtime's name. `writes` says
    what its file is, and `endings` are those of such files. Without any, the writer of the file checks its name. `source`
    says that the file is C.
    """

    doc: str
    compile: Callable[[IRModule, Sequence[Target], Mapping[str, Any], str, argparse.Namespace], Artifact]
    options: Mapping[str, str]
    writes: str = ""
    endings: Sequence[str] = ()
    source: bool = field(default=False, kw_only=True)


def _vm(mod: IRModule, targets: Sequence[Target], params: Mapping[str, Any], entry: str, args: argparse.Namespace) -> Artifact:
    from relaylang.backends.vm import compile_vm

    return compile_vm(mod, targets[0], params, entries=[entry])


def _aot(mod: IRModule, targets: Sequence[Target], params: Mapping[str, Any], entry: str, args: argparse.Namespace) -> Artifact:
    from relaylang.backends.aot import compile_aot

    own = {name: getattr(args, name) for name in RUNTIMES["aot"].options}
    return compile_aot(mod, targets[0], params, entry=entry, name=Path(args.output).stem, **own)


def _bare_metal(mod: IRModule, targets: Sequence[Target], params: Mapping[str, Any], entry: str, args: argparse.Namespace) -> Artifact:
    from relaylang.backends.bare_metal import compile_bare_metal

    return compile_bare_metal(mod, targets, params, entry, args.module_name or "default", args.workspace_limit)


RUNTIMES: dict[str, Runtime] = {
    "graph": Runtime(
        "one data-flow graph",
        lambda mod, targets, params, entry, args: compile_module(mod, targets, params, entry=entry),
        {"time": " and target c", "bisect": " and target c", "emit": "; relay disasm shows a program of the VM"},
        "the result is a library or a .tar",
        COMPILED,
    ),
    "vm": Runtime(
        "any program, with recursion and data types",
        _vm,
        {},
        "--runtime vm writes a compiled program",
        COMPILED,
    ),
    "aot": Runtime(
        "C source and a header, for programs with branches and loops",
        _aot,
        dict.fromkeys(("static_memory", "main", "external_weights"), ""),
        source=True,
    ),
    "bare-metal": Runtime(
        "such C for a microcontroller and its NPU, in TVM's Model Library Format",
        _bare_metal,
        dict.fromkeys(("module_name", "workspace_limit"), ""),
        "--runtime bare-metal writes a .tar of C source",
        (".tar",),
        source=True,
    ),
}


def is_given(args: argparse.Namespace, option: str) -> bool:
    """Whether a call has an option: a flag, a value or a list. Of executors, cpu counts; of entries, all but `main`."""
    value = getattr(args, option)
    if option in ("entry", "executor"):
        return bool(value == "cpu" if option == "executor" else value != "main")
    return value is not None and value is not False and value != []


__all__ = ["RUNTIMES", "Runtime", "is_given"]
