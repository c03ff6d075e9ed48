"""Compile a program: for the CPU through C, for an Arm Ethos-U through TOSA and Vela.

Parameters with values (--params, --random-params) become part of the result; the others are its inputs. The result is
loaded in Python with relaylang.runtime.load(FILE) and run with .run(name=array).
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from relaylang.backends import compile_module
from relaylang.backends.cpu import emit_c
from relaylang.backends.registry import BACKENDS, find_backend, parse_target, with_options
from relaylang.backends.target import Target
from relaylang.cli.arguments import add_value_options, filled, needed_by, values_for
from relaylang.cli.common import check_writable, report, write_text
from relaylang.cli.inputs import bad_value, entry_function, split_inputs, split_types, stated_types
from relaylang.cli.models import FILE_HELP, add_import_options, import_options
from relaylang.cli.program import check, load
from relaylang.cli.progress import Stages
from relaylang.cli.usage import UsageError
from relaylang.diagnostics import did_you_mean
from relaylang.ir import IRModule, MetaRef, Type, Var, post_order
from relaylang.repl.session import Session

EPILOG = """\
examples:
  relay compile net.relay -o net.so
  relay compile net.relay --params net.npz --cc clang -o net.tar
  relay compile net.relay --emit c | less
  relay compile net.relay --target "ethos-u -accelerator=ethos-u55-256, c" --random-params 0 -o net.tar

A target is a backend's name and its options, -key=value; of several, with commas between them, each takes what it can.
--random-params gives every parameter a value but the inputs: those named by --input, or else the first one.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG + "\ntargets:\n" + "\n".join(f"  {name:<8} {b.doc}" for name, b in BACKENDS.items())
    parser.add_argument("file", metavar="FILE", help=FILE_HELP)
    parser.add_argument("-t", "--target", default="c", help="what to compile for (default: c)")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="the result: a shared library, or a .tar with everything"
    )
    parser.add_argument("--emit", choices=["c"], help="write the C text (to stdout where no -o is given)")
    parser.add_argument("--cc", metavar="COMPILER", help="the C compiler (default: $CC, cc, gcc or clang)")
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


def run(args: argparse.Namespace) -> int:
    if args.output is None and args.emit is None:
        raise UsageError("relay compile: -o FILE or --emit c says where the result goes", "relay compile --help")
    check_writable(args.output)
    targets = _targets(args)
    with Stages() as stages:
        with stages.stage("read"):
            program = load(args.file, options=import_options(args))
        names, types = _inputs(args.input)
        with stages.stage("check"):
            check(program, stated_types(program.free_vars, types))
        report(program.notes)
        mod, params = _bound(program.module, args, names)
        with stages.stage("compile"):
            if args.emit == "c":
                text = emit_c(mod, params, args.entry.removeprefix("@"), targets[0].options)
                write_text(args.output, text)
                return 0
            artifact = compile_module(mod, targets, params=params, entry=args.entry.removeprefix("@"))
        with stages.stage("write"):
            artifact.save(args.output)
    _say(artifact, args.output, list(params))
    return 0


def _targets(args: argparse.Namespace) -> list[Target]:
    targets = parse_target(args.target)
    if args.emit == "c" and targets[0].name != "c":
        raise UsageError(f"relay compile: --emit c goes with target c, not {targets[0].name}", "relay compile --help")
    if args.cc is None:
        return targets
    return [with_options(t, {"cc": args.cc}) if "cc" in _options(t) else t for t in targets]


def _options(target: Target) -> Mapping[str, type]:
    backend = find_backend(target.name)
    return backend.options if backend is not None else {}


def _inputs(items: Sequence[str]) -> tuple[list[str], dict[str, Type]]:
    """The names of the inputs, and the types that were stated with them."""
    stated = [item for item in items if "=" in item]
    values, types = split_types(split_inputs(stated))
    for name, text in values.items():
        raise bad_value(f"--input {name}={text}: a compiled program gets its inputs when it runs", ["--input NAME alone"])
    return [item.removeprefix("%") for item in items if item not in stated] + list(types), types


def _bound(mod: IRModule, args: argparse.Namespace, inputs: Sequence[str]) -> tuple[IRModule, dict[str, Any]]:
    """The module with its missing constants filled in, and values for the parameters that are bound."""
    function = entry_function(mod, args.entry)
    names = [p.name_hint for p in function.params]
    for name in inputs:
        if name not in names:
            near = did_you_mean(name, names)
            known = [f"did you mean {near}?"] if near else [f"its parameters: {', '.join(names[:12]) or 'none'}"]
            raise bad_value(f"--input {name}: there is no parameter of this name", known)
    needed = needed_by(function.params, list(post_order(function.body)))
    values, notes = values_for(_wanted(needed, args, inputs), args, {}, Session(mod), open_ended=True)
    report(notes)
    constants = {node.name_hint: values.pop(node.name_hint) for node in needed if isinstance(node, MetaRef)}
    return filled(mod, constants), values


def _wanted(needed: Sequence[Var | MetaRef], args: argparse.Namespace, inputs: Sequence[str]) -> list[Var | MetaRef]:
    """The parameters that need a value: all but the inputs."""
    if not inputs and args.random_params is not None:
        inputs = [node.name_hint for node in needed if isinstance(node, Var)][:1]
    return [node for node in needed if isinstance(node, MetaRef) or node.name_hint not in inputs]


def _say(artifact: Any, path: str, bound: Sequence[str]) -> None:
    """Print the report of an accelerator, or a line about the result."""
    if hasattr(artifact, "report"):
        print(artifact.report().rstrip("\n"))
    size = Path(path).stat().st_size
    inputs = ", ".join(f"%{n}" for n in artifact.input_names) or "none"
    print(f"{path}: {size / 1000:.1f} kB, inputs: {inputs}" + (f", {len(bound)} parameters bound" if bound else ""))
