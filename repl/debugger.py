"""Stopping a program at a place and looking around: what `relay run --break` opens.

A place is a variable (`%x`), a function (`@f`), an operator (`nn.dense`) or a line (`12`). The program stops once the
variable has its value, or when the function begins. Commands come from a function that reads a line, so that a script
does as well as a person.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from relaylang.diagnostics import RelayError, Span, did_you_mean, error, render
from relaylang.interpreter.code import Code, Slots
from relaylang.interpreter.machine import active_calls
from relaylang.interpreter.values import Value as Data
from relaylang.interpreter.values import to_arrays
from relaylang.interpreter.watch import Site, Watch, place, summary, type_says
from relaylang.ir import Call, Expr, Function, IRModule, Let, Type, Var, post_order
from relaylang.ops.record import Op
from relaylang.repl.definitions import Value
from relaylang.repl.session import Session
from relaylang.repl.show import show

HELP = """\
c, continue        go on to the next stop
s, step            go on to the next binding
n, next            go on to the next binding of this function or its callers
w, where           the calls that lead here
v, vars            the variables that have values here
p EXPR, or EXPR    a variable or any expression: %x, add(%x, %y), @f(%n)
b PLACE            stop at %x, @f, an operator or a line, too
d PLACE            stop there no more; d alone: nowhere
q, quit            end the program
"""


class Stopped(Exception):
    """The person at the prompt has ended the program."""


def places_of(module: IRModule) -> tuple[set[str], set[str]]:
    """The module's variables, and every other place at which it can be stopped."""
    variables: set[str] = set()
    others: set[str] = set()
    for name, function in module.functions.items():
        others.add(f"@{name.name_hint}")
        for node in post_order(function):
            if isinstance(node, Let):
                variables.add(node.variable.name_hint)
            elif isinstance(node, Call) and isinstance(node.op, Op):
                others.add(node.op.name)
            if node.span is not None and not isinstance(node, (Var, Function)):
                others.add(str(node.span.line))
    return variables, others


def check_places(places: Iterable[str], module: IRModule) -> list[str]:
    """The places as they are compared with. Raises `RelayError` for those that the program does not have."""
    variables, others = places_of(module)
    known, wrong = [], []
    for text in places:
        name = text.strip().removeprefix("%")
        known.append(name)
        if name not in variables and name not in others:
            near = did_you_mean(name, sorted(variables | others))
            names = ", ".join(f"%{n}" for n in sorted(variables)[:12])
            notes = [f"did you mean {near}?"] if near else [f"its variables: {names or 'none'}"]
            notes.append("graph bindings have the names that `relay print --anf` shows")
            title = f"there is no variable, function, operator or line {text} to stop at"
            wrong.append(error("R0724", title, notes=notes))
    if wrong:
        raise RelayError(wrong)
    return known


class Debugger(Watch):
    """Stops at `places` (see `check_places`) and runs the commands of `read`; `write` shows text.

    `read` returns None at the end of the input. The program then continues without stops.
    """

    keep_all = True

    def __init__(
        self,
        module: IRModule,
        places: Sequence[str],
        read: Callable[[], str | None],
        write: Callable[[str], object],
    ) -> None:
        self.places = set(places)
        self._module = module
        self._read = read
        self._write = write
        #: stop at the next binding at most this deep; None: at places only
        self._within: float | None = None

    # What the evaluator tells.

    def entered(self, code: Code, slots: Slots) -> None:
        if code.name in self.places:
            arguments = {p: slots[i] for i, p in enumerate(code.function.params)}
            self._write(f"in {code.name}, {place(code.function.span)}\n")
            for p, value in arguments.items():
                self._write(f"  {_line(p, value)}\n")
            self._prompt(code, code.function.span, arguments)

    def bound(self, site: Site, slots: Slots, seconds: float) -> None:
        span = site.node.span
        hit = (
            site.variable.name_hint in self.places
            or (site.what in self.places and site.is_op)
            or (span is not None and str(span.line) in self.places)
        )
        if not hit and (self._within is None or len(self.stack) > self._within):
            return
        self._write(f"{_line(site.variable, slots[site.into], site.node)}   {site.what} at {place(span)}\n")
        seen = {v: slots[i] for v, i in site.slots_of().items() if i < len(slots) and slots[i] is not None}
        self._prompt(site.code, span, seen)

    # The prompt.

    def _prompt(self, code: Code, span: Span | None, variables: dict[Var, Data]) -> None:
        self._within = None
        while True:
            line = self._read()
            if line is None:
                self.places.clear()
                return
            word, _, rest = line.strip().partition(" ")
            rest = rest.strip()
            if word in ("c", "continue"):
                return
            if word in ("s", "step", "n", "next"):
                self._within = len(self.stack) if word[0] == "n" else float("inf")
                return
            if word in ("q", "quit"):
                raise Stopped
            try:
                self._command(word, rest, line.strip(), code, span, variables)
            except RelayError as wrong:
                for d in wrong.diagnostics:
                    self._write(render(d) + "\n")

    def _command(self, word: str, rest: str, line: str, code: Code, span: Span | None, variables: dict[Var, Data]) -> None:
        if word in ("w", "where"):
            self._write("".join(f"{call}\n" for call in active_calls(code, span, self.stack)))
        elif word in ("v", "vars"):
            for v, value in _latest(variables).values():
                self._write(f"{_line(v, value)}\n")
        elif word in ("h", "help", "?"):
            self._write(HELP)
        elif word in ("b", "break") and rest:
            self.places.update(check_places([rest], self._module))
        elif word in ("d", "delete"):
            self.places = self.places - {rest.removeprefix("%")} if rest else set()
        elif line:
            text = rest if word in ("p", "print") and rest else line
            self._write(f"{self._value(text, variables)}\n")

    def _value(self, text: str, variables: dict[Var, Data]) -> str:
        known = _latest(variables)
        name = text.removeprefix("%")
        if name in known:
            v, value = known[name]
            return show(to_arrays(value), v.checked_type)
        values = {n: Value(to_arrays(value), _type(v)) for n, (v, value) in known.items()}
        return str(Session(self._module).evaluate(text, "<break>", values))


def _type(variable: Var) -> Type | None:
    return variable.checked_type or variable.type_annotation


def _latest(variables: dict[Var, Any]) -> dict[str, tuple[Var, Any]]:
    """The variables by name. Of two with one name, the later binding counts."""
    return {v.name_hint: (v, value) for v, value in variables.items() if value is not None}


def _line(variable: Var, value: Data, node: Expr | None = None) -> str:
    ty = _type(variable) or (node.checked_type if node is not None else None)
    return f"%{variable.name_hint} : {type_says(value, ty)} = {summary(value)}"
