"""Find a pattern in a program and show each match at its place.

Patterns are written as the programs that they match: `_` is anything, `const` a constant, `...` any further arguments.
"""

from __future__ import annotations

import argparse
import sys

from relaylang.cli.arguments import add_load_option, load_files
from relaylang.cli.common import report, use_color
from relaylang.cli.models import FILE_HELP, add_import_options, import_options
from relaylang.cli.program import check, load
from relaylang.cli.reporting import results_format
from relaylang.diagnostics import Diagnostic, error, render
from relaylang.diagnostics.export import json_lines
from relaylang.ir import Call, Expr, Function, IRModule, Tuple, TupleGetItem
from relaylang.ops.record import Op
from relaylang.patterns import DFPattern, Explanation, Graph, explain_match, find_match, parse_pattern
from relaylang.patterns import notation as pattern_language
from relaylang.patterns.language import root_operators
from relaylang.patterns.mismatch import describe, progress

EPILOG = (
    """\
examples:
  relay match 'qnn.conv2d(_, const, ...)' net.relay
  relay match 'nn.relu?(nn.bias_add(nn.conv2d(_, _, groups=1), _))' net.relay --explain
  relay match 'clip(qnn.requantize(...))' net.relay --count

"""
    + (pattern_language.__doc__ or "").split("\n\n", 2)[-1]
    + """
With --format json each match is an object on a line of the standard output; with sarif the log holds the matches.

exit status: 0 something matches, 1 nothing does, 2 the pattern or the file is wrong
"""
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pattern", metavar="PATTERN", help="what to look for")
    parser.add_argument("file", metavar="FILE", help=FILE_HELP)
    parser.add_argument("--count", action="store_true", help="say how many matches there are and nothing else")
    parser.add_argument("--explain", action="store_true", help="say where the nearest attempts failed, too")
    parser.add_argument("--limit", type=int, default=100, metavar="N", help="show so many matches (100)")
    add_import_options(parser)
    add_load_option(parser)


def run(args: argparse.Namespace) -> int:
    load_files(args)
    pattern = parse_pattern(args.pattern)
    program = load(args.file, options=import_options(args))
    check(program)
    report(program.notes)
    roots, failed = _search(pattern, program.module, args.explain)
    status = 0 if roots else 1
    if args.count:
        print(len(roots))
        return status
    matches: list[Diagnostic] = []
    for node, bindings in roots[: args.limit]:
        others = {id(e): e for e in bindings.values() if e is not node and not isinstance(e, Op)}
        labels = [(e.span, describe(e)) for e in others.values() if isinstance(e, (Call, Tuple, TupleGetItem))]
        matches.append(error("R0526", describe(node), node.span, "the match", also=labels, severity="note"))
    nearest = sorted((e for e in failed if progress(e) or not roots), key=progress, reverse=True)[:3]
    attempts = [d for e in nearest if (d := e.diagnostic()) is not None]
    if results_format() == "json":
        print(json_lines([*matches, *attempts]), end="")
        return status
    if results_format() == "sarif":
        report([*matches, *attempts])
        return status
    color = use_color(sys.stdout)
    for match in matches:
        print(render(match, color))
    if len(roots) > args.limit:
        print(f"... and {len(roots) - args.limit} more")
    for attempt in attempts:
        print(render(attempt, color))
    if not roots:
        print(f"nothing matches {pattern}")
    return status


def _search(pattern: DFPattern, module: IRModule, explain: bool) -> tuple[list[tuple[Expr, dict[DFPattern, Expr]]], list[Explanation]]:
    """The matches in a module's functions, each as its root and its bindings; with `explain` the attempts that failed, too."""
    matches: list[tuple[Expr, dict[DFPattern, Expr]]] = []
    failed: list[Explanation] = []
    operators = root_operators(pattern)
    for root in [f for f in module.functions.values() if isinstance(f, Function) and f.body is not None]:
        graph = Graph(root)
        for node in graph.order:
            if operators is not None and not isinstance(node, Call):
                continue
            match = find_match(pattern, node, graph)
            if match is not None:
                matches.append((node, match.bindings))
            elif explain and isinstance(node, (Call, Tuple, TupleGetItem, Function)):
                failed.append(explain_match(pattern, node, graph))
    return matches, failed
