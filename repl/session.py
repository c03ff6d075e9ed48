"""A session without a terminal: its definitions persist, and each input adds to them or uses them.

Functions and types live in a module that grows; variables keep the values and types they were evaluated to. An input is
a command (`:type f`), definitions (`def`, `type`), bindings (`let %x = e`, `%0 = e`), or an expression. Bindings may precede
the expression. `execute` returns the output, and raises `RelayError` for a wrong input, which changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from relaylang.diagnostics import Diagnostic, RelayError
from relaylang.ir import IRModule
from relaylang.repl.definitions import Definitions, end_of_lets, type_says, typed
from relaylang.repl.last import LAST, with_last
from relaylang.repl.pictures import Style
from relaylang.repl.questions import advice, hint, question
from relaylang.repl.show import spelled
from relaylang.runtime.params import SUFFIXES, load_params
from relaylang.runtime.text import read_text
from relaylang.syntax.tokeniser import is_blank
from relaylang.typing.partial import all_errors

#: How many variables a parameter file's answer lists.
_MOST_SHOWN = 20


class Session(Definitions):
    """The definitions so far, and the evaluation of inputs."""

    def __init__(self, module: IRModule | None = None) -> None:
        super().__init__(module)
        self._count = 0
        #: files that were loaded, and files that were saved
        self.files: list[str] = []
        self.saved: set[str] = set()
        self.keys = "emacs"
        #: the terminal, for pictures
        self.style = Style(100)
        #: shows a file in a browser; None where there is none
        self.browse: Callable[[str], object] | None = None
        #: the code of the last error
        self.last_error: str | None = None

    @cached_property
    def scratch(self) -> TemporaryDirectory[str]:
        """A folder for pages; it goes with the session."""
        return TemporaryDirectory(prefix="relay-")

    def take_notes(self) -> list[Diagnostic]:
        """What the last input's reading and checking noted beside its result."""
        notes, self._notes = self._notes, []
        return notes

    # Inputs.

    def execute(self, text: str) -> str:
        """Run one input and return its output. Raises `RelayError`, and `Quit` for `:quit`."""
        self._notes = []
        if text.lstrip().startswith(":") or question(text) is not None:
            from relaylang.repl.commands import answer, run_command

            asked = question(text)
            return answer(self, asked) if asked is not None else run_command(self, text)
        if is_blank(text):
            return ""
        said = hint(text)
        if said is not None:
            return said
        self._count += 1
        try:
            return self._take(with_last(text), f"<input {self._count}>")
        except RelayError as wrong:
            errors = all_errors(wrong)
            said = advice(text)
            first = next((i for i, d in enumerate(errors) if d.code.startswith("R01") or d.code == "R0202"), None)
            if said is not None and first is not None:
                errors[first] = replace(errors[first], notes=(*errors[first].notes, said))
            raise RelayError(errors) from None

    def load(self, path: str) -> str:
        """Read a file's definitions, evaluate its expression if it has one, and say what they were."""
        name = path if path == "-" else os.path.expanduser(path)
        if Path(name).suffix.lower() in SUFFIXES:
            said = self._take_tensors(load_params(name))
        else:
            source = read_text(name)
            said = self._take(source.text, source.name)
        if name not in self.files:
            self.files.append(name)
        return said

    def _take_tensors(self, tensors: Mapping[str, np.ndarray]) -> str:
        """Bind variables to tensors, and say which."""
        typed_values = {name: typed(array) for name, array in tensors.items()}
        self._keep(self.module, {**self._values, **typed_values})
        lines = [f"{spelled('%', name)} : {type_says(value.type)}" for name, value in typed_values.items()]
        more = len(lines) - _MOST_SHOWN
        return "\n".join([*lines[:_MOST_SHOWN], *([f"and {more} more; :names lists them"] if more > 0 else [])])

    def _take(self, text: str, name: str) -> str:
        """Add a text's definitions and bindings to the session, where all of it is right; say what came of it."""
        result = self._read(text, name)
        module = result.module if result.module is not None else self.module
        if result.expr is None:
            self._check(module, result.notes)
            said = self._defined(module)
            self._keep(module, self._values)
            return said
        prepared = self._prepare(result, module)
        values = prepared.run(self.target)
        said = self._defined(module)
        names = list(result.bindings)
        bound = {name: value for name, value in zip(names, values[1:]) if name != LAST}
        self._keep(module, {**self._values, **bound} if bound else self._values)
        self._last = values[0]
        last = names[-1] if names and end_of_lets(result.expr) is result.bindings[names[-1]] else None
        begin = f"{spelled('%', last)} = " if last is not None else ""
        return "\n".join([*([said] if said else []), begin + values[0].shown(max(20, self.style.width - len(begin)))])

    def _defined(self, module: IRModule) -> str:
        """A line for each definition of the module that the session does not have."""
        old = self.module
        lines = [f"type {gtv.name_hint}" for gtv, data in module.type_definitions.items() if old.type_definitions.get(gtv) is not data]
        lines += [
            f"{spelled('@', gv.name_hint)} : {type_says(f.checked_type)}"
            for gv, f in module.functions.items()
            if old.functions.get(gv) is not f
        ]
        return "\n".join(lines)
