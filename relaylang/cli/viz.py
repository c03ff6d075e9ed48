"""Draw a program's graph: as text for the terminal, for Graphviz, as SVG, or as one HTML page.

The page needs no network. Drag to pan, wheel to zoom, search, and click for types and attributes. ⊞ unfolds fused operators.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path

from relaylang.cli.common import check_writable, report, write_text
from relaylang.cli.models import FILE_HELP, add_import_options, import_options
from relaylang.cli.program import check, load
from relaylang.cli.streams import can_show
from relaylang.cli.usage import UsageError
from relaylang.diagnostics import did_you_mean
from relaylang.ir import IRModule
from relaylang.viz import as_dot, as_html, as_svg, as_text, graph_of

EPILOG = """\
examples:
  relay viz net.relay                       in the terminal
  relay viz net.relay -o net.html           a page
  relay viz net.relay -o net.svg            through Graphviz
  relay viz net.relay --as dot | dot -Tpng > net.png
  relay opt net.relay --passes SimplifyInference,FuseOps | relay viz - --expand
"""

_FORMATS = {".html": "html", ".htm": "html", ".svg": "svg", ".dot": "dot", ".gv": "dot", ".txt": "text"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("file", metavar="FILE", help=FILE_HELP)
    forms = ["text", "dot", "svg", "html"]
    parser.add_argument("--as", dest="form", choices=forms, help="default: by the output's name, else text")
    parser.add_argument("-o", "--output", metavar="FILE", help="write to FILE instead of stdout")
    parser.add_argument("--entry", metavar="NAME", help="only this function")
    parser.add_argument("--expand", action="store_true", help="show the calls inside fused functions (text, dot, svg)")
    parser.add_argument("--width", type=int, metavar="COLUMNS", help="cut lines of text (default: the terminal's width)")
    parser.add_argument("--ascii", action="store_true", help="draw text without box characters")
    parser.add_argument("--no-types", action="store_true", help="do not check types, also for programs that are wrong")
    add_import_options(parser)


def run(args: argparse.Namespace) -> int:
    check_writable(args.output)
    program = load(args.file, options=import_options(args))
    if not args.no_types:
        check(program)
    report(program.notes)
    node = program.node
    if args.entry is not None:
        node = _only(node, args.entry.removeprefix("@"))
    graph = graph_of(node)
    form = args.form or _FORMATS.get(Path(args.output or "").suffix.lower(), "text")
    if form == "text":
        terminal = args.output is None and sys.stdout.isatty()
        width = args.width or (shutil.get_terminal_size().columns if terminal else 1 << 30)
        text = as_text(graph, width, args.expand, args.ascii or (args.output is None and not can_show("─│┌⊞")))
    elif form == "dot":
        text = as_dot(graph, args.expand)
    elif form == "svg":
        text = as_svg(graph, args.expand)
    else:
        text = as_html(graph, os.path.basename(program.name))
    write_text(args.output, text)
    return 0


def _only(node: object, name: str) -> IRModule:
    if not isinstance(node, IRModule) or name not in node:
        known = [g.name_hint for g in node.functions] if isinstance(node, IRModule) else []
        near = did_you_mean(name, known)
        hint = f"; did you mean @{near}?" if near else ""
        raise UsageError(f"relay viz: there is no function @{name}{hint}", "relay viz --help")
    return IRModule({node.get_global_var(name): node[name]}, {}, node.attrs)
