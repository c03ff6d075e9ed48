"""Print a program: with its types, as it stands or in a normal form, without loss or as TVM printed it."""

from __future__ import annotations

import argparse

from relaylang.cli.common import add_print_options, check_writable, report, write_text
from relaylang.cli.program import check, load
from relaylang.ir import Expr, IRModule
from relaylang.passes.to_anf import to_anf
from relaylang.passes.to_bbnf import to_bbnf
from relaylang.passes.to_gnf import to_gnf
from relaylang.syntax import astext

EPILOG = """\
examples:
  relay print net.relay                     with every type
  relay print net.relay --anf --no-types
  relay print net.relay --style tvm -o net.tvm.relay
  cat net.relay | relay print -
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("file", metavar="FILE", help="Relay text; - is the standard input")
    add_print_options(parser)


def run(args: argparse.Namespace) -> int:
    check_writable(args.output)
    program = load(args.file)
    if not args.no_types:
        check(program)
    report(program.notes)
    write_text(args.output, printed(program.node, args))
    return 0


def printed(node: IRModule | Expr, args: argparse.Namespace) -> str:
    """The program as the printing options ask for it, with a line end."""
    if args.anf:
        node = to_anf(node)  # type: ignore[type-var]
    elif args.gnf:
        node = to_gnf(node)  # type: ignore[type-var]
    elif args.bbnf:
        node = to_bbnf(node)  # type: ignore[type-var]
    text = astext(node, style=args.style, show_types=not args.no_types)
    return text if text.endswith("\n") else text + "\n"
