"""Evaluate a program: @main, another function (--entry), or an expression in the program's scope (-e). FILE may be compiled, too.

The interpreter says what a program means; --executor cpu compiles it to C and runs that. Parameters get their values
from --input, then from --params, then from --random-params. The value is shown with its type.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from relaylang.backends import parse_target
from relaylang.backends.registry import with_options
from relaylang.cli.arguments import add_load_option, add_value_options, free_inputs, load_files, needed_by, values_for
from relaylang.cli.common import check_writable, report
from relaylang.cli.compiled import computed_by, is_compiled, run_compiled
from relaylang.cli.debugging import Debugging, add_debugging_options
from relaylang.cli.inputs import bad_value, entry_function, split_inputs, split_types, stated_types
from relaylang.cli.limits import Limits, add_limit_options
from relaylang.cli.measuring import add_measuring_options, check_measuring, measured, repetitions, write_profile
from relaylang.cli.models import FILE_HELP, add_import_options, import_options
from relaylang.cli.outputs import check_arrays, write_arrays
from relaylang.cli.program import Program, check, load
from relaylang.cli.progress import Stages, clock
from relaylang.cli.runtimes import RUNTIMES, is_given
from relaylang.cli.usage import UsageError
from relaylang.diagnostics import Diagnostic, RelayError
from relaylang.interpreter import evaluate
from relaylang.ir import Call, IRModule, TensorType, Type, Var, parameter_names, post_order
from relaylang.ir.missing import fill_missing
from relaylang.repl.debugger import Stopped
from relaylang.repl.definitions import Value, typed
from relaylang.repl.session import Session
from relaylang.runtime.artifact import MAX_THREADS, SIMULATORS
from relaylang.runtime.benchmark import timed
from relaylang.runtime.vm.executable import VMExecutable
from relaylang.runtime.vm.executable import load as load_vm

EPILOG = """\
examples:
  relay run net.relay --random-params 0
  relay run net.relay --params net.npz --input data=image.npy --output result.npz
  relay run net.relay --random-params 0 --executor cpu --benchmark
  relay run net.relay --random-params 0 --executor cpu --profile
  relay run examples/ethosu_bars.relay --fill ones --target "ethos-u, c" --executor ethosu-sim
  relay run net.relay --random-params 0 --target "c -num-threads=1"
  relay run loop.relay --entry power --input base=1.5 --input n=10
  relay run numbers.relay -e '@total(Two(5, 6))'
  echo '1 + 2' | relay run -
  relay run net.relay --random-params 0 --trace
  relay run net.relay --random-params 0 --break %x_3 --watch-nan
  relay run net.relay --random-params 0 --profile trace.json --save-intermediates all.npz

