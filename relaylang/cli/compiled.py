"""`relay run` of a compiled program: a library, a .tar, as `relay compile` wrote it."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from relaylang.cli.arguments import values_for
from relaylang.cli.common import report
from relaylang.cli.inputs import split_inputs
from relaylang.cli.limits import Limits
from relaylang.cli.measuring import measured
from relaylang.cli.outputs import write_arrays
from relaylang.cli.progress import Stages
from relaylang.cli.usage import UsageError
from relaylang.frontends.contents import is_tflite
from relaylang.ir import TensorType, TupleType, Type
from relaylang.repl.definitions import Value
from relaylang.repl.session import Session
from relaylang.runtime.artifact import LIBRARY_MAGIC, SIMULATORS, Artifact, loads
from relaylang.runtime.text import read_bytes

#: Where a tar says what it is.
_TAR = slice(257, 262)


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


def _network(content: bytes, file: str) -> Artifact:
    """A file of Vela, which few calls have."""
    from relaylang.backends.ethosu.tflite import load_network

    return load_network(content, file)


def run_compiled(args: argparse.Namespace, limits: Limits) -> int:
    """Run a compiled program with the values of the call."""
    with Stages() as stages:
        with stages.stage("load"):
            content = read_bytes(args.file)
            artifact = _network(content, args.file) if is_tflite(content) else loads(content, args.threads, args.file)
            computed_by(args, artifact)
            comparison = None
            if args.compare is not None:
                from relaylang.cli.comparing import Comparison

                comparison = Comparison(args, artifact)
        values, notes = values_for(artifact.signature(), args, split_inputs(args.input), Session(None))
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
        if "simulate" not in artifact.capabilities or args.executor not in artifact.executors:
            compiler = SIMULATORS[args.executor]
            raise UsageError(f"relay run: --executor {args.executor} is for programs compiled for {compiler}", "relay run --help")
        artifact.executor = args.executor


def _type(data: Any) -> Type | None:
    if isinstance(data, np.ndarray):
        return TensorType(data.shape, data.dtype.name)
    fields = [_type(item) for item in data]
    return TupleType([f for f in fields if f is not None])


__all__ = ["computed_by", "is_compiled", "run_compiled"]
