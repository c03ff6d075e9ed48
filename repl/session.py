"""A session without a terminal: the definitions that persist, and what one input does to them.

Functions and types live in a module that grows; variables keep the values and types they were evaluated to. An input is
a command (`:type f`), definitions (`def`, `type`), bindings (`let %x = e`, `%0 = e`), an expression, or bindings and an
expression behind them. `execute` returns what is to be shown and raises `RelayError` for what is wrong; a wrong input
changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relaylang.diagnostics import Diagnostic, RelayError, define_codes, did_you_mean, error
from relaylang.interpreter import evaluate
from relaylang.ir import Expr, Function, GlobalVar, IRModule, Type, Var, is_incomplete, substitute, type_text
from relaylang.ir.visit import free_vars
from relaylang.passes.to_anf import to_anf
from relaylang.repl.commands import run_command
from relaylang.repl.show import show
from relaylang.runtime.text import read_text
from relaylang.syntax import astext, parse
from relaylang.typing import infer

define_codes({"R0722": "a variable without a value", "R0723": "nothing to evaluate"})

#: The function that holds an input while it is checked and run. No text can name it.
_ENTRY = "(input)"
_DEFINITION = re.compile(r"\s*(?:(?://|#)[^\n]*\n|/\*.*?\*/|\s)*(?:def|type|data|extern)\b", re.S)
_BINDING = re.compile(
    r"(?:\s|//[^\n]*(?:\n|\Z)|#(?!\[)[^\n]*(?:\n|\Z)|/\*.*?\*/)*"
    r'(?:let\s+)?(?P<name>%(?:"(?:\\.|[^"\\])*"|[\w/][\w/.:\-]*))\s*(?::[^=;]*)?=(?!=)',
    re.S,
)
_PIECE = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|#(?!\[)[^\n]*|/\*|[()\[\]{};\n]')
_NEXT = re.compile(r"[ \t\r]*(?:\n|\Z|let\b|%[^\s=]+\s*(?::[^=;]*)?=(?!=))")


@dataclass(frozen=True)
class Value:
    """A value and what the checker found of its type."""

    data: Any
    type: Type | None

    def __str__(self) -> str:
        return show(self.data, self.type)


class Session:
    """What has been defined so far, and the inputs' evaluation."""

    def __init__(self, module: IRModule | None = None) -> None:
        self.module = module if module is not None else IRModule()
        self._values: dict[str, Value] = {}
        self._notes: list[Diagnostic] = []
        self._count = 0

    # What the completer and the commands ask.

    def variables(self) -> dict[str, Type | None]:
        """The session's variables, with their types."""
        return {name: value.type for name, value in self._values.items()}

    def global_names(self) -> dict[str, str]:
        """The session's functions, with their type's text."""
        return {gv.name_hint: _says(f.checked_type) for gv, f in self.module.functions.items()}

    def constructor_names(self) -> dict[str, str]:
        """The session's constructors, with the type they make."""
        return {
            c.name_hint: data.header.name_hint
            for data in self.module.type_definitions.values()
            for c in data.constructors
        }

    def type_names(self) -> list[str]:
        """The session's types, with their constructors."""
        return [
            f"type {gtv.name_hint} = {' | '.join(c.name_hint for c in data.constructors)}"
            for gtv, data in self.module.type_definitions.items()
        ]

    def take_notes(self) -> list[Diagnostic]:
        """What the last input's reading and checking noted beside its result."""
        notes, self._notes = self._notes, []
        return notes

    def reset(self) -> None:
        """Forget everything."""
        self.module = IRModule()
        self._values = {}

    # Inputs.

    def execute(self, text: str) -> str:
        """Run one input and return what is to be shown. Raises `RelayError`, and `Quit` for `:quit`."""
        self._notes = []
        if text.lstrip().startswith(":"):
            return run_command(self, text)
        self._count += 1
        name = f"<input {self._count}>"
        if _DEFINITION.match(text):
            return self._define(text, name)
        return self._statements(text, name)

    def load(self, path: str) -> str:
        """Read a file's definitions (or evaluate its expression) and say what they were."""
        source = read_text(path)
        result = parse(source.text, source.name, module=self.module)
        if result.module is None:
            return self._statements(source.text, source.name)
        return self._take(result.module, result.notes)

    def _define(self, text: str, name: str) -> str:
        result = parse(text, name, module=self.module)
        if result.module is None:
            return self._statements(text, name)
        return self._take(result.module, result.notes)

    def _take(self, parsed: IRModule, notes: Sequence[Diagnostic]) -> str:
        """Add a module's definitions to the session, where all of it is well-typed; say what was defined."""
        grown = self._joined(parsed)
        self._check(grown, notes)
        said = [
            f"type {gtv.name_hint}" for gtv, data in parsed.type_definitions.items()
            if self.module.type_definitions.get(gtv) is not data
        ]  # fmt: skip
        said += [
            f"@{gv.name_hint} : {_says(grown[gv.name_hint].checked_type)}" for gv, f in parsed.functions.items()
            if self.module.functions.get(gv) is not f
        ]  # fmt: skip
        self.module = grown
        return "\n".join(said)

    def _joined(self, parsed: IRModule) -> IRModule:
        """The session's module with the parsed definitions in it; a new one takes the place of an old one."""
        grown = IRModule(self.module.functions, self.module.type_definitions, {**self.module.attrs, **parsed.attrs})
        for gtv, data in parsed.type_definitions.items():
            grown[gtv] = data
        for gv, function in parsed.functions.items():
            old = grown.functions.pop(grown.get_global_var(gv.name_hint), None) if gv.name_hint in grown else None
            del old
            grown[gv] = function
        return grown

    def _statements(self, text: str, name: str) -> str:
        shown = ""
        for variable, piece in split_statements(text):
            value = self._value_of(piece, name)
            if variable is not None:
                self._values[variable] = value
                shown = f"%{variable} : {_says(value.type)}"
            else:
                shown = str(value)
        return shown

    def evaluate(self, text: str, name: str = "<expression>", given: Mapping[str, Value] | None = None) -> Value:
        """The value of an expression in the session's scope; `given` are further variables."""
        old = self._values
        self._values = {**old, **(given or {})}
        try:
            return self._value_of(text, name)
        finally:
            self._values = old

    def type_of(self, text: str) -> Type:
        """The type of an expression in the session's scope."""
        module, used = self._prepared(text, "<expression>")
        return _result_type(module[_ENTRY], used)

    def text_of(self, text: str, anf: bool = False) -> str:
        """The text of an expression, of `@name`, or of all definitions where no text is given."""
        if not text:
            node: Any = self.module
        elif text.startswith("@") and text[1:] in self.module:
            node = IRModule({self.module.get_global_var(text[1:]): self.module[text[1:]]})
        else:
            module, _ = self._prepared(text, "<expression>")
            node = module[_ENTRY].body
        return astext(to_anf(node) if anf else node).rstrip("\n")

    def _value_of(self, text: str, name: str) -> Value:
        module, used = self._prepared(text, name)
        data = evaluate(module, *(self._values[v].data for v in used), entry=_ENTRY)
        return Value(data, _result_type(module[_ENTRY], used))

    def _prepared(self, text: str, name: str) -> tuple[IRModule, list[str]]:
        """A checked module whose entry is the expression as a function of the session's variables that it uses."""
        result = parse(text, name, module=self.module)
        if result.expr is None:
            raise RelayError(error("R0723", "an expression is wanted here, not definitions"))
        body, params, used = self._closed(result.expr)
        module = IRModule(self.module.functions, self.module.type_definitions, self.module.attrs)
        module[GlobalVar(_ENTRY)] = Function(params, body, span=body.span)
        self._check(module, result.notes)
        return module, used

    def _closed(self, expr: Expr) -> tuple[Expr, list[Var], list[str]]:
        """The expression with its free variables as parameters that have the session's types."""
        free = free_vars(expr)
        unknown = [v for v in free if v.name_hint not in self._values]
        if unknown:
            near = did_you_mean(unknown[0].name_hint, self._values)
            notes = [f"did you mean %{near}?"] if near else []
            title = f"%{unknown[0].name_hint} has no value here"
            raise RelayError(error("R0722", title, unknown[0].span, notes=notes))
        by_name: dict[str, Var] = {}
        mapping: dict[Var, Expr] = {}
        for v in free:
            known = self._values[v.name_hint].type
            param = by_name.setdefault(
                v.name_hint, Var(v.name_hint, known if known is not None else v.type_annotation, v.span)
            )
            mapping[v] = param
        return substitute(expr, mapping), list(by_name.values()), list(by_name)

    def _check(self, module: IRModule, notes: Sequence[Diagnostic]) -> None:
        found = infer(module)
        said = [*notes, *(d for d in found if d.severity != "error")]
        errors = [d for d in found if d.severity == "error"]
        if errors:
            raise RelayError([*said, *errors])
        self._notes += said


