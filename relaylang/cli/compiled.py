"""`relay run` of a compiled program: a library, a .tar, as `relay compile` wrote it."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

import numpy as np

from relaylang.cli.arguments import values_for
from relaylang.cli.common import report
from relaylang.cli.comparing import Comparison
from relaylang.cli.inputs import split_inputs
from relaylang.cli.limits import Limits
from relaylang.cli.measuring import measured
from relaylang.cli.outputs import write_arrays
from relaylang.cli.progress import Stages
from relaylang.cli.usage import UsageError
from relaylang.ir import TensorType, TupleType, Type, Var
from relaylang.repl.session import Session, Value
from relaylang.runtime.aot import AotProgram
from relaylang.runtime.artifact import LIBRARY_MAGIC, SIMULATORS, loads
from relaylang.runtime.cpu import CpuArtifact
from relaylang.runtime.text import read_bytes
from relaylang.services import service

#: Where a tar says what it is.
_TAR = slice(257, 262)
#: Bytes 4 to 8 of a TFLite file.
_TFLITE = b"TFL3"


def is_compiled(path: str) -> bool:
    """Whether a file is a library or an archive. It is not where its name says text, or where it cannot be read."""
    if path.endswith(".relay"):
        return False
    try:
        with open(path, "rb") as file:
            head = file.read(512)
    except OSError:
        return False
    return head.startswith(LIBRARY_MAGIC) or head[_TAR] == b"ustar"


def run_compiled(args: argparse.Namespace, limits: Limits) -> int:
    """Run a compiled program with the values of the call. Raises `UsageError` for options about the program's text."""
    for option, given in (("-e", args.expr is not None), ("--entry", args.entry != "main"), ("--target", args.target is not None)):
        if given:
            raise UsageError(f"relay run: {option} is about a program's text, and {args.file} is compiled", "relay run --help")
    with Stages() as stages:
        with stages.stage("load"):
            content = read_bytes(args.file)
            tflite = content[4:8] == _TFLITE
            artifact = service("npu network")(content, args.file) if tflite else loads(content, args.threads, args.file)
            computed_by(args, artifact)
            comparison = Comparison(args, artifact) if args.compare is not None else None
        values, notes = values_for(parameters(artifact), args, split_inputs(args.input), Session(None))
        report(notes)
        with stages.stage("run"), limits.running(compiled=True):
            data = artifact.run(**values)
        if comparison is not None:
            with stages.stage("compare"):
                return comparison.report(values, data)
        times = None
        if args.benchmark or args.profile is not None:
            with stages.stage("measure"):
                times = measured(args, artifact, values)
        if args.output is not None:
            write_arrays(args.output, data)
    if times is not None:
        print(times)
    elif args.output is None:
        print(Value(data, _type(data)))
    return 0


def computed_by(args: argparse.Namespace, artifact: Any) -> None:
    """Have an accelerator's regions computed as --executor says. Raises `UsageError` for programs without any."""
    if args.executor in SIMULATORS:
        if not hasattr(artifact, "executor"):
            raise UsageError(f"relay run: --executor {args.executor} is for programs compiled for an Ethos-U", "relay run --help")
        artifact.executor = args.executor


def parameters(artifact: Any) -> list[Var]:
    """The inputs of a compiled program, with their types where it has them."""
    flat = not isinstance(artifact, (CpuArtifact, AotProgram))
    rows = [(name, spec, ()) for name, spec in artifact.inputs] if flat else artifact.tensors
    found: dict[str, dict[tuple[int, ...], Type]] = {}
    for name, spec, path in rows:
        found.setdefault(name, {})[path] = TensorType(spec.shape, spec.dtype)
    return [Var(name, _whole(parts)) for name, parts in found.items()]


def _whole(parts: Mapping[tuple[int, ...], Type]) -> Type:
    """The type whose tensors lie at these paths, deepest tuples first."""
    types: dict[tuple[int, ...], Type] = dict(parts)
    while () not in types:
        depth = max(map(len, types))
        ends: dict[tuple[int, ...], list[Type]] = {}
        for path in sorted(p for p in types if len(p) == depth):
            ends.setdefault(path[:-1], []).append(types.pop(path))
        types.update({path: TupleType(fields) for path, fields in ends.items()})
    return types[()]


def _type(data: Any) -> Type | None:
    if isinstance(data, np.ndarray):
        return TensorType(data.shape, data.dtype.name)
    fields = [_type(item) for item in data]
    return TupleType([f for f in fields if f is not None])


__all__ = ["is_compiled", "parameters", "run_compiled"]
