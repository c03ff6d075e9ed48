"""Ahead of time: a program as one C file and a header, without an interpreter and without a runtime.

    program = compile_aot(mod, "c", static_memory=True, main=True)
    program.save("net.c")       # and net.h

A program without loops is one data-flow graph, as on the CPU backend. Any other program becomes the VM's code, whose
functions are printed as C (`ways`, `instances`, `functions`). Branches and calls in tail position become C's own. All memory has
a known place in one workspace (`layout`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from relaylang.backends.aot.face import Face, c_names, inputs_of, outputs_of
from relaylang.backends.aot.file import AotEmitter
from relaylang.backends.aot.functions import Functions
from relaylang.backends.aot.instances import HINT, refused
from relaylang.backends.aot.kernels import ALIGN, Kernels
from relaylang.backends.aot.lowering import Ways, inputs_left
from relaylang.backends.aot.shapes import Known, structure
from relaylang.backends.cpu.cc import Compiler, Unit
from relaylang.backends.cpu.isa import GENERIC, Isa
from relaylang.backends.cpu.linking import Outsiders, outsiders, parts
from relaylang.backends.cpu.toolchain import find_toolchain
from relaylang.backends.cpu.tuning_log import schedule_of
from relaylang.backends.registry import parse_target, with_options
from relaylang.backends.target import Target, threads_of
from relaylang.diagnostics import RelayError, error
from relaylang.ir import Expr, IRModule
from relaylang.runtime.aot import AotProgram
from relaylang.runtime.external import Generator, written
from relaylang.runtime.features import table_of
from relaylang.typing import check

__all__ = ["Generated", "compile_aot", "generate", "library"]

#: Options that say which instructions the C may use.
_MACHINE = ("march", "mcpu", "mattr", "cflags")


def compile_aot(
    mod: IRModule | Expr,
    target: str | Target = "c",
    params: Mapping[str, np.ndarray] | None = None,
    options: Mapping[str, Any] | None = None,
    entry: str = "main",
    *,
    name: str = "net",
    static_memory: bool = False,
    main: bool = False,
    external_weights: bool = False,
) -> AotProgram:
    """A function of a module, and all that it calls, as C.

    `name` begins the names in C. With `static_memory` the C calls no malloc. `main` adds a command line. With
    `external_weights` the constants are a file of their own. Raises `RelayError` (R0636 where a program needs a runtime).
    """
    targets = parse_target(target) if isinstance(target, str) else [target]
    first = with_options(targets[0], options) if options else targets[0]
    face = partial(Face, static=static_memory, external=external_weights)
    generated = generate(mod, first, params, entry, name, face, partial(library, first), main=main)
    return AotProgram(*generated.parts)


@dataclass(frozen=True)
class Generated:
    """The C of a program: what `AotProgram` takes, its face, its kernels, and the code of other compilers."""

    parts: Sequence[Any]
    face: Face
    kernels: Kernels
    outside: Outsiders


def _check_target(target: Target) -> None:
    """Raises `RelayError` for a target, or an option of it, that C source is not for."""
    if target.name != "c":
        note = "--runtime bare-metal writes C for accelerators, too"
        raise RelayError(error("R0602", f"C source is for the target c, not for {target.name}", notes=[note]))
    if target.get("profile"):
        raise RelayError(error("R0602", "option -profile is for libraries: C source keeps no times"))


def generate(
    mod: IRModule | Expr,
    first: Target,
    params: Mapping[str, np.ndarray] | None,
    entry: str,
    name: str,
    make_face: Callable[..., Face],
    compiled: Callable[[str, Mapping[str, bytes]], bytes],
    *,
    main: bool = False,
    generators: Mapping[str, Generator] | None = None,
) -> Generated:
    """The C of a function of a module. `make_face` makes the face of its tensors and sizes, `compiled` a library of it.

    `generators` stand for other compilers, before those that are registered. Raises `RelayError` as `compile_aot` does.
    """
    _check_target(first)
    if not isinstance(mod, IRModule):
        mod = IRModule.from_expr(mod)
    check(mod)
    compiler = Compiler(first.options) if any(first.get(key) for key in _MACHINE) else None
    isa: Isa = GENERIC
    flags: Sequence[str] = ()
    macros: list[str] = []
    if compiler is not None:
        isa, flags = compiler.isa, find_toolchain(first.options).flags
        macros = [f.macro for f in table_of(compiler.machine) if f.name in isa.features]
    values = {key: np.asarray(value) for key, value in (params or {}).items()}
    threads = threads_of(first.options) or 1
    names, shapes = inputs_left(mod[entry], values)
    code = Ways(mod, entry, values, names, shapes, isa, schedule_of(first.options), threads, generators or {}).first()
    kernels, main_instance = code.kernels, code.entry
    assert main_instance.group is not None
    if any(isinstance(token, Known) for token in main_instance.group.result):
        raise refused(f"@{entry} gives a function", mod[entry])
    kernels.prepare()
    outside = outsiders(kernels.programs.values())
    _check_code(outside)
    (c_name,) = c_names([name])
    functions = Functions(kernels, c_name.upper())
    texts = functions.write(code.instances.groups, main_instance)
    c_main = functions.made[main_instance]
    weights = bytes(kernels.weights.content)
    digest = hashlib.sha256(weights).digest()[:ALIGN]
    inputs, outputs = inputs_of(names, shapes), outputs_of(main_instance.group.result)
    face = make_face(
        name=c_name,
        entry=entry,
        inputs=inputs,
        outputs=outputs,
        frame=c_main.frame,
        weights=len(weights),
        digest=digest,
        threads=threads,
        fails=bool(kernels.sites),
    )
    source = AotEmitter(isa, kernels, texts, face, flags, macros).source(c_main, f"@{entry}, made by relaylang", main)
    program = (
        c_name,
        source,
        face.header(),
        digest.ljust(ALIGN, b"\0") + weights if face.external else b"",
        [(f.relay, f.path, f.leaf.dims, f.leaf.dtype) for f in inputs],
        [(f.leaf.dims, f.leaf.dtype) for f in outputs],
        structure(main_instance.group.result),
        face.workspace,
        compiled,
        {f"{c_name}_external{Path(part).name}": content for part, content in written(parts(outside)).items()},
        [(op.region.symbol, op.region.compiler) for op, _ in outside],
        len(weights) + sum(op.code.constant_bytes for op, _ in outside),
        threads,
        kernels.places,
    )
    return Generated(program, face, kernels, outside)


def _check_code(outside: Outsiders) -> None:
    """Raise `RelayError` (R0636) for code of other compilers that C cannot call."""
    for op, span in outside:
        if op.code.kind not in ("c", "object"):
            form = "a Python function" if op.code.kind == "python" else "bytes for a loader in Python"
            title = f"C source cannot call the code of {op.region.compiler} for {op.region.symbol}: it is {form}"
            raise RelayError(error("R0636", title, span, notes=["its code generator may give C text or object code", HINT]))


def library(target: Target, text: str, externals: Mapping[str, bytes]) -> bytes:
    """A library of C, with the code of other compilers in files."""
    compiler = Compiler(target.options)
    objects = {}
    for name, content in externals.items():
        file = Path(name)
        objects[f"{file.stem}.o" if file.suffix == ".c" else file.name] = (
            compiler.object(content.decode()) if file.suffix == ".c" else content
        )
    return compiler.compile([Unit(text)], text, target.get("keep-c"), objects)
