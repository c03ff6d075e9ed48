"""Observes a program that `relay run` runs: --trace, --break, --watch-nan, --save-intermediates."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from relaylang.cli.common import check_ending, check_writable, report, write_bytes
from relaylang.cli.measuring import write_profile
from relaylang.cli.outputs import archive
from relaylang.cli.usage import UsageError
from relaylang.interpreter import Intermediates, NanWatch, Profile, Trace, Watch, Watches
from relaylang.ir import IRModule
from relaylang.passes.normal_forms.to_a_normal_form import to_anf
from relaylang.repl.debugger import Debugger, check_places


def add_debugging_options(parser: argparse.ArgumentParser) -> None:
    """The options that look into the interpreter's work."""
    group = parser.add_argument_group("debugging (interpreter)")
    group.add_argument("--trace", action="store_true", help="a line on stderr for each binding: time, name, type, value, place")
    group.add_argument(
        "--break",
        dest="breaks",
        action="append",
        default=[],
        metavar="NAME",
        help="stop at a variable (%%x), function (@f), operator or line, and read commands; help lists them",
    )
    group.add_argument("--watch-nan", action="store_true", help="warn where NaN or infinity comes from finite values")
    group.add_argument("--save-intermediates", metavar="FILE.npz", help="write the tensors of every binding to a file")


class Debugging:
    """The observations that the options ask for. `watch` is None where they ask for none."""

    def __init__(self, args: argparse.Namespace, compiled: bool) -> None:
        self.args = args
        self.interactive = bool(args.trace or args.breaks)
        profiled = args.profile is not None and not compiled
        self.watching = bool(self.interactive or args.watch_nan or args.save_intermediates or profiled)
        if args.breaks and args.file == "-":
            raise UsageError("relay run: --break reads commands from stdin, so the program is to be a file", "relay run --help")
        check_writable(args.save_intermediates)
        check_ending("run", args.save_intermediates, "--save-intermediates writes a .npz file", (".npz",))
        self.intermediates = Intermediates() if args.save_intermediates else None
        traced = bool(args.profile) or args.profile_format == "trace"
        self.profile = Profile(events=traced) if profiled else None

    def prepared(self, module: IRModule) -> IRModule:
        """The module to run: in A-normal form where names matter, so that they are those of `relay print --anf`."""
        return to_anf(module) if self.watching else module

    def watch(self, module: IRModule) -> Watch | None:
        """The observer of the module's run. Raises `RelayError` for places that the module does not have."""
        if not self.watching:
            return None
        watches: list[Watch] = []
        if self.intermediates is not None:
            watches.append(self.intermediates)
        if self.args.watch_nan:
            watches.append(NanWatch(lambda d: report([d])))
        if self.args.trace:
            watches.append(Trace(sys.stderr.write))
        if self.profile is not None:
            watches.append(self.profile)
        if self.args.breaks:
            watches.append(Debugger(module, check_places(self.args.breaks, module), _reader(), _show))
        return watches[0] if len(watches) == 1 else Watches(watches)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Write the gathered data after the evaluation in the block, also after a failure."""
        begin = time.perf_counter()
        try:
            yield
        finally:
            elapsed = time.perf_counter() - begin
            if self.intermediates is not None:
                write_bytes(self.args.save_intermediates, archive(self.intermediates.arrays))
            if self.profile is not None:
                write_profile(self.args, self.profile, self.profile.table(elapsed))


def _show(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def _reader() -> Callable[[], str | None]:
    """Reads commands, with a prompt on a terminal."""

    def read() -> str | None:
        if sys.stdin.isatty():
            _show("(break) ")
        line = sys.stdin.readline()
        return line.rstrip("\n") if line else None

    return read


__all__ = ["Debugging", "add_debugging_options"]
