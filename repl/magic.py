"""Relay cells in notebooks: `%load_ext relaylang`, then cells that begin with `%%relay`.

A cell holds inputs of one session: definitions, bindings, an expression, commands such as `:type`. `%relay` takes one input.

    %%relay --in image,weights --out scores --viz
    let %scores = nn.softmax(nn.dense(%image, %weights));
    %scores
"""

from __future__ import annotations

import argparse
import contextlib
import re
import shlex
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np

from relaylang.diagnostics import RelayError, did_you_mean, error, render
from relaylang.repl.commands import Quit
from relaylang.repl.completer import suggestions
from relaylang.repl.inputs import inputs
from relaylang.repl.notebook import highlighted
from relaylang.repl.session import Session
from relaylang.viz import Picture, fold_repeats, graph_of

_CELL = re.compile(r"\s*%%relay\b[^\n]*\n")
_LINE = re.compile(r"\s*%relay\b[ \t]?")
_MATCHER = "relaylang"


class CellError(RelayError):
    """A wrong cell. A notebook shows its diagnostics, without a traceback of Python's."""

    def _render_traceback_(self) -> list[str]:
        return [render(d, True) for d in self.diagnostics]


class Shown:
    """The output of a cell: text, and a graph where it was asked for."""

    def __init__(self, text: str, picture: Picture | None = None) -> None:
        self.text = text
        self.picture = picture

    def __repr__(self) -> str:
        return "\n".join([*([self.text] if self.text else []), *([str(self.picture)] if self.picture is not None else [])])

    def _repr_html_(self) -> str:
        drawn = self.picture._repr_html_() if self.picture is not None else ""
        return (highlighted(self.text) if self.text else "") + drawn