def _says(ty: Type | None) -> str:
    return type_text(ty) if ty is not None else "?"


def _result_type(function: Function, used: Sequence[str]) -> Type | None:
    ty = function.body.checked_type
    return None if ty is None or (is_incomplete(ty) and not used) else ty


def split_statements(text: str) -> list[tuple[str | None, str]]:
    """The bindings that a text begins with and the expression behind them, as (variable or None, text of the value).

    Each value's text keeps its place: what stands before it is blank. A binding ends at `;`, or at a line's end where
    the next line begins another binding or there is none.
    """
    pieces: list[tuple[str | None, str]] = []
    at = 0
    while True:
        head = _BINDING.match(text, at)
        if head is None:
            break
        end, after = _statement_end(text, head.end())
        name = head["name"][1:]
        name = name[1:-1] if name.startswith('"') else name
        is_let = text[at : head.start("name")].rstrip().endswith("let")
        if is_let:
            # The variable is in scope in its own value, for recursive functions.
            pieces.append((name, f"{_blank(text[:at])}{text[at:end]}; {head['name']}"))
        else:
            pieces.append((name, _blank(text[: head.end()]) + text[head.end() : end]))
        at = after
    rest = text[at:]
    if _has_code(rest) or not pieces:
        pieces.append((None, _blank(text[:at]) + rest))
    return pieces


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def _has_code(text: str) -> bool:
    return bool(re.sub(r"//[^\n]*|#(?!\[)[^\n]*|/\*.*?\*/|\s", "", text, flags=re.S))


def _statement_end(text: str, at: int) -> tuple[int, int]:
    """Where the value that begins at `at` ends, and where the next statement begins."""
    depth = comment = 0
    while True:
        m = _PIECE.search(text, at) if not comment else re.compile(r"/\*|\*/").search(text, at)
        if m is None:
            return len(text), len(text)
        at = m.end()
        c = m.group()
        if comment or c == "/*":
            comment += 1 if c == "/*" else -1
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
        elif c == ";" and depth <= 0:
            return m.start(), m.end()
        elif c == "\n" and depth <= 0 and (_NEXT.match(text, at) or not _has_code(text[at:])):
            return m.start(), m.end()
