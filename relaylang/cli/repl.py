"""An interactive session. Definitions stay, an expression shows its value and type; :help says more.

With a standard input that is not a terminal, the input is run as a script.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import version

from relaylang.cli.arguments import add_load_option, load_files
from relaylang.cli.common import use_color
from relaylang.cli.limits import Limits, add_limit_options
from relaylang.cli.streams import can_show
from relaylang.diagnostics import RelayError, error
from relaylang.repl.app import Shell, run_script, run_terminal
from relaylang.repl.pictures import Style
from relaylang.repl.session import Session

EPILOG = """\
examples:
  relay repl
  relay repl net.relay                      with the file's definitions
  echo 'add(1, 2)' | relay repl             run a script
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_limit_options(parser, "an input")
    add_load_option(parser)
    parser.add_argument("file", nargs="?", metavar="FILE", help="Relay text whose definitions the session begins with")


def run(args: argparse.Namespace) -> int:
    load_files(args)
    session = Session()
    session.style = Style(100, plain=not can_show("▀▁░"))
    limits = Limits(args)
    session.memory_limit, session.time_limit = limits.memory, limits.seconds
    terminal = sys.stdin.isatty() and sys.stdout.isatty()
    shell = Shell(session, sys.stdout, sys.stderr, use_color(sys.stderr))
    if args.file is not None:
        shown = session.load(args.file)
        if terminal:
            print(shown)
    if terminal:
        wide = shutil.get_terminal_size().columns >= 60
        print(f"relaylang {version('relaylang')}" + ("   :help for help, Ctrl-D to leave" if wide else ""))
        run_terminal(shell, use_color(sys.stdout))
        return 0
    run_script(shell, _lines())
    return 1 if shell.failed else 0


def _lines() -> Iterator[str]:
    """The standard input's lines. Raises `RelayError` where one is no text."""
    for number, line in enumerate(sys.stdin.buffer, 1):
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError:
            raise RelayError(error("R0003", f"<stdin>: line {number} is not UTF-8")) from None
