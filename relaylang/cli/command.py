"""The `relay` command. Each verb is one file beside this one, imported when it is called.

Results go to stdout, diagnostics to stderr. Exit status: 0 all is well, 1 the program is wrong, 2 the call is wrong
(arguments, files, targets). Ctrl-C ends with 130, a reader that closed the pipe with 141, as a shell reports them.
"""

from __future__ import annotations

import argparse
import errno
import functools
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from relaylang._start import raise_again
from relaylang.cli.reporting import add_common_options, begin, end, report
from relaylang.cli.streams import close_stdout, prepare
from relaylang.cli.usage import UsageError, in_words
from relaylang.diagnostics import RelayError, did_you_mean, error
from relaylang.diagnostics.internal import internal
from relaylang.runtime.text import reason

#: Each verb, the module with its `add_arguments` and `run`, and one line of help.
VERBS: dict[str, tuple[str, str]] = {
    "check": ("relaylang.cli.check", "read programs and check their types"),
    "print": ("relaylang.cli.print", "print a program, with its types, in graph form or in A-normal form"),
    "fmt": ("relaylang.cli.fmt", "write programs in the canonical form of the text"),
    "diff": ("relaylang.cli.diff", "say whether two programs are the same, and where they first differ"),
    "run": ("relaylang.cli.run", "evaluate a program, interpreted or compiled"),
    "compile": ("relaylang.cli.compile", "compile a program for a CPU or an NPU"),
    "tune": ("relaylang.cli.tune", "search the fastest schedules of a program's kernels, on this machine"),
    "disasm": ("relaylang.cli.disasm", "print a program compiled for the VM, instruction by instruction"),
    "opt": ("relaylang.cli.opt", "run passes over a program and print the result"),
    "partition": ("relaylang.cli.partition", "carve out what an accelerator takes, and say why the rest stays"),
    "quantize": ("relaylang.cli.quantize", "turn a float network into one of whole numbers, with scales from data"),
    "import": ("relaylang.cli.import_", "turn a network (ONNX, PyTorch, TensorFlow, StableHLO, ...) into Relay text"),
    "export": ("relaylang.cli.export", "turn a program into an ONNX model, StableHLO or Relax text"),
    "match": ("relaylang.cli.match", "find a pattern in a program"),
    "viz": ("relaylang.cli.viz", "draw a program's graph: text, Graphviz, SVG, or a page"),
    "test": ("relaylang.cli.test", "run test files with RUN and CHECK lines"),
    "tvm": ("relaylang.cli.tvm", "run a script that was written for tvm.relay"),
    "repl": ("relaylang.cli.repl", "an interactive session"),
    "explain": ("relaylang.cli.explain", "what an error's code means, with an example and its repair"),
    "lsp": ("relaylang.cli.lsp", "the language server for editors"),
    "doctor": ("relaylang.cli.doctor", "what works on this machine, and how to get what is missing"),
    "completion": ("relaylang.cli.completion", "write a completion script for bash, zsh or fish"),
}

EPILOG = """\
examples:
  relay check net.relay                        is the program well-typed?
  relay print net.relay --anf                  show it in A-normal form
  relay run net.relay --random-params 0 --input data=image.npy
  relay compile net.relay --target c -o net.so
  relay repl net.relay

Every verb has --help. A file named - is the standard input.
"""


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaints are diagnostics."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {in_words(message)}", f"{self.prog} --help")

    def parse_known_args(self, args=None, namespace=None):  # type: ignore[no-untyped-def, override]
        """As in argparse, but the verb reports unknown options, and suggests the nearest one."""
        known, unknown = super().parse_known_args(args, namespace)
        if unknown and " " in self.prog:
            name = unknown[0].partition("=")[0]
            near = did_you_mean(name, self._option_string_actions) if name.startswith("-") else None
            what = f"there is no option {name}" if name.startswith("-") else f"`{name}` is one argument too many"
            self.error(what + (f"; did you mean {near}?" if near else ""))
        return known, unknown


@functools.cache
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
        sub = commands.add_parser(name, help=line, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)
        if name == verb:
            verb_module = importlib.import_module(module)
            sub.description, sub.epilog = verb_module.__doc__, verb_module.EPILOG
            verb_module.add_arguments(sub)
            add_common_options(sub)
            sub.set_defaults(run=verb_module.run, verbs=VERBS, parser_of=make_parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """As `relaylang.cli.main`, but for Ctrl-C."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    prepare()
    begin(arguments)
    status = 2
    try:
        status = guarded(lambda: _run(arguments))
    finally:
        try:
            end(status)
        except OSError as e:
            begin(())
            status = _say(RelayError(error("R0704", f"cannot write the report: {reason(e)}")))
    return status


def guarded(call: Callable[[], int]) -> int:
    """The exit status of a call; everything that can go wrong in it is said."""
    try:
        status = call()
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        # The reader closed the pipe (`relay print net.relay | head`): write no error, also not at interpreter exit.
        close_stdout()
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
        close_stdout()
        return _say(RelayError(error("R0704", _system(e))))
    except MemoryError:
        return _say(RelayError(error("R0901", "there is not enough memory to go on")))
    except Exception as ours:
        if os.environ.get("RELAY_TRACEBACK"):
            raise
        return _say(RelayError(internal(ours)))


def _system(e: OSError) -> str:
    """The system's reason and the file of an `OSError`."""
    if e.errno == errno.EBADF and e.filename is None:
        return "the standard input or output is closed"
    return f"the system says: {reason(e)}" + (f": {e.filename}" if e.filename is not None else "")


def _run(arguments: list[str]) -> int:
    verb = next((a for a in arguments if not a.startswith("-")), None)
    if verb is not None and verb not in VERBS:
        near = did_you_mean(verb, VERBS)
        hint = f"; did you mean `relay {near}`?" if near else f"; there are {', '.join(VERBS)}"
        raise UsageError(f"relay has no verb `{verb}`{hint}", "relay --help")
    parser = make_parser(verb)
    args = parser.parse_args(arguments)
    if args.version:
        from importlib.metadata import version  # takes a tenth of the time of `relay check`

        print(f"relaylang {version('relaylang')}")
        return 0
    if args.verb is None:
        parser.print_help()
        return 0
    raise_again()  # all is imported
    status: int = args.run(args)
    return status


def _say(wrong: RelayError) -> int:
    from relaylang.cli.common import exit_status

    report(wrong.diagnostics)
    return exit_status(wrong.diagnostics)