class _Arguments(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise RelayError(error("R0721", f"%%relay: {message}", notes=[self.format_usage().strip()]))


def _arguments() -> _Arguments:
    parser = _Arguments(prog="%%relay", add_help=False, allow_abbrev=False)
    parser.add_argument("--in", dest="taken", metavar="NAME,...", default="", help="arrays of Python that the cell uses")
    parser.add_argument("--out", metavar="NAME,...", default="", help="variables of the cell that Python gets as arrays")
    parser.add_argument("--viz", action="store_true", help="show the graph of the expression, or of all definitions")
    parser.add_argument("--reset", action="store_true", help="forget all earlier definitions first")
    return parser


class Magic:
    """The cells of one notebook. `names` are the variables of its Python."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.session = Session()
        self.names = names

    def cell(self, line: str, cell: str) -> Shown | None:
        """Run a cell whose first line has the options `line`. Raises `CellError`."""
        return self._run(line, "\n" + cell)  # the options are the cell's first line

    def line(self, line: str) -> Shown | None:
        """Run one input. Raises `CellError`."""
        return self._run("", line)

    def _run(self, line: str, cell: str) -> Shown | None:
        said: list[str] = []
        try:
            options = self._options(line)
            if options.reset:
                self.session.reset()
            self.session.bind(self._taken(_names(options.taken)))
            for text in _placed(cell):
                said.append(self._input(text))
            bindings = self._given(_names(options.out))
            picture = self._picture(cell) if options.viz else None
        except RelayError as wrong:
            print("\n".join(filter(None, said)), end="\n" if any(said) else "")
            raise CellError(wrong.diagnostics) from None
        self.names.update(bindings)
        shown = "\n".join(filter(None, said))
        return Shown(shown, picture) if shown or picture is not None else None

    def _input(self, text: str) -> str:
        try:
            said = self.session.execute(text)
        except Quit:
            return "a notebook's session ends with its kernel; :reset forgets all definitions"
        except RelayError as wrong:
            self.session.last_error = next((d.code for d in wrong.diagnostics if d.severity == "error"), None)
            raise
        for note in self.session.take_notes():
            print(render(note, True), file=sys.stderr)
        return said

    def _options(self, line: str) -> argparse.Namespace:
        try:
            return _arguments().parse_args(shlex.split(line))
        except ValueError as e:
            raise RelayError(error("R0721", f"%%relay: {str(e).lower()}")) from None

    def _taken(self, names: list[str]) -> dict[str, np.ndarray]:
        """Python's values as arrays."""
        taken: dict[str, np.ndarray] = {}
        for name in names:
            if name not in self.names:
                near = did_you_mean(name, (n for n in self.names if not n.startswith("_")))
                notes = [f"did you mean {near}?"] if near else ["a cell of Python assigns it"]
                raise RelayError(error("R0721", f"Python has no variable {name}", notes=notes))
            array = np.asarray(self.names[name])
            if array.dtype.kind not in "biufV":
                kind = type(self.names[name]).__name__
                raise RelayError(error("R0721", f"{name} is not an array of numbers, but a {kind}"))
            taken[name] = array
        return taken

    def _given(self, names: list[str]) -> dict[str, Any]:
        values = self.session.values()
        for name in names:
            if name not in values:
                near = did_you_mean(name, values)
                note = f"did you mean {near}?" if near else f"write `let %{name} = ...;` in the cell"
                raise RelayError(error("R0721", f"the session has no variable %{name}", notes=[note]))
        return {name: values[name] for name in names}

    def _picture(self, cell: str) -> Picture:
        """The graph of the cell's last expression, or of all definitions where it has none."""
        program: Any = self.session.module
        for last in inputs(cell)[-1:]:
            with contextlib.suppress(RelayError):  # it is a definition or a command
                program = self.session.function_of(last)[1]
        return Picture(fold_repeats(graph_of(program)))

    def complete(self, context: Any) -> dict[str, Any]:
        """What IPython's completer asks of a matcher: the session's suggestions in Relay cells, else nothing."""
        text: str = context.full_text
        lines = text.split("\n")[: context.cursor_line + 1]
        before = "\n".join([*lines[:-1], lines[-1][: context.cursor_position]])
        head = _CELL.match(before) or _LINE.match(before)
        if head is None:
            return {"completions": []}
        completions = suggestions(before[head.end() :], self.session)
        length = completions[0].length if completions else 0
        return {
            "completions": [SimpleNamespace(text=s.text, type=s.kind) for s in completions if s.length == length],
            "matched_fragment": before[len(before) - length :],
            "suppress": True,
            "ordered": True,
        }


def _names(listed: str) -> list[str]:
    return [name for name in re.split(r"[\s,]+", listed) if name]


def _placed(cell: str) -> Iterator[str]:
    """The inputs of a cell, each with empty lines in front, so that its places are those in the cell."""
    at = 0
    for text in inputs(cell):
        at = cell.index(text, at)
        yield "\n" * cell.count("\n", 0, at) + text
        at += len(text)


def load_ipython_extension(shell: Any) -> None:
    """Add `%%relay` and `%relay`, with completion, to a notebook or to IPython: `%load_ext relaylang` calls this."""
    magic = Magic(shell.user_ns)
    shell.register_magic_function(magic.cell, "cell", "relay")
    shell.register_magic_function(magic.line, "line", "relay")

    def relay_matcher(context: Any) -> dict[str, Any]:
        return magic.complete(context)

    # a function has no other way to say which of IPython's interfaces it has
    relay_matcher.__dict__.update(matcher_api_version=2, matcher_identifier=_MATCHER, matcher_priority=1000)
    unload_ipython_extension(shell, magics=False)
    shell.Completer.custom_matchers.append(relay_matcher)


def unload_ipython_extension(shell: Any, magics: bool = True) -> None:
    """Take `%%relay` and `%relay` away again."""
    shell.Completer.custom_matchers = [m for m in shell.Completer.custom_matchers if getattr(m, "matcher_identifier", "") != _MATCHER]
    if magics:
        for kind in ("cell", "line"):
            shell.magics_manager.magics[kind].pop("relay", None)


__all__ = ["CellError", "Magic", "Shown", "load_ipython_extension", "unload_ipython_extension"]
