"""Compile a program: for the CPU through C, for an Arm Ethos-U through TOSA and Vela.

Parameters with values (--params, --random-params) become part of the result; the others are its inputs. The result is
loaded in Python with relaylang.runtime.load(FILE) and run with .run(name=array).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from relaylang.backends.cpu import STEPS, emit
from relaylang.backends.cpu.bisect import bisect
from relaylang.backends.cpu.pipeline import GRAPH, times
from relaylang.backends.cpu.tuning_log import tuning_notes
from relaylang.backends.registry import BACKENDS, find_backend, ignored_options, parse_target, with_options
from relaylang.backends.target import Target
from relaylang.cli.arguments import add_load_option, add_value_options, load_files, needed_by, with_values
from relaylang.cli.common import PROGRAM, check_ending, check_writable, report, write_text
from relaylang.cli.inputs import bad_value, entry_function, split_inputs, split_types, stated_types
from relaylang.cli.models import FILE_HELP, add_import_options, import_options
from relaylang.cli.program import check, load
from relaylang.cli.progress import Stages, clock
from relaylang.cli.runtimes import RUNTIMES, is_given
from relaylang.cli.usage import UsageError
from relaylang.diagnostics import did_you_mean
from relaylang.ir import IRModule, MetaRef, Type, Var, post_order
from relaylang.runtime.aot import checked_place
from relaylang.runtime.random import random_params

EPILOG = """\
examples:
  relay compile net.relay -o net.so
  relay compile net.relay --params net.npz --cc clang -o net.tar
  relay compile net.relay --emit loops | less
  relay compile numbers.relay --runtime vm -o numbers.vm
  relay compile net.relay --runtime aot --static-memory -o net.c
  relay compile net.relay --target "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72" -o net.so
  relay compile net.relay --target "c -mtriple=riscv64-linux-gnu" --cross-compiler riscv64-linux-gnu-gcc -o net.tar
  relay compile net.relay --target "ethos-u -accelerator=ethos-u55-256, c" --random-params 0 -o net.tar
  relay compile examples/ethosu_bars.relay --target "ethos-u, c" --runtime bare-metal -o bars.tar

A target is a backend's name and its options, -key=value; of several, with commas between them, each takes what it can.
--random-params gives every parameter a value but the inputs: those named by --input, or else the first one.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG + "\ntargets:\n" + "\n".join(f"  {name:<8} {b.doc}" for name, b in BACKENDS.items())
    parser.epilog += "\n\nsteps of target c, for --emit:\n" + "\n".join(f"  {name:<8} {doc}" for name, doc in STEPS.items())
    parser.add_argument("file", metavar="FILE", help=FILE_HELP)
    parser.add_argument("-t", "--target", default="c", help="what to compile for (default: c)")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="the result: a library, a .tar with everything; C source: .c, .tar or a folder/"
    )
    parser.add_argument("--emit", choices=[*STEPS], help="write the text of a step (below) instead, to stdout where no -o is given")
    parser.add_argument(
        "--runtime",
        choices=[*RUNTIMES],
        default="graph",
        help="; ".join(f"{name}{' (default)' * (name == 'graph')}: {row.doc}" for name, row in RUNTIMES.items()),
    )
    aot = parser.add_argument_group("options of --runtime aot")
    aot.add_argument("--static-memory", action="store_true", help="call no malloc: the C has its own memory, or a caller's")
    aot.add_argument("--main", action="store_true", help="add a main that reads inputs from files and writes outputs")
    aot.add_argument("--external-weights", action="store_true", help="write the constants to FILE.bin, which the caller loads")
    parser.add_argument("--module-name", metavar="NAME", help="what --runtime bare-metal calls the program (default: default)")
    parser.add_argument(
        "--workspace-limit",
        metavar="BYTES",
        type=int,
        help="the memory that a run of --runtime bare-metal may need: a program over it is an error",
    )
    parser.add_argument("--time", action="store_true", help="print what each stage takes, to stderr (target c)")
    parser.add_argument(
        "--bisect",
        action="store_true",
        help="run the program after each stage (target c) on random inputs, and name the first after which results are others",
    )
    parser.add_argument("--report", action="store_true", help="print the memory that the result needs")
    parser.add_argument("--npu-only", action="store_true", help="target ethos-u: every call that stays on the host is an error")
    parser.add_argument("--schedule", metavar="FILE", help="choices for the schedules, as --emit space writes them")
    parser.add_argument("--tuning", metavar="LOG", help="the best schedules of a log of `relay tune`; --schedule wins over them")
    parser.add_argument("--cc", metavar="COMPILER", help="the C compiler (default: $CC, cc, gcc or clang)")
    parser.add_argument(
        "--cross-compiler", metavar="COMPILER", help="the C compiler for another machine (target option -mtriple names it)"
    )
    parser.add_argument("--cross-compiler-options", metavar="FLAGS", help="flags for it, behind = (--cross-compiler-options=-O3)")
    add_program_options(parser)


