"""Draw a program's graph: as text for the terminal, for Graphviz, as SVG, or as one HTML page.

A call's box lists the parameters and constants that it takes as weights; --nodes gives each a box. The page needs no
network. Drag to pan, wheel to zoom, click for types and attributes, and press ? for keys. ⊞ unfolds a box.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

from relaylang.cli.arguments import add_load_option, load_files
from relaylang.cli.common import check_ending, check_writable, report, write_bytes, write_text
from relaylang.cli.models import FILE_HELP, add_import_options, import_options
from relaylang.cli.program import check, load
from relaylang.cli.reporting import use_color
from relaylang.cli.streams import can_show
from relaylang.cli.usage import UsageError
from relaylang.diagnostics import RelayError, did_you_mean, error
from relaylang.ir import IRModule
from relaylang.viz import Graph, as_dot, as_html, as_pdf, as_png, as_svg, as_text, difference, fold_repeats, graph_of
from relaylang.viz.paint import paint_partition, paint_profile

EPILOG = """\
examples:
  relay viz net.relay                       in the terminal
  relay viz net.relay -o net.html           a page
  relay viz net.relay -o net.svg --expand   a picture with everything unfolded
  relay viz old.relay new.relay -o diff.html   what the second program adds, removes and changes
  relay run net.relay --executor cpu --random-params 0 --profile run.json && relay viz net.relay --profile run.json -o hot.html
  relay viz net.relay --as dot | dot -Tpng > net.png
  relay opt net.relay --passes SimplifyInference,FuseOps | relay viz - --expand
"""

#: Columns of text that goes to no terminal.
_WIDTH = 80
_FORMATS = {".html": "html", ".htm": "html", ".svg": "svg", ".png": "png", ".pdf": "pdf", ".dot": "dot", ".gv": "dot", ".txt": "text"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help=FILE_HELP)
    parser.add_argument("later", metavar="LATER", nargs="?", help="draw the difference from FILE to this program")
    forms = ["text", "dot", "svg", "png", "pdf", "html"]
    parser.add_argument("--as", dest="form", choices=forms, help="default: by the output's name, else text")
    parser.add_argument("-o", "--output", metavar="FILE", help="write to FILE instead of stdout")
    parser.add_argument("--entry", metavar="NAME", help="only this function")
    parser.add_argument("--expand", action="store_true", help="show what is inside functions and branches (not in html)")
    parser.add_argument("--nodes", action="store_true", help="draw parameters, constants and projections as boxes (not in text)")
    parser.add_argument("--no-repeats", action="store_true", help="do not fold equal parts into one box (text never does)")
    parser.add_argument("--profile", metavar="FILE", help="paint times, from a file of relay run --profile")
    parser.add_argument(
        "--partition-report",
        metavar="FILE",
        help="paint targets and reasons of refusal, from a file of relay partition --report-format json",
    )
    parser.add_argument("--width", type=int, metavar="COLUMNS", help="cut lines of text (default: the terminal's, or 80)")
    parser.add_argument("--ascii", action="store_true", help="draw text without box characters")
    parser.add_argument("--no-types", action="store_true", help="do not check types, also for programs that are wrong")
    add_import_options(parser)
    add_load_option(parser)


def run(args: argparse.Namespace) -> int:
    load_files(args)
    check_writable(args.output)
    suffix = Path(args.output or "").suffix.lower()
    _check_suffix(args, suffix)
    name, graph = _graph(args.file, args)
    if args.later is not None:
        later, changed = _graph(args.later, args)
        name, graph = f"{name} → {later}", difference(graph, changed)
    for path, paint in ((args.profile, paint_profile), (args.partition_report, paint_partition)):
        if path is not None and (said := paint(graph, path)):
            report([error("R0771", said, severity="note")])
    form = args.form or _FORMATS.get(suffix, "text")
    if form in ("png", "pdf") and args.output is None:
        raise UsageError(f"relay viz: a {form.upper()} picture needs -o FILE", "relay viz --help")
    if form != "text" and not args.no_repeats:
        graph = fold_repeats(graph)
    if form in ("png", "pdf"):
        write_bytes(args.output, (as_png if form == "png" else as_pdf)(graph, args.expand, args.nodes))
    else:
        write_text(args.output, _drawn(graph, name, form, args))
    return 0


def _check_suffix(args: argparse.Namespace, suffix: str) -> None:
    """Refuse a file whose suffix names no format, or another format than `--as`."""
    if args.form is not None:
        endings = [ending for ending, form in _FORMATS.items() if args.form in (form, "dot" if form == "text" else form)]
        check_ending("viz", args.output, f"--as {args.form} says what it is", endings)
    elif suffix not in ("", *_FORMATS):
        problem = f"{args.output} has a suffix that names no format; there are {', '.join(_FORMATS)}"
        raise UsageError(f"relay viz: {problem}", "relay viz --help")


def _drawn(graph: Graph, name: str, form: str, args: argparse.Namespace) -> str:
    """The graph in a format of text. Text for a terminal fits it."""
    if form == "text":
        here = args.output is None
        width = args.width or (shutil.get_terminal_size().columns if here and sys.stdout.isatty() else _WIDTH)
        plain = args.ascii or (here and not can_show("─│●×"))
        return as_text(graph, width, args.expand, plain, here and use_color(sys.stdout))
    if form == "html":
        return as_html(graph, name, args.nodes)
    return (as_dot if form == "dot" else as_svg)(graph, args.expand, args.nodes)


def _graph(file: str, args: argparse.Namespace) -> tuple[str, Graph]:
    """The name and the graph of a program."""
    program = load(file, options=import_options(args))
    if not args.no_types:
        try:
            check(program)
        except RelayError as wrong:
            *others, last = wrong.diagnostics
            hint = "`relay viz --no-types` draws the program all the same"
            raise RelayError([*others, replace(last, notes=(*last.notes, hint))]) from None
    report(program.notes)
    node = program.node
    if args.entry is not None:
        node = _only(node, args.entry.removeprefix("@"))
    return os.path.basename(program.name), graph_of(node)


def _only(node: object, name: str) -> IRModule:
    if not isinstance(node, IRModule) or name not in node:
        known = [g.name_hint for g in node.functions] if isinstance(node, IRModule) else []
        near = did_you_mean(name, known)
        hint = f"; did you mean @{near}?" if near else ""
        raise UsageError(f"relay viz: there is no function @{name}{hint}", "relay viz --help")
    return IRModule({node.get_global_var(name): node[name]}, {}, node.attrs)