--input NAME=VALUE takes a .npy file, a number, nested lists of numbers such as [[1, 2], [3, 4]], or, where the
parameter is no tensor, a Relay expression such as 'Cons(1, Nil)'. --input 'NAME=Tensor[(1, 3), float32]' says of what
type a fragment's variable is; its value is then one of --random-params.
"""

_COMPILED = "goes with --executor cpu or --target"
_INTERPRETED = "the debugging options are the interpreter's; leave --executor out"
_DEBUGGING = dict.fromkeys(("trace", "breaks", "watch_nan", "save_intermediates"), _INTERPRETED)
_OF_THE_VM = dict.fromkeys(("fallbacks", "no_fallback"), "--fallbacks and --no-fallback are for programs of the VM: --executor vm")
_COMPARE = {"compare": "--compare is for programs compiled for an Ethos-U; relay compile makes one"}
_TEXT = "is about a program's text, and {file} is compiled"
#: What runs a program -> the options that it does not have, each with the reason.
_REFUSED: dict[str, dict[str, str]] = {
    "interpreter": {**_OF_THE_VM, "threads": f"--threads {_COMPILED}", **_COMPARE, "benchmark": f"--benchmark {_COMPILED}"},
    "graph": {**_OF_THE_VM, **_COMPARE, **_DEBUGGING},
    "vm": {**_COMPARE, **_DEBUGGING},
    "vm file": {
        **_COMPARE,
        **_DEBUGGING,
        **dict.fromkeys(("expr", "target", "executor"), "a compiled program runs as it is; leave -e, --target and --executor out"),
    },
    "file": {**_OF_THE_VM, **_DEBUGGING, "expr": f"-e {_TEXT}", "entry": f"--entry {_TEXT}", "target": f"--target {_TEXT}"},
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help=FILE_HELP)
    add_value_options(parser)
    parser.add_argument("-i", "--input", action="append", default=[], metavar="NAME=VALUE", help="a parameter's value")
    parser.add_argument("--entry", default="main", metavar="NAME", help="the function to run (default: main)")
    parser.add_argument("-e", "--expr", metavar="EXPR", help="evaluate this expression in the program's scope instead")
    parser.add_argument(
        "--executor",
        choices=["interpreter", "cpu", "vm", *SIMULATORS],
        default="interpreter",
        help="interpreter (default): the reference; cpu: compile with the C compiler and run that; vm: compile any program; "
        "of programs for an Ethos-U, tosa (default): the TOSA reference model, ethosu-sim: the simulator of its commands; "
        "of programs for VTA, vta-sim: the simulator of its instructions",
    )
    parser.add_argument("-t", "--target", metavar="TARGET", help="compile for this target, and run that (see relay compile)")
    parser.add_argument(
        "--threads", type=int, metavar="N", help="threads of compiled code (default: the processors that are there for it)"
    )
    parser.add_argument("--fill", choices=["zeros", "ones"], help="what every parameter holds that nothing else gives")
    parser.add_argument("--fallbacks", action="store_true", help="of the VM: say which kernels the interpreter computed, and why")
    parser.add_argument("--no-fallback", action="store_true", help="of the VM: a kernel without compiled code is an error")
    add_load_option(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="write the value's tensors to a .npz or .safetensors file")
    parser.add_argument(
        "--compare",
        metavar="PROGRAM",
        help="of a program compiled for an Ethos-U: show where its operations first give other numbers than this program",
    )
    add_measuring_options(parser)
    add_debugging_options(parser)
    add_limit_options(parser, "a program")
    add_import_options(parser)


def run(args: argparse.Namespace) -> int:
    check_writable(args.output)
    check_arrays(args.output)
    load_files(args)
    if args.expr is not None and (args.executor != "interpreter" or args.target is not None):
        option = "--executor" if args.target is None else "--target"
        raise UsageError(f"relay run: -e is evaluated by the interpreter; leave {option} out", "relay run --help")
    if args.threads is not None and not 1 <= args.threads <= MAX_THREADS:
        raise bad_value(f"--threads {args.threads} is not from 1 to {MAX_THREADS}")
    runtime = _runtime(args)
    compiled = runtime != "interpreter"
    check_measuring(args, runtime in ("graph", "file"))
    for option, why in _REFUSED[runtime].items():
        if is_given(args, option):
            raise UsageError(f"relay run: {why.format(file=args.file)}", "relay run --help")
    debugging, limits = Debugging(args, compiled), Limits(args)
    if runtime == "file":
        return run_compiled(args, limits)
    if args.expr is not None and debugging.watching:
        raise UsageError("relay run: the debugging options look into a function, not into -e", "relay run --help")
    try:
        return _run(args, runtime, debugging, limits)
    except Stopped:
        print("ended at a break", file=sys.stderr)
        return 0


def _runtime(args: argparse.Namespace) -> str:
    """What runs the program: a row of `_REFUSED`. A program for an Ethos-U that is compared runs in the simulator."""
    if args.file.endswith(".vm"):
        return "vm file"
    compiled, layers = is_compiled(args.file), args.file.endswith(".tflite")
    if args.compare is not None and (compiled or layers) and args.executor not in SIMULATORS:
        args.executor = "ethosu-sim"
    if compiled or (args.executor == "ethosu-sim" and layers):
        return "file"
    if args.executor == "vm":
        return "vm"
    return "interpreter" if args.executor == "interpreter" and args.target is None else "graph"


def _run(args: argparse.Namespace, runtime: str, debugging: Debugging, limits: Limits) -> int:
    # A bar would mix with the output written meanwhile.
    with Stages(float("inf")) if debugging.interactive else Stages() as stages:
        with stages.stage("read"):
            compiled = load_vm(args.file) if runtime == "vm file" else None
            program = (
                load(args.file, options=import_options(args)) if compiled is None else Program(args.file, compiled.program.module)
            )
        with stages.stage("check"):
            check(program, given_types(program, args))
        report(program.notes)
        if args.expr is not None:
            value, times = _expression(program, args, stages, limits), None
        else:
            value, times = _function(program, args, runtime, stages, debugging, limits, compiled)
        if args.output is not None:
            with stages.stage("write"):
                write_arrays(args.output, value.data)
    if times is not None:
        print(times)
    elif args.output is None:
        print(value)
    if args.time:
        print(", ".join(f"{name} {clock(t)}" for name, t in stages.times.items()), file=sys.stderr)
    return 0


def _interpreted(
    module: IRModule,
    entry: str,
    arguments: Sequence[Any],
    constants: Mapping[str, Any],
    calls: int,
    stages: Stages,
    debugging: Debugging,
    limits: Limits,
) -> Any:
    """What the interpreter gives for a function, whose body has so many calls."""
    module = debugging.prepared(module)
    watch = debugging.watch(module)
    with stages.stage("evaluate", total=calls) as step, debugging.running(), limits.running():
        return evaluate(
            module,
            *arguments,
            entry=entry,
            values=constants,
            observer=(lambda *_: step(1)) if stages.visible and watch is None else None,
            watch=watch,
            memory_limit=limits.memory,
            time_limit=limits.seconds,
        )


def _function(
    program: Program,
    args: argparse.Namespace,
    runtime: str,
    stages: Stages,
    debugging: Debugging,
    limits: Limits,
    executable: VMExecutable | None,
) -> tuple[Value, str | None]:
    """The value of a function of the program, and the text of --benchmark. An expression is the body of its @main."""
    function = entry_function(program.module, args.entry)
    body = list(post_order(function.body))
    with stages.stage("parameters"):
        session = Session(program.node if isinstance(program.node, IRModule) else None)
        needed = needed_by(function.params, body)
        values, notes = values_for(needed, args, split_types(split_inputs(args.input))[0], session)
    report(notes)
    ty = function.body.checked_type
    names = {p.name_hint for p in function.params}
    arguments = [values[p.name_hint] for p in function.params]
    constants = {name: value for name, value in values.items() if name not in names}
    entry = args.entry.removeprefix("@")
    if runtime == "interpreter":
        calls = sum(isinstance(node, Call) for node in body)
        return Value(_interpreted(program.module, entry, arguments, constants, calls, stages, debugging, limits), ty), None
    fixed = _bound(function.params, values, args) if runtime == "graph" else {}
    artifact: Any = executable
    if artifact is None:
        with stages.stage("compile"):
            first, *rest = parse_target(args.target or "c")
            profiles = args.profile is not None and first.name != "vta"  # which counts cycles of any program
            targets = [with_options(first, {"profile": True} if profiles else {}), *rest]
            artifact = RUNTIMES[runtime].compile(fill_missing(program.module, constants), targets, fixed, entry, args)
    if args.threads is not None:
        if "threads" not in artifact.capabilities:
            raise bad_value(f"--threads {args.threads}: only programs for the target c have threads")
        artifact.threads = args.threads
    named = zip(parameter_names(function.params), function.params, arguments)
    inputs = {name: value for name, param, value in named if param.name_hint not in fixed}
    if runtime != "graph":
        return _on_machine(artifact, entry, inputs, ty, args, stages, limits)
    computed_by(args, artifact)
    with stages.stage("run"), limits.running(compiled=True):
        value = Value(artifact.run(**inputs), ty)
    if not args.benchmark and args.profile is None:
        return value, None
    with stages.stage("measure"):
        return value, measured(args, artifact, inputs)


def _on_machine(
    executable: VMExecutable,
    entry: str,
    inputs: Mapping[str, Any],
    ty: Type | None,
    args: argparse.Namespace,
    stages: Stages,
    limits: Limits,
) -> tuple[Value, str | None]:
    """The value of a function on the VM, which keeps to limits itself, and the text of --benchmark."""

    def call() -> Any:
        return executable.call(entry, (), inputs, memory_limit=limits.memory, time_limit=limits.seconds)

    executable.fallback = not args.no_fallback
    with stages.stage("run"), limits.running():
        value = Value(call(), ty)
    if args.fallbacks:
        print("\n".join(map(str, executable.fallbacks())) or "compiled code has computed all kernels", file=sys.stderr)
    if args.profile is not None:
        write_profile(args, executable.profile(entry, (), inputs))
    if not args.benchmark:
        return value, None
    with stages.stage("measure"):
        return value, str(timed(call, **repetitions(args)))


def _bound(params: Sequence[Var], values: Mapping[str, Any], args: argparse.Namespace) -> dict[str, np.ndarray]:
    """The parameters that are weights: all but those of --input, or else all but the first."""
    texts, types = split_types(split_inputs(args.input))
    inputs = {*texts, *types} or {p.name_hint for p in params[:1]}
    names = [p.name_hint for p in params if p.name_hint not in inputs and isinstance(p.checked_type, TensorType)]
    return {name: values[name] for name in names if isinstance(values[name], np.ndarray) and names.count(name) == 1}


def given_types(program: Program, args: argparse.Namespace) -> dict[Var, Type]:
    """Types of a fragment's free variables that have none: those that the call states, and those of its values."""
    untyped = {v.name_hint: v for v in program.free_vars if v.type_annotation is None}
    texts, types = split_types(split_inputs(args.input))
    inputs = {name: text for name, text in texts.items() if name in untyped}
    known = stated_types(program.free_vars, types)
    if inputs or (untyped and args.params):
        values = free_inputs(args, inputs)
        known.update({v: TensorType(values[n].shape, values[n].dtype.name) for n, v in untyped.items() if n in values})
    return known


def _expression(program: Program, args: argparse.Namespace, stages: Stages, limits: Limits) -> Value:
    """The value of --expr in the program's scope."""
    if not isinstance(program.node, IRModule):
        raise UsageError("relay run: -e wants a file with definitions", "relay run --help")
    session = Session(program.node)
    session.memory_limit, session.time_limit = limits.memory, limits.seconds
    inputs = free_inputs(args, split_types(split_inputs(args.input))[0])
    with stages.stage("evaluate"), limits.running():
        try:
            return session.evaluate(args.expr, "<expression>", {n: typed(v) for n, v in inputs.items()})
        except RelayError as wrong:
            raise RelayError([_with_option(d) for d in wrong.diagnostics]) from None


def _with_option(diagnostic: Diagnostic) -> Diagnostic:
    """A variable's lack of a value, with the option that gives one."""
    if diagnostic.code != "R0722" or diagnostic.span is None or not diagnostic.span.text.startswith("%"):
        return diagnostic
    name = diagnostic.span.text.removeprefix("%")
    return replace(diagnostic, notes=(*diagnostic.notes, f"give it one: --input {name}=VALUE, such as --input {name}=1"))
