"""Write Relay text in its canonical form.

Names, comments, the order of statements and single blank lines stay. The documented dialect becomes canonical: `data`,
`case`, bare variables, `#` comments, missing semicolons. A module gets its version header; the metadata section stays.
The result is the same program, and formatting it again changes nothing.

The result goes to stdout unless an option says otherwise. A folder stands for the .relay files below it.
"""

from __future__ import annotations

import argparse
import difflib
import sys

from relaylang.cli.common import exit_status, files_below, report, use_color, write_program, write_text
from relaylang.cli.usage import UsageError
from relaylang.diagnostics import RelayError
from relaylang.ir import IRModule
from relaylang.runtime.text import read_bytes, read_text
from relaylang.stdlib.library import IMPORT, import_all
from relaylang.syntax.format import format_text

#: Marks the comment that stands for an import: a character for private use.
_MARK = "\ue000"

EPILOG = """\
examples:
  relay fmt net.relay                   the canonical form, to stdout
  relay fmt --write models/ net.relay   change the files that differ
  relay fmt --check .                   for continuous integration: name the files that differ
  relay fmt --diff net.relay            show what would change
  cat net.relay | relay fmt -

exit status: 0 all is well, 1 a program is wrong (or, with --check, a file differs), 2 a file cannot be read or written
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="Relay text, or a folder; - is the standard input")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("-w", "--write", action="store_true", help="write the files that differ, and name them")
    what.add_argument("--check", action="store_true", help="name the files that differ and end with 1; change nothing")
    parser.add_argument("--diff", action="store_true", help="show what changes, as a unified diff")


def run(args: argparse.Namespace) -> int:
    paths, said = files_below(args.files)
    report(said)
    if len(paths) != 1 or paths != args.files:
        if not (args.write or args.check or args.diff):
            raise UsageError("relay fmt: several files are formatted with --write, --check or --diff", "relay fmt --help")
    if args.write and "-" in paths:
        raise UsageError("relay fmt: the standard input cannot be written with --write", "relay fmt --help")
    changed = 0
    for path in paths:
        try:
            changed += one_file(path, args)
        except RelayError as wrong:
            report(wrong.diagnostics)
            said += wrong.diagnostics
    return exit_status(said) or int(bool(changed) and args.check)


def one_file(path: str, args: argparse.Namespace) -> bool:
    """Format one file as the options ask for it. Returns whether it differs from its canonical form."""
    source = read_text(path)
    canonical = formatted(source.text, source.name)
    old = source.text if path == "-" else read_bytes(path).decode("utf-8")
    differs = canonical != old
    if args.diff:
        if differs:
            changes = difflib.unified_diff(old.splitlines(True), canonical.splitlines(True), source.name, f"{source.name} (formatted)")
            lines = [line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in changes]
            sys.stdout.writelines(map(_painted, lines) if use_color(sys.stdout) else lines)
    elif args.check or args.write:
        if differs:
            print(source.name)
    else:
        write_program(None, [canonical])
    if args.write and differs:
        write_text(path, canonical)
    return differs


def formatted(text: str, name: str) -> str:
    """The canonical form of a text that may import libraries; to the formatter an import is a comment."""
    known = IRModule()
    if not import_all(known, text, name):
        return format_text(text, name)
    marked = IMPORT.sub(lambda match: f'//{_MARK}import "{match[1]}";', text)
    return format_text(marked, name, known).replace(f"//{_MARK}", "")


def _painted(line: str) -> str:
    """A line of a diff in a terminal's colours."""
    code = "1" if line.startswith(("---", "+++")) else {"-": "31", "+": "32", "@": "36"}.get(line[0])
    end = "\n" * line.endswith("\n")
    return f"\x1b[{code}m{line.removesuffix(end)}\x1b[0m{end}" if code else line