def add_program_options(parser: argparse.ArgumentParser) -> None:
    """The options that name the program: its function, inputs and parameters."""
    add_load_option(parser)
    parser.add_argument("--entry", default="main", metavar="NAME", help="the function to compile (default: main)")
    parser.add_argument(
        "-i",
        "--input",
        action="append",
        default=[],
        metavar="NAME",
        help="a parameter that stays open; NAME=TYPE for a fragment's untyped variable",
    )
    add_value_options(parser)
    add_import_options(parser)


#: The endings of the texts of `--emit`, beside .txt.
_TEXTS = {
    **{one.name: PROGRAM for one in GRAPH},
    "space": (".json",),
    "c": (".c", ".h"),
    "asm": (".s",),
    "opencl": (".cl",),
    "cuda": (".cu",),
}


def _check_ending(args: argparse.Namespace, targets: Sequence[Target]) -> None:
    """Raises `UsageError` for a file whose ending says another format. A plugin's backend chooses its format itself."""
    if args.emit is not None:
        makes = f"--emit {args.emit} writes text"
        check_ending("compile", args.output, makes, (*_TEXTS.get(args.emit, ()), ".txt"))
        return
    runtime = RUNTIMES[args.runtime]
    if runtime.endings and (args.runtime != "graph" or all(t.name in ("c", "ethos-u") for t in targets)):
        hint = not runtime.source and Path(args.output or "").suffix.lower() == ".c"
        check_ending("compile", args.output, runtime.writes + "; --emit c or --runtime aot writes C" * hint, runtime.endings)


def run(args: argparse.Namespace) -> int:
    if args.output is None and args.emit is None and not args.bisect:
        raise UsageError("relay compile: -o FILE or --emit STEP says where the result goes", "relay compile --help")
    if not RUNTIMES[args.runtime].source:
        check_writable(args.output)
    elif args.output is not None and not checked_place(args.output).is_dir():
        check_writable(args.output.rstrip("/"))
    _check_options(args)
    if args.bisect and (args.emit is not None or args.output is not None):
        raise UsageError("relay compile: --bisect writes no result: leave -o and --emit out", "relay compile --help")
    load_files(args)
    targets = _targets(args)
    _check_ending(args, targets)
    report(ignored_options(targets))
    with Stages() as stages:
        with stages.stage("read"):
            program = load(args.file, options=import_options(args))
        names, types = inputs_of(args.input)
        with stages.stage("check"):
            check(program, stated_types(program.free_vars, types))
        report(program.notes)
        mod, params = bound(program.module, args, names)
        if args.bisect:
            return _bisected(mod, targets[0], params, args, stages)
        with stages.stage("compile"), times() as seconds, tuning_notes() as tuning:
            entry = args.entry.removeprefix("@")
            if args.emit is not None:
                text = emit(mod, args.emit, params, entry, targets[0].options)
                report(tuning)
                write_text(args.output, text)
                return 0
            artifact = RUNTIMES[args.runtime].compile(mod, targets, params, entry, args)
        with stages.stage("write"):
            artifact.save(args.output)
    report(tuning)
    if args.time:
        print(_times({**stages.times, **seconds}), file=sys.stderr)
    _say(artifact, args, targets[0], len(params))
    return 0


def _check_options(args: argparse.Namespace) -> None:
    """Raises `UsageError` for an option that another runtime, or another target, has."""
    for runtime, row in RUNTIMES.items():
        for name, more in row.options.items():
            wrong_target = "target c" in more and runtime == args.runtime and parse_target(args.target)[0].name != "c"
            if is_given(args, name) and (runtime != args.runtime or wrong_target):
                said = f"relay compile: --{name.replace('_', '-')} goes with --runtime {runtime}{more}"
                raise UsageError(said, "relay compile --help")


