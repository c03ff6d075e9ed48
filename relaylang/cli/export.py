"""Export a program: an ONNX model of opset 21, StableHLO as MLIR text, or Relax as TVMScript.

The file's ending says which: .onnx, .mlir or .py; --format says it otherwise. Parameters with values (--params) become
constants. What the format does not have is listed whole, and nothing is written.
"""

from __future__ import annotations

import argparse
import os

from relaylang.cli.arguments import add_load_option, add_value_options, load_files, needed_by, with_values
from relaylang.cli.common import check_ending, check_outputs, report, write_bytes
from relaylang.cli.inputs import entry_function
from relaylang.cli.models import FILE_HELP, add_import_options, import_options
from relaylang.cli.program import check, load
from relaylang.cli.progress import Stages
from relaylang.cli.reporting import FORMATS as REPORTS
from relaylang.cli.usage import UsageError
from relaylang.export import FORMATS, export
from relaylang.ir import MetaRef, post_order
from relaylang.ir.binding import bind_params
from relaylang.passes.infer_type import InferType
from relaylang.runtime.files import together
from relaylang.runtime.params import check_suffix, load_params, save_params

EPILOG = """\
examples:
  relay export net.onnx --shape image=1x3x224x224 --format stablehlo -o net.txt
  relay export net.relay -o net.onnx
  relay export net.relay --params net.npz -o net.mlir
  relay export net.relay -o net.py --constants net_constants.npz

Relax text holds scalars only; --constants takes the other constants, which are its parameters behind the inputs.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help=FILE_HELP)
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="the result")
    parser.add_argument(
        "--format",
        action="append",
        default=[],
        choices=[*FORMATS, *REPORTS],
        help="what to write (default: by the ending of -o); text, json and sarif are about errors",
    )
    parser.add_argument(
        "--constants", metavar="FILE", help="a file for constants: of Relax text .npz, .params, .safetensors; of ONNX, external data"
    )
    parser.add_argument("--entry", default="main", metavar="NAME", help="the function to export (default: main)")
    add_load_option(parser)
    add_value_options(parser)
    add_import_options(parser)


def run(args: argparse.Namespace) -> int:
    load_files(args)
    form = _form(args)
    check_outputs(args.output, args.constants)
    if args.constants is not None and form != "onnx":
        check_suffix(args.constants)
    with Stages() as stages:
        with stages.stage("read"):
            program = load(args.file, options=import_options(args))
        with stages.stage("check"):
            check(program)
        report(program.notes)
        mod, entry = program.module, args.entry.removeprefix("@")
        function = entry_function(mod, entry)
        needed = needed_by(function.params, post_order(function.body))
        wanted = [n for n in needed if isinstance(n, MetaRef) or args.params or args.random_params is not None]
        if args.random_params is not None:
            held = load_params(args.params) if args.params else {}
            wanted = [n for n in wanted if n not in function.params[:1] or n.name_hint in held]
        mod, values = with_values(mod, wanted, args)
        mod = InferType()(bind_params(mod, values, entry))
        with stages.stage("export"):
            exported = export(mod, form, entry, args.file, _location(args) if form == "onnx" and args.constants else "")
        if exported.constants and args.constants is None:
            count = len(exported.constants)
            raise UsageError(
                f"relay export: {count} constants have no place in Relax text; --constants FILE.npz takes them", "relay export --help"
            )
        with stages.stage("write"), together():
            if exported.external is not None:
                write_bytes(args.constants, exported.external)
            elif args.constants is not None:
                save_params(args.constants, dict(exported.constants))
            write_bytes(args.output, exported.data)
    return 0


def _location(args: argparse.Namespace) -> str:
    """Where an ONNX model finds its external data: below its own folder."""
    folder = os.path.dirname(os.path.abspath(args.output))
    location = os.path.relpath(os.path.abspath(args.constants), folder)
    if location.startswith(os.pardir) or os.path.isabs(location):
        raise UsageError(
            f"relay export: {args.constants} is not below {folder}, where an ONNX model looks for its data", "relay export --help"
        )
    return location


def _form(args: argparse.Namespace) -> str:
    """The format that the options or the file's ending name."""
    named = [f for f in args.format if f in FORMATS]
    ending = os.path.splitext(args.output)[1].lower()
    ends = next((name for name, endings in FORMATS.items() if ending in endings), None)
    if named and ends not in (None, named[-1]):
        raise UsageError(f"relay export: {args.output} ends as {ends} does, but --format says {named[-1]}", "relay export --help")
    if named:
        text = () if named[-1] == "onnx" else (".txt",)
        check_ending("export", args.output, f"--format says {named[-1]}", (*FORMATS[named[-1]], *text))
        return str(named[-1])
    if ends is not None:
        return ends
    raise UsageError(
        f"relay export: {args.output} does not end as a format does; --format onnx, stablehlo or relax", "relay export --help"
    )


__all__ = ["add_arguments", "run"]
