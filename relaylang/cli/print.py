"""Print a program with its types: unchanged or in a normal form, without loss or in TVM's style."""

from __future__ import annotations

import argparse
from typing import Any

from relaylang.cli.arguments import add_load_option, load_files
from relaylang.cli.common import add_print_options, check_program_file, check_writable, report, write_program
from relaylang.cli.models import FILE_HELP, add_import_options, import_options
from relaylang.cli.program import check, load
from relaylang.diagnostics import error
from relaylang.ir import Constant, Expr, IRModule
from relaylang.passes.normal_forms.to_a_normal_form import to_anf
from relaylang.passes.normal_forms.to_basic_block_normal_form import to_bbnf
from relaylang.passes.normal_forms.to_graph_normal_form import to_gnf
from relaylang.runtime.files import together
from relaylang.runtime.params import beside, save_params
from relaylang.syntax.metadata import constants_of
from relaylang.syntax.metadata_writer import save_metadata
from relaylang.syntax.printer import text_blocks

#: Bytes of constants that a text holds at most.
_MOST = 1_000_000

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
    parser.add_argument("file", metavar="FILE", help=FILE_HELP)
    parser.add_argument("--params", metavar="FILE", help="the constants that the text leaves out, as --constants wrote them")
    add_print_options(parser)
    add_import_options(parser)
    add_load_option(parser)


def run(args: argparse.Namespace) -> int:
    load_files(args)
    check_program_file("print", args.output)
    program = load(args.file, args.params, options=import_options(args))
    if not args.no_types:
        check(program)
    report(program.notes)
    write_printed(program.node, args)
    return 0


def write_printed(node: IRModule | Expr, args: argparse.Namespace) -> None:
    """Write the program as the printing options ask for it."""
    if args.anf:
        node = to_anf(node)  # type: ignore[type-var]
    elif args.gnf:
        node = to_gnf(node)  # type: ignore[type-var]
    elif args.bbnf:
        node = to_bbnf(node)  # type: ignore[type-var]
    header = False if args.no_header else None
    how = {"style": args.style, "show_types": not args.no_types, "show_spans": args.spans, "header": header}
    write_text_and_constants(node, args.output, args.constants, **how)


def write_text_and_constants(node: IRModule | Expr, output: str | None, constants: str | None, **how: Any) -> None:
    """Write a program's text as `astext` makes it, and its constants to the file `constants`.

    Where none is named, more than a megabyte goes to a file beside the output, with a note (R0709). Texts in
    TVM's style keep theirs.
    """
    may_move = constants is None and output not in (None, "-") and how.get("style") != "tvm"
    meta: dict[str, list[Any]] | None = {} if constants is not None or may_move else None
    blocks = text_blocks(node, meta=meta, **how)
    with together():
        large = size if meta is not None and may_move and (size := _bytes_of_constants(meta)) > _MOST else 0
        if meta is not None and (constants is not None or large):
            place = constants or beside(str(output))
            check_writable(place)
            save_params(place, constants_of(meta))
        if meta:
            blocks += ["\n#[metadata]\n", save_metadata(meta)]
        if not blocks[-1].endswith("\n"):
            blocks.append("\n")
        write_program(output, blocks)
    if large:
        title = f"the constants, {large / 1e6:.0f} MB, are in {beside(str(output))}"
        report([error("R0709", title, severity="note", notes=["relay reads them from there: keep the two files together"])])


def _bytes_of_constants(meta: dict[str, list[Any]]) -> int:
    """The size of a metadata section's constants; 0 where one is of a type that no file beside the text takes."""
    arrays = [value.data for values in meta.values() for value in values if isinstance(value, Constant)]
    fits = all(array.dtype.kind in "biuf" or array.dtype.name == "bfloat16" for array in arrays)
    return sum(array.nbytes for array in arrays) if fits else 0