def _times(seconds: Mapping[str, float]) -> str:
    """A table of stages. That of `compile` is the sum of those after it."""
    return "\n".join(f"{name:<12} {clock(time):>9}" for name, time in seconds.items())


def _bisected(mod: IRModule, target: Target, params: dict[str, Any], args: argparse.Namespace, stages: Stages) -> int:
    """Print the difference after each stage. The status is 1 where there is one."""
    entry = args.entry.removeprefix("@")
    open_ones = [p for p in entry_function(mod, args.entry).params if p.name_hint not in params]
    inputs = random_params(args.random_params or 0, open_ones)
    differences = []
    with stages.stage("bisect"):
        for difference in bisect(mod, target, params, entry, inputs):
            differences.append(difference)
    for difference in differences:
        print(f"{difference.stage:<12} {difference.floats:.1e} of the greatest float, {difference.integers:g} in integers")
    fault = next((d for d in differences if d.is_fault), None)
    print(f"results differ after the stage {fault.stage}" if fault else "results agree after every stage")
    return int(fault is not None)


def _targets(args: argparse.Namespace) -> list[Target]:
    targets = parse_target(args.target)
    if args.emit is not None and targets[0].name != "c":
        raise UsageError(f"relay compile: --emit {args.emit} goes with target c, not {targets[0].name}", "relay compile --help")
    options = {
        "cc": args.cc,
        "cross-compiler": args.cross_compiler,
        "cross-compiler-options": args.cross_compiler_options,
        "schedule": args.schedule,
        "tuning": args.tuning,
        "npu-only": args.npu_only or None,
    }
    if args.npu_only and not any("npu-only" in _options(t) for t in targets):
        raise UsageError("relay compile: --npu-only goes with target ethos-u", "relay compile --help")
    return [with_options(t, {key: value for key, value in options.items() if key in _options(t)}) for t in targets]


def _options(target: Target) -> Mapping[str, type]:
    backend = find_backend(target.name)
    return backend.options if backend is not None else {}


def inputs_of(items: Sequence[str]) -> tuple[list[str], dict[str, Type]]:
    """The names of the inputs, and the types that were stated with them."""
    stated = [item for item in items if "=" in item]
    values, types = split_types(split_inputs(stated))
    for name, text in values.items():
        raise bad_value(f"--input {name}={text}: a compiled program gets its inputs when it runs", ["--input NAME alone"])
    return [item.removeprefix("%") for item in items if item not in stated] + list(types), types


def bound(mod: IRModule, args: argparse.Namespace, inputs: Sequence[str]) -> tuple[IRModule, dict[str, Any]]:
    """The module with its missing constants filled in, and values for the parameters that are bound."""
    function = entry_function(mod, args.entry)
    names = [p.name_hint for p in function.params]
    for name in inputs:
        if name not in names:
            near = did_you_mean(name, names)
            known = [f"did you mean {near}?"] if near else [f"its parameters: {', '.join(names[:12]) or 'none'}"]
            raise bad_value(f"--input {name}: there is no parameter of this name", known)
    needed = needed_by(function.params, post_order(function.body))
    return with_values(mod, _wanted(needed, args, inputs), args)


def _wanted(needed: Sequence[Var | MetaRef], args: argparse.Namespace, inputs: Sequence[str]) -> list[Var | MetaRef]:
    """The parameters that need a value: all but the inputs."""
    if not inputs and args.random_params is not None:
        inputs = [node.name_hint for node in needed if isinstance(node, Var)][:1]
    return [node for node in needed if isinstance(node, MetaRef) or node.name_hint not in inputs]


def _say(artifact: Any, args: argparse.Namespace, target: Target, bound: int) -> None:
    """Print the report of an accelerator or of `--report`, and a line about the result."""
    path, text = args.output, artifact.report()
    if text and (args.report or args.runtime != "graph" or target.name != "c"):
        print(text.rstrip("\n"))
    files = RUNTIMES[args.runtime].source and not path.endswith(".tar")
    size = sum(map(len, artifact.files.values())) if files else Path(path).stat().st_size
    inputs = ", ".join(f"%{n}" for n in artifact.input_names) or "none"
    said = f", {bound} parameter{'s' * (bound != 1)} bound" if bound else ""
    print(f"{path}: {size / 1e3:.1f} kB" if size < 1e6 else f"{path}: {size / 1e6:.1f} MB", f"inputs: {inputs}{said}", sep=", ")
