"""Read programs and check their types.

Each file that is well-typed gets one line on stdout; everything else is said on stderr. A fragment may have free
variables and constants without values: what they leave unknown is a note. A folder stands for the .relay files below it.

--lint also warns of unused names, calls that cancel, clauses that no value reaches, and more, all in right programs.
"""

from __future__ import annotations

import argparse

from relaylang.cli.arguments import add_load_option, load_files
from relaylang.cli.common import VERIFY_HELP, exit_status, files_below, report, verified
from relaylang.cli.models import FILE_HELP, add_import_options, import_options
from relaylang.cli.program import Program, load_checked
from relaylang.cli.usage import UsageError
from relaylang.diagnostics import RelayError
from relaylang.ir import Call, Expr, Function, IRModule, post_order, type_text

EPILOG = """\
examples:
  relay check net.relay
  relay check examples/*.relay --quiet
  echo 'add(1, 2)' | relay check -
  relay check wrong.relay --verify-diagnostics     against its `// expected-error@+1 {{...}}` lines
  relay check --lint models/                       every .relay file below the folder
  relay check --fix net.relay --ignore R1004       make the repairs that lints suggest

`// relay: ignore[R1001]` silences a lint in its line. [tool.relay] in pyproject.toml has `select` and `ignore`.

exit status: 0 every file is right, 1 some file is wrong or a lint has findings, 2 some file could not be read
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help=f"{FILE_HELP}; or a folder")
    parser.add_argument("-q", "--quiet", action="store_true", help="say nothing about files that are right")
    parser.add_argument("--verify-diagnostics", action="store_true", help=VERIFY_HELP)
    add_load_option(parser)
    lints = parser.add_argument_group("lints")
    lints.add_argument("--lint", action="store_true", help="also warn of doubtful parts of right programs")
    lints.add_argument("--fix", action="store_true", help="make the repairs that lints suggest, in the files; implies --lint")
    lints.add_argument("--select", metavar="CODES", help="only these lints: R1001,R1002; R10 stands for all (default)")
    lints.add_argument("--ignore", metavar="CODES", help="not these lints")
    add_import_options(parser)


def _check_options(args: argparse.Namespace) -> None:
    """Refuse options that have no meaning together."""
    wanted = [name for name in ("fix", "select", "ignore") if getattr(args, name)]
    if args.verify_diagnostics and (args.lint or wanted):
        raise UsageError("relay check: lints have no --verify-diagnostics", "relay check --help")
    if (args.select or args.ignore) and not (args.lint or args.fix):
        raise UsageError(f"relay check: --{wanted[0]} is about lints: add --lint", "relay check --help")
    if args.fix and "-" in args.files:
        raise UsageError("relay check: the standard input cannot be repaired with --fix", "relay check --help")


def run(args: argparse.Namespace) -> int:
    _check_options(args)
    load_files(args)
    paths, said = files_below(args.files)
    report(said)
    findings = 0
    for path in paths:
        if args.verify_diagnostics:
            said += verified(path, load_checked, args.quiet)
            continue
        try:
            program = load_checked(path, import_options(args))
            reported = []
            if args.lint or args.fix:
                from relaylang.cli.linting import linted

                reported = linted(program, path, args)
        except RelayError as wrong:
            report(wrong.diagnostics)
            said += wrong.diagnostics
            continue
        report([n for n in program.notes if n.severity != "note" or not args.quiet])
        report(reported)
        findings += len(reported)
        if not args.quiet:
            count = f"; {_count(len(reported), 'finding')}" if reported else ""
            print(f"{program.name}: ok ({summary(program)}{count})")
    return exit_status(said) or int(findings > 0)


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
