"""A program as the verbs take it: read, checked, with what there is to say about it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from relaylang.diagnostics import Diagnostic, Label, RelayError
from relaylang.ir import Expr, IRModule, Var
from relaylang.runtime.text import read_text
from relaylang.source import Span
from relaylang.syntax import parse
from relaylang.typing import infer


@dataclass
class Program:
    """What a text held: a module, or one expression (or fragment) with its free variables."""

    name: str
    node: IRModule | Expr
    free_vars: list[Var] = field(default_factory=list)
    notes: list[Diagnostic] = field(default_factory=list)

    @property
    def module(self) -> IRModule:
        """The program as a module; an expression is its @main, a function of its free variables."""
        return self.node if isinstance(self.node, IRModule) else IRModule.from_expr(self.node)


def load(path: str) -> Program:
    """Read a program. Raises `RelayError` where there is none in the file."""
    source = read_text(path)
    result = parse(source.text, source.name)
    node = result.module if result.module is not None else result.expr
    begin = Label(Span(source, 0, 0))
    notes = [n if n.labels else replace(n, labels=(begin,)) for n in result.notes]
    return Program(source.name, node, list(result.free_vars), notes)


def load_checked(path: str) -> Program:
    """Read a program and find its types. Raises `RelayError` with everything that is wrong with it."""
    program = load(path)
    check(program)
    return program


def check(program: Program) -> None:
    """Find a program's types, in place. Raises `RelayError` with everything that is wrong with it."""
    found = infer(program.node, fragment=not isinstance(program.node, IRModule))
    program.notes += [d for d in found if d.severity != "error"]
    if any(d.severity == "error" for d in found):
        raise RelayError(program.notes + [d for d in found if d.severity == "error"])
