"""Run a script that was written for tvm.relay; `import tvm` is relaylang in it, without or beside an installed TVM.

docs/tvm.md lists what such a script finds.
"""

from __future__ import annotations

import argparse

from relaylang.cli.usage import UsageError
from relaylang.services import service

EPILOG = """\
examples:
  relay tvm tune_conv.py --layers 18        run a script with its arguments
  relay tvm -m package.module               run a module
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-m", dest="module", metavar="MODULE", help="run a module, as python -m does, in place of a script")
    parser.add_argument("script", nargs=argparse.REMAINDER, metavar="SCRIPT ...", help="the script, and its arguments")


def run(args: argparse.Namespace) -> int:
    if args.module is None and not args.script:
        raise UsageError("relay tvm: it needs a script, or -m MODULE", "relay tvm --help")
    arguments = args.script if args.module is None else [args.module, *args.script]
    status: int = service("tvm script")(arguments, args.module is not None)
    return status
