"""Read programs and check their types.

Each file that is well-typed gets one line on stdout; everything else is said on stderr. A fragment may have free
variables and constants without values: what they leave unknown is a note.
"""

from __future__ import annotations

import argparse

from relaylang.cli.common import VERIFY_HELP, exit_status, report, verified
from relaylang.cli.models import FILE_HELP, add_import_options, import_options
from relaylang.cli.program import Program, load_checked
from relaylang.diagnostics import Diagnostic, RelayError
from relaylang.ir import Call, Expr, Function, IRModule, post_order, type_text

EPILOG = """\
examples:
  relay check net.relay
  relay check examples/*.relay --quiet
  echo 'add(1, 2)' | relay check -
  relay check wrong.relay --verify-diagnostics     against its `// expected-error@+1 {{...}}` lines

exit status: 0 every file is right, 1 some file is wrong, 2 some file could not be read
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("files", nargs="+", metavar="FILE", help=FILE_HELP)
    parser.add_argument("-q", "--quiet", action="store_true", help="say nothing about files that are right")
    parser.add_argument("--verify-diagnostics", action="store_true", help=VERIFY_HELP)
    add_import_options(parser)


def run(args: argparse.Namespace) -> int:
    said: list[Diagnostic] = []
    for path in args.files:
        if args.verify_diagnostics:
            said += verified(path, load_checked, args.quiet)
            continue
        try:
            program = load_checked(path, import_options(args))
        except RelayError as wrong:
            report(wrong.diagnostics)
            said += wrong.diagnostics
            continue
        report([n for n in program.notes if n.severity != "note" or not args.quiet])
        if not args.quiet:
            print(f"{program.name}: ok ({summary(program)})")
    return exit_status(said)


def summary(program: Program) -> str:
    """`1 function, 94 calls`, or an expression's type."""
    if isinstance(program.node, IRModule):
        functions: list[Expr] = [f for f in program.node.functions.values() if isinstance(f, Function)]
        parts = [_count(len(program.node.functions), "function")]
        if program.node.type_definitions:
            parts.append(_count(len(program.node.type_definitions), "type definition"))
        calls = sum(isinstance(n, Call) for f in functions for n in post_order(f))
        return ", ".join([*parts, _count(calls, "call")])
    calls = sum(isinstance(n, Call) for n in post_order(program.node))
    free = f", {_count(len(program.free_vars), 'free variable')}" if program.free_vars else ""
    ty = program.node.checked_type
    return f"expression of type {type_text(ty) if ty is not None else '?'}, {_count(calls, 'call')}{free}"


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"
