"""Compare two programs up to the names of bound variables, and show the first difference.

The comparison ignores comments, layout, spelling, type comments, and names of local variables and graph bindings. It
includes names of functions and types, attributes, constants to the bit, and sharing.
"""

from __future__ import annotations

import argparse

from relaylang.cli.models import FILE_HELP, add_import_options, check_unused, import_options
from relaylang.cli.program import load
from relaylang.ir import structural_diff

EPILOG = """\
examples:
  relay diff a.relay b.relay
  relay print net.relay --no-types | relay diff net.relay -
  relay diff --quiet a.relay b.relay && echo the same

exit status: 0 the same, 1 different (or a program is wrong), 2 a file cannot be read
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("left", metavar="A", help=FILE_HELP)
    parser.add_argument("right", metavar="B", help=FILE_HELP)
    parser.add_argument("-q", "--quiet", action="store_true", help="the exit status only")
    add_import_options(parser)


def run(args: argparse.Namespace) -> int:
    options = import_options(args)
    left, right = load(args.left, options=options, text_too=True), load(args.right, options=options, text_too=True)
    if not left.network and not right.network:
        check_unused(options, left.name)
    difference = structural_diff(left.node, right.node, map_free_vars=True)
    if difference is not None and not args.quiet:
        print(f"{left.name} and {right.name} differ: {difference}")
    return int(difference is not None)
