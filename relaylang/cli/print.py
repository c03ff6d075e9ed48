"""Print a program with its types: unchanged or in a normal form, without loss or in TVM's style."""

from __future__ import annotations

import argparse
from typing import Any

from relaylang.cli.common import add_print_options, check_writable, report, write_program
from relaylang.cli.models import FILE_HELP, add_import_options, import_options
from relaylang.cli.program import check, load
from relaylang.ir import Expr, IRModule
from relaylang.passes.normal_forms.to_a_normal_form import to_anf
from relaylang.passes.normal_forms.to_basic_block_normal_form import to_bbnf
from relaylang.passes.normal_forms.to_graph_normal_form import to_gnf
from relaylang.runtime.params import save_params
from relaylang.syntax import astext
from relaylang.syntax.metadata import constants_of
from relaylang.syntax.metadata_writer import save_metadata

EPILOG = """\
examples:
  relay print net.relay                     with every type
  relay print net.relay --anf --no-types
  relay print net.relay --style tvm -o net.tvm.relay
  relay print net.relay --constants net.npz -o small.relay
  relay print small.relay --params net.npz
  cat net.relay | relay print -
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("file", metavar="FILE", help=FILE_HELP)
    parser.add_argument("--params", metavar="FILE", help="the constants that the text leaves out, as --constants wrote them")
    add_print_options(parser)
    add_import_options(parser)


def run(args: argparse.Namespace) -> int:
    check_writable(args.output)
    program = load(args.file, args.params, options=import_options(args))
    if not args.no_types:
        check(program)
    report(program.notes)
    write_program(args.output, printed(program.node, args))
    return 0


def printed(node: IRModule | Expr, args: argparse.Namespace) -> str:
    """The program as the printing options ask for it, with a line end."""
    if args.anf:
        node = to_anf(node)  # type: ignore[type-var]
    elif args.gnf:
        node = to_gnf(node)  # type: ignore[type-var]
    elif args.bbnf:
        node = to_bbnf(node)  # type: ignore[type-var]
    meta: dict[str, list[Any]] | None = None if args.constants is None else {}
    header = False if args.no_header else None
    text = astext(node, style=args.style, show_types=not args.no_types, show_spans=args.spans, meta=meta, header=header)
    if meta is not None:
        check_writable(args.constants)
        save_params(args.constants, constants_of(meta))
        if meta:
            text += "\n#[metadata]\n" + save_metadata(meta)
    return text if text.endswith("\n") else text + "\n"
