"""Shared by the verbs: reading programs, showing diagnostics, writing results, the options of every printing verb."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from relaylang.cli.reporting import collecting
from relaylang.cli.reporting import report as report
from relaylang.cli.reporting import use_color as use_color
from relaylang.cli.usage import UsageError
from relaylang.diagnostics import Diagnostic, RelayError, error
from relaylang.diagnostics.source import SourceFile
from relaylang.runtime.files import atomic_path
from relaylang.runtime.text import reason

#: Codes of a wrong call beside the command line's own: files that cannot be read, the target string.
_CALL_CODES = frozenset(
    {"R0001", "R0804", "R0013", "R0014", "R0501", "R0505", "R0507", "R0508", "R0512", "R0513", "R0525", "R0601", "R0602"}
)

#: Failed expectations are said in the codes of the command line, and are the file's fault.
_FAILED = frozenset({"R0760", "R0761", "R0762"})


def exit_status(diagnostics: Iterable[Diagnostic]) -> int:
    """0 without errors, 2 where the call is wrong, 1 where the program is."""
    codes = [d.code for d in diagnostics if d.severity == "error"]
    if any(c in _CALL_CODES or (c.startswith("R07") and c not in _FAILED) for c in codes):
        return 2
    return 1 if codes else 0


def write_text(path: str | None, text: str | Iterable[str]) -> None:
    """Write a result, or its pieces, to a file, whole or not at all, or to stdout where no file is named."""
    pieces = [text] if isinstance(text, str) else text
    if path is None or path == "-":
        sys.stdout.writelines(pieces)
        sys.stdout.flush()
    else:
        _write(path, (piece.encode("utf-8") for piece in pieces))


def write_program(path: str | None, pieces: Iterable[str]) -> None:
    """Write the pieces of a Relay text as `write_text` does, on a terminal with colours."""
    if path in (None, "-") and use_color(sys.stdout):
        from relaylang.repl.notebook import coloured  # most calls write no program to a terminal

        pieces = [coloured("".join(pieces))]
    write_text(path, pieces)


def write_bytes(path: str, data: bytes) -> None:
    """Write a file, whole or not at all; `-` is the standard output."""
    if path == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    else:
        _write(path, [data])


def _write(path: str, pieces: Iterable[bytes]) -> None:
    check_writable(path)
    try:
        with atomic_path(path) as temporary, temporary.open("wb") as file:
            file.writelines(pieces)
    except OSError as e:
        raise RelayError(error("R0704", f"cannot write {path}: {reason(e)}")) from None


def check_writable(path: str | None) -> None:
    """Say now, before long work, that a result could not be written."""
    if path is None or path == "-":
        return
    target = Path(path)
    folder = target.parent
    if target.is_dir():
        problem = "it is a directory"
    elif target.exists() and not target.is_file():
        return
    elif not folder.is_dir():
        problem = f"there is no directory {folder}"
    elif not os.access(folder, os.W_OK):
        problem = f"the directory {folder} is not writable"
    else:
        return
    raise RelayError(error("R0704", f"cannot write {path}: {problem}"))


#: Endings that name a format: what they hold, by the endings.
PROGRAM, COMPILED = (".relay", ".rly"), (".so", ".dll", ".dylib", ".tar", ".vm")
_ENDINGS = frozenset((
    *PROGRAM, *COMPILED, ".a", ".c", ".dot", ".gv", ".h", ".htm", ".html", ".jpeg", ".jpg", ".json", ".mlir", ".npy", ".npz", ".o",
    ".onnx", ".params", ".pdf", ".png", ".pt", ".pt2", ".pth", ".py", ".s", ".safetensors", ".sarif", ".stablehlo", ".svg", ".tflite",
    ".txt", ".xml",
))  # fmt: skip


def check_ending(verb: str, path: str | None, makes: str, allowed: Iterable[str]) -> None:
    """Raises `UsageError` for a file whose ending names another format than those `allowed`. Other endings say nothing.

    `makes` says what the verb writes.
    """
    if path is not None and Path(path).suffix.lower() in _ENDINGS - set(allowed):
        raise UsageError(f"relay {verb}: {path} has the ending of another format: {makes}", f"relay {verb} --help")


def check_program_file(verb: str, path: str | None) -> None:
    """Say now, before long work, that a program could not be written to a file. Raises `RelayError`, `UsageError`."""
    check_writable(path)
    makes = "the result is Relay text; relay export, relay viz and relay compile write other formats"
    check_ending(verb, path, makes, (*PROGRAM, ".txt"))


def check_outputs(output: str | None, constants: str | None) -> None:
    """Say now, before long work, that a result or its constants could not be written."""
    check_writable(output)
    check_writable(constants)
    if output not in (None, "-") and constants is not None and os.path.realpath(str(output)) == os.path.realpath(constants):
        raise UsageError(f"the result and its constants cannot both be {constants}", "relay --help")


VERIFY_HELP = (
    "compare the diagnostics with the file's `// expected-error@+1 {{text}}` comments; "
    "parts between `// -----` lines are taken one by one"
)


def verified(path: str, run: Callable[[SourceFile], object], quiet: bool = False) -> list[Diagnostic]:
    """Run a file's parts, report differences from the expectations, and return the diagnostics."""
    from relaylang.testing.expected import verify  # takes a tenth of the time of `relay check`

    try:
        wrong = verify(path, run, collecting)
    except RelayError as e:
        wrong = e.diagnostics
    report(wrong)
    if not wrong and not quiet:
        print(f"{path}: ok (as expected)")
    return wrong


def files_below(names: list[str]) -> tuple[list[str], list[Diagnostic]]:
    """The given files, and the .relay files below the given folders; and the unreadable folders."""
    paths: list[str] = []
    said: list[Diagnostic] = []
    for name in names:
        if name == "-" or not Path(name).is_dir():
            paths.append(name)
            continue
        below = sorted(str(p) for p in Path(name).rglob("*.relay") if p.is_file())
        if not below:
            said.append(error("R0001", f"there is no .relay file below {name}"))
        paths += below
    return list(dict.fromkeys(paths)), said


def add_print_options(parser: argparse.ArgumentParser) -> None:
    """The options of every verb that prints a program."""
    group = parser.add_argument_group("printing")
    group.add_argument(
        "--style",
        choices=["lossless", "tvm"],
        default="lossless",
        help="lossless (default): reads back bit for bit; tvm: what TVM 0.16 printed",
    )
    form = group.add_mutually_exclusive_group()
    form.add_argument("--anf", action="store_true", help="A-normal form: each value bound by let where it is computed")
    form.add_argument("--gnf", action="store_true", help="graph normal form: no lets but for recursion and effects")
    form.add_argument("--bbnf", action="store_true", help="basic block normal form: lets for what several blocks share")
    group.add_argument("--no-types", action="store_true", help="leave the /* ty=... */ comments out")
    group.add_argument("--no-header", action="store_true", help='leave the #[version = "0.0.5"] line out')
    group.add_argument("--spans", action="store_true", help="with the places in the text that was read: /* span=... */")
    group.add_argument(
        "--constants",
        metavar="FILE",
        help="write the constants to FILE (.npz, .params, .safetensors) instead of the metadata section; --params reads them",
    )
    group.add_argument("-o", "--output", metavar="FILE", help="write to FILE instead of stdout")
