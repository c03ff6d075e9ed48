"""The language server for editors, over stdin and stdout.

An editor starts it. It gives diagnostics while typing, hover, definitions, references, rename, completion and signatures.
It also gives symbols, colours, folding, formatting, repairs, inferred types and lenses. The page docs/editors.md explains the
set-up of VS Code, Vim and Emacs.
"""

from __future__ import annotations

import argparse
import importlib
import os

from relaylang.cli.arguments import add_load_option, load_files
from relaylang.diagnostics import RelayError, error

EPILOG = """\
examples:
  relay lsp                                 (an editor calls this)
  relay lsp --tcp 127.0.0.1:2087            for an editor that connects
  relay lsp --load hinge.kernel             with operators of your own
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--stdio", action="store_true", help="speak through stdin and stdout (the default)")
    add_load_option(parser)
    parser.add_argument("--tcp", metavar="HOST:PORT", help="listen there instead")


def run(args: argparse.Namespace) -> int:
    try:
        importlib.import_module("pygls.lsp.server")
    except ImportError:
        notes = ["pip install 'relaylang[lsp]'"]
        raise RelayError(error("R0763", "relay lsp needs the package pygls", notes=notes)) from None
    load_files(args)
    server = importlib.import_module("relaylang.lsp.server").make_server()
    if args.tcp is None:
        # The server closes its own stream, and nothing else may write there.
        with open(os.dup(0), "rb") as stdin, open(os.dup(1), "wb") as stdout:
            os.dup2(2, 1)
            server.start_io(importlib.import_module("relaylang.lsp.wire").Headers(stdin), stdout)
        return int(server.exit_code)
    host, _, port = args.tcp.rpartition(":")
    if not port.isdigit() or int(port) > 65535:
        raise RelayError(error("R0705", f"--tcp wants HOST:PORT, not {args.tcp}"))
    server.start_tcp(host or "127.0.0.1", int(port))
    return 0
