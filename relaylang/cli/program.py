"""A program as the verbs take it: read, checked, with its diagnostics."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from relaylang.cli.comments import types_from_comments
from relaylang.cli.models import check_unused, imported, may_be_network
from relaylang.diagnostics import Diagnostic, Label, RelayError, by_place
from relaylang.diagnostics.source import SourceFile, Span
from relaylang.frontends.contents import KNOWN, main_file
from relaylang.ir import Expr, IRModule, Type, Var
from relaylang.runtime.text import read_bytes, text_of
from relaylang.stdlib.library import read
from relaylang.typing import infer
from relaylang.typing.partial import all_errors

if TYPE_CHECKING:
    from relaylang.frontends.options import Options


@dataclass
class Program:
    """The content of a text: a module, or one expression (or fragment) with its free variables. A network has no text."""

    name: str
    node: IRModule | Expr
    free_vars: list[Var] = field(default_factory=list)
    notes: list[Diagnostic] = field(default_factory=list)
    network: bool = False
    source: SourceFile | None = None

    @property
    def module(self) -> IRModule:
        """The program as a module; an expression is its @main, a function of its free variables."""
        return self.node if isinstance(self.node, IRModule) else IRModule.from_expr(self.node)


#: The note on a text without a version header. `relay check` shows it; other verbs would repeat it at every call.
_NO_HEADER = "R0150"


def load(
    path: str | SourceFile,
    constants: str | None = None,
    *,
    header_note: bool = False,
    options: Options | None = None,
    text_too: bool = False,
) -> Program:
    """Read a program, and the constants that it leaves out; `path` names a file or is a text.

    The constants come from the file `constants`, or from the one beside the text (`relaylang.runtime.params.beside`).
    The file may be a network of another format; `options` are about its import. For text they are a wrong call, but with
    `text_too`. Raises `RelayError` where there is no program in the file.
    """
    if isinstance(path, SourceFile):
        source = path
    else:
        path = main_file(path)
        data = read_bytes(path)
        if may_be_network(data):
            network = imported(data, path, options)
            if network is not None:
                return Program(path, network.module, [], list(network.notes), True)
            source = _text(data, path)
        else:
            source = text_of(data, path)
        del data  # a long text need not be in memory twice
    if not text_too:
        check_unused(options, source.name)
    known = None
    if constants is not None or "meta[relay.Constant]" in source.text:
        from relaylang.runtime.params import beside, load_params

        place = constants
        if place is None and isinstance(path, str) and os.path.isfile(beside(path)):
            place = beside(path)
        known = load_params(place) if place is not None else None
    result = read(source.text, source.name, constants=known)
    node = result.module if result.module is not None else result.value
    begin = Label(Span(source, 0, 0))
    notes = [n if n.labels else replace(n, labels=(begin,)) for n in result.notes]
    notes = [n for n in notes if header_note or n.code != _NO_HEADER]
    return Program(source.name, node, list(result.free_vars), notes, source=source)


def _text(data: bytes, path: str) -> SourceFile:
    """The text in contents that are of no known format. Errors list the formats."""
    try:
        return text_of(data, path)
    except RelayError as wrong:
        note = f"nor is it a network of a known format: {KNOWN}"
        raise RelayError([replace(d, notes=(*d.notes, note)) for d in wrong.diagnostics]) from None


def load_checked(path: str | SourceFile, options: Options | None = None) -> Program:
    """Read a program and find its types. Raises `RelayError` with everything that is wrong with it."""
    try:
        program = load(path, header_note=True, options=options)
    except RelayError as wrong:
        raise RelayError(all_errors(wrong)) from None
    check(program)
    return program


def check(program: Program, assume: Mapping[Var, Type] | None = None) -> None:
    """Find a program's types, in place. Raises `RelayError` with everything that is wrong with it.

    `assume` gives types to a fragment's free variables; those that have none may get one from the text's comments.
    """
    known = dict(assume or {})
    fragment = not isinstance(program.node, IRModule)
    if isinstance(program.node, Expr):
        types, notes = types_from_comments(program.node, [v for v in program.free_vars if v not in known])
        known.update(types)
        program.notes += notes
    said = infer(program.node, fragment=fragment, assume=known)
    program.notes += [d for d in said if d.severity != "error"]
    errors = [d for d in said if d.severity == "error"]
    if errors:
        raise RelayError(by_place(_with_reasons(errors, program.notes)))


def _with_reasons(errors: list[Diagnostic], notes: list[Diagnostic]) -> list[Diagnostic]:
    """Errors and notes; a note on a value that the text lacks joins the error about its type."""
    lacking = {(d.span.start, d.span.end): d for d in notes if d.code == "R0151" and d.span is not None}
    joined = []
    for problem in errors:
        place = (problem.span.start, problem.span.end) if problem.span is not None and problem.code == "R0304" else None
        reason = lacking.pop(place, None) if place is not None else None
        joined.append(problem if reason is None else replace(problem, notes=(*problem.notes, reason.title)))
    return joined + [d for d in notes if d.code != "R0151" or d in lacking.values()]
