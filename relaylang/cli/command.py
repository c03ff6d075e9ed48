"""The `relay` command. Each verb is one file beside this one, imported when it is called.

Results go to stdout, diagnostics to stderr. Exit status: 0 all is well, 1 the program is wrong, 2 the call is wrong
(arguments, files, targets). Ctrl-C ends with 130, a reader that closed the pipe with 141, as a shell reports them.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import NoReturn

from relaylang.cli.usage import UsageError
from relaylang.diagnostics import Diagnostic, RelayError, define_codes, error

define_codes({"R0700": "wrong arguments", "R0900": "internal error of relaylang"})

#: Each verb, the module with its `add_arguments` and `run`, and one line of help.
VERBS: dict[str, tuple[str, str]] = {
    "check": ("relaylang.cli.check", "read programs and check their types"),
    "print": ("relaylang.cli.print", "print a program, with its types, in graph form or in A-normal form"),
    "run": ("relaylang.cli.run", "evaluate a program, interpreted or compiled"),
    "compile": ("relaylang.cli.compile", "compile a program for a CPU or an NPU"),
    "repl": ("relaylang.cli.repl", "an interactive session"),
}

EPILOG = """\
examples:
  relay check net.relay                        is the program well-typed?
  relay print net.relay --anf                  show it in A-normal form
  relay run net.relay --random-params 0 --input data=1.0
  relay compile net.relay --target c -o net.so
  relay repl net.relay

Every verb has --help. A file named - is the standard input.
"""


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaints are diagnostics."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {message}", f"{self.prog} --help")


def make_parser(verb: str | None) -> Parser:
    """The command's parser. Only the called verb's own arguments are added, so that the others cost nothing."""
    parser = Parser(
        prog="relay",
        description="The toolchain of the Relay text language.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="store_true", help="show the version and exit")
    commands = parser.add_subparsers(dest="verb", metavar="VERB", parser_class=Parser)
    for name, (module, line) in VERBS.items():
        sub = commands.add_parser(
            name, help=line, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
        )
        if name == verb:
            verb_module = importlib.import_module(module)
            sub.description = verb_module.__doc__
            verb_module.add_arguments(sub)
            sub.set_defaults(run=verb_module.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status. Never raises but for what argparse's `--help` does (SystemExit)."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        status = _run(arguments)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # The reader has what it wanted (`relay print net.relay | head`): say nothing, also not at interpreter exit.
        _close_stdout()
        return 141
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except UsageError as wrong:
        message, help_call = wrong.args
        return _say(RelayError(error("R0700", message, notes=[f"see {help_call}"])))
    except RelayError as wrong:
        return _say(wrong)
    except OSError as e:
        _close_stdout()
        return _say(RelayError(error("R0704", f"the system says: {e}")))
    except MemoryError:
        return _say(RelayError(error("R0900", "out of memory")))
    except Exception as ours:
        if os.environ.get("RELAY_TRACEBACK"):
            raise
        return _say(RelayError(_internal(ours)))


def _close_stdout() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(arguments: list[str]) -> int:
    verb = next((a for a in arguments if not a.startswith("-")), None)
    parser = make_parser(verb)
    args = parser.parse_args(arguments)
    if args.version:
        print(f"relaylang {version('relaylang')}")
        return 0
    if args.verb is None:
        parser.print_help()
        return 0
    status: int = args.run(args)
    return status


def _say(wrong: RelayError) -> int:
    from relaylang.cli.common import exit_status, report

    report(wrong.diagnostics)
    return exit_status(wrong.diagnostics)


def _internal(ours: Exception) -> Diagnostic:
    place = ours.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    at = f" ({os.path.basename(place.tb_frame.f_code.co_filename)}:{place.tb_lineno})" if place is not None else ""
    says = " ".join(str(ours).split())
    return error(
        "R0900",
        f"internal error of relaylang: {type(ours).__name__}: {says[:300]}{at}",
        notes=[
            "the program may be right; please report this with the input that caused it",
            "RELAY_TRACEBACK=1 shows the traceback",
        ],
    )
