"""What a session defines: functions, types, variables; and expressions in their scope, checked and evaluated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from relaylang.backends import compile_module
from relaylang.diagnostics import Diagnostic, RelayError, SourceFile, did_you_mean, error
from relaylang.interpreter import evaluate
from relaylang.ir import (
    Expr,
    Function,
    GlobalTypeVar,
    GlobalVar,
    IRModule,
    Let,
    TensorType,
    Tuple,
    TupleType,
    Type,
    TypeData,
    Var,
    type_text,
)
from relaylang.ir.visit import free_vars
from relaylang.passes.normal_forms.to_a_normal_form import to_anf
from relaylang.repl.calls import OpenCall, Signature, statements_end
from relaylang.repl.last import LAST, with_last
from relaylang.repl.show import show, spelled
from relaylang.stdlib.library import import_all, without_imports
from relaylang.syntax import ParseResult, astext, parse
from relaylang.syntax.symbols import Symbol
from relaylang.syntax.tokeniser import is_blank
from relaylang.typing import infer
from relaylang.typing.uses import uses

#: The function that holds an input while it is checked and run. No text can name it.
_ENTRY = "(input)"
#: The note about a missing header, which nobody writes in a session.
_NO_HEADER = "R0150"
#: How many changes can be taken back.
_MOST_UNDO = 100
#: Types in longer inputs are not looked for before Enter.
_LONGEST_TYPED = 10_000


@dataclass(frozen=True)
class Value:
    """A value and what the checker found of its type."""

    data: Any
    type: Type | None

    def __str__(self) -> str:
        return show(self.data, self.type)

    def shown(self, width: int) -> str:
        """The value in lines of so many columns, where they can be broken."""
        return show(self.data, self.type, width)


def typed(array: np.ndarray) -> Value:
    """An array with its type."""
    return Value(array, TensorType(array.shape, array.dtype.name))


class Definitions:
    """Functions and types in a module that grows, and variables with their values and types."""

    def __init__(self, module: IRModule | None = None) -> None:
        self.module = module if module is not None else IRModule()
        self._values: dict[str, Value] = {}
        self._notes: list[Diagnostic] = []
        self._before: list[tuple[IRModule, dict[str, Value]]] = []
        #: the value of the last input, which `_` names
        self._last: Value | None = None
        #: what runs expressions: the interpreter, or a target
        self.target = "interpreter"
        #: bytes that one evaluation of the interpreter may allocate
        self.memory_limit: int | None = None
        #: seconds that one evaluation of the interpreter may take
        self.time_limit: float | None = None

    # What the completer and the commands ask.

    def variables(self) -> dict[str, Type | None]:
        """The session's variables, with their types."""
        return {name: value.type for name, value in self._values.items()}

    def global_names(self) -> dict[str, str]:
        """The session's functions, with their type's text."""
        return {gv.name_hint: type_says(f.checked_type) for gv, f in self.module.functions.items()}

    def functions(self) -> dict[str, Type | None]:
        """The session's functions, with their types."""
        return {gv.name_hint: f.checked_type for gv, f in self.module.functions.items()}

    def definitions(self) -> Mapping[GlobalTypeVar, TypeData]:
        """The session's type definitions."""
        return self.module.type_definitions

    def types_of(self, text: str, symbols: Sequence[Symbol]) -> Mapping[str, Type | None]:
        """The types of variables that the complete statements of an input bind."""
        end = statements_end(text) if len(text) <= _LONGEST_TYPED else 0
        bound = [s.name for s in symbols if 0 <= s.value_start < end]
        if not bound:
            return {}
        try:
            ty = self.type_of(f"{text[:end]} ({', '.join(bound)},)")
        except RelayError:
            return {}
        return dict(zip(bound, ty.fields)) if isinstance(ty, TupleType) else {}

    def constructor_signature(self, call: OpenCall) -> Signature | None:
        """The signature of a constructor's call."""
        for data in self.module.type_definitions.values():
            for c in data.constructors:
                if c.name_hint == call.name:
                    return Signature(c.name_hint, tuple(map(type_text, c.inputs)), call.index, f" -> {data.header.name_hint}")
        return None

    def type_names(self) -> list[str]:
        """The session's types, with their constructors."""
        return [
            f"type {gtv.name_hint} = {' | '.join(c.name_hint for c in data.constructors)}"
            for gtv, data in self.module.type_definitions.items()
        ]

    def values(self) -> dict[str, Any]:
        """The values of the session's variables."""
        return {name: value.data for name, value in self._values.items()}

    def bind(self, values: Mapping[str, np.ndarray]) -> None:
        """Give variables the values of arrays, with the arrays' types."""
        if values:
            self._keep(self.module, {**self._values, **{name: typed(array) for name, array in values.items()}})

    def reset(self) -> None:
        """Forget every definition; `undo` brings them back."""
        self._keep(IRModule(), {})

    def undo(self) -> str:
        """Take back the last change of the definitions, and return a description of it. Raises `RelayError`."""
        if not self._before:
            raise RelayError(error("R0726", "there is nothing to take back"))
        module, values = self._before.pop()
        gone = [spelled("@", gv.name_hint) for gv in self.module.functions if gv not in module.functions]
        gone += [spelled("%", n) for n in self._values if n not in values]
        back = [spelled("@", gv.name_hint) for gv, f in module.functions.items() if self.module.functions.get(gv) is not f]
        back += [spelled("%", n) for n, v in values.items() if self._values.get(n) is not v]
        self.module, self._values = module, values
        said = [f"gone: {', '.join(gone)}"] if gone else []
        said += [f"back: {', '.join(back)}"] if back else []
        return "; ".join(said) or "as before"

    def _keep(self, module: IRModule, values: dict[str, Value]) -> None:
        """Take new definitions, and remember those before."""
        if module is not self.module or values is not self._values:
            self._before = [*self._before[-_MOST_UNDO + 1 :], (self.module, self._values)]
        self.module, self._values = module, values

    def evaluate(self, text: str, name: str = "<expression>", given: Mapping[str, Value] | None = None) -> Value:
        """The value of an expression in the session's scope; `given` are further variables."""
        old = self._values
        self._values = {**old, **(given or {})}
        try:
            return self._prepare(self._expression(text, name), self.module).run(self.target)[0]
        finally:
            self._values = old

    def type_of(self, text: str) -> Type | None:
        """The type of an expression in the session's scope."""
        return self._prepare(self._expression(text, "<expression>"), self.module).types[0]

    def prepare(self, text: str) -> Prepared:
        """An expression in the session's scope, checked, to be run."""
        return self._prepare(self._expression(text, "<expression>"), self.module)

    def function_of(self, text: str) -> tuple[IRModule, Function]:
        """An expression as a function of the session's variables that it uses, and the module around it."""
        result = self._expression(text, "<expression>")
        assert result.expr is not None
        params = free_vars(result.expr)
        self._prepare(result, self.module)
        function = Function(params, result.expr, span=result.expr.span)
        self._check(function, (), self.module)
        return self.module, function

    def check(self, module: IRModule) -> None:
        """Find a module's types, where they are not known. Raises `RelayError`."""
        self._check(module, ())

    def text_of(self, text: str, anf: bool = False) -> str:
        """The text of an expression, of `@name`, or of all definitions where no text is given."""
        if not text:
            node: Any = self.module
        elif text.startswith("@") and text[1:] in self.module:
            node = IRModule({self.module.get_global_var(text[1:]): self.module[text[1:]]})
        else:
            result = self._expression(text, "<expression>")
            self._prepare(result, self.module)
            node = result.expr
        return astext(to_anf(node) if anf else node).rstrip("\n")

    # Reading, checking, running.

    def _scope(self) -> dict[str, Value]:
        """The variables that an input may use."""
        return self._values if self._last is None else {**self._values, LAST: self._last}

    def _read(self, text: str, name: str) -> ParseResult:
        variables = {n: Var(n, value.type) for n, value in self._scope().items()}
        module = IRModule(self.module.functions, self.module.type_definitions, self.module.attrs)
        if not import_all(module, text, name):
            return parse(text, name, module=self.module, variables=variables)
        rest = without_imports(text)
        if is_blank(rest):
            return ParseResult(module, None, SourceFile(name, text))
        result = parse(rest, name, module=module, variables=variables)
        return result if result.module is not None else replace(result, module=module)

    def _expression(self, text: str, name: str) -> ParseResult:
        result = self._read(with_last(text), name)
        if result.expr is None or result.module is not None:
            raise RelayError(error("R0723", "an expression is wanted here, not definitions"))
        return result

    def _prepare(self, result: ParseResult, module: IRModule) -> Prepared:
        """An expression as a checked function of variables, which returns its value and those that it binds."""
        assert result.expr is not None
        body = _with_bindings(result.expr, list(result.bindings.values()))
        params = free_vars(body)
        scope = self._scope()
        unknown = [v for v in params if v.name_hint not in scope]
        if unknown:
            near = did_you_mean(unknown[0].name_hint, self._values)
            title = f"%{unknown[0].name_hint} has no value here"
            notes = [f"did you mean %{near}?"] if near else []
            if unknown[0].name_hint == LAST:
                notes = ["_ is the value of the last input, and there was none yet"]
            raise RelayError(error("R0722", title, unknown[0].span, notes=notes))
        function = Function(params, body, span=result.expr.span)
        if module is not self.module:
            self._check(module, result.notes)
        self._check(function, result.notes if module is self.module else (), module)
        program = IRModule(module.functions, module.type_definitions, module.attrs)
        program[GlobalVar(_ENTRY)] = function
        return Prepared(program, [scope[v.name_hint].data for v in params], self.memory_limit, self.time_limit)

    def _check(self, node: IRModule | Expr, notes: Sequence[Diagnostic], module: IRModule | None = None) -> None:
        """Find the types of a module, or of an expression that uses one. Raises `RelayError`."""
        diagnostics = infer(node, fragment=module is not None, module=module)
        said = [*(n for n in notes if n.code != _NO_HEADER), *(d for d in diagnostics if d.severity != "error")]
        errors = [d for d in diagnostics if d.severity == "error"]
        if errors:
            raise RelayError([*said, *(self._with_users(d, node) for d in errors)])
        self._notes += said

    def _with_users(self, problem: Diagnostic, node: IRModule | Expr) -> Diagnostic:
        """An error of a new definition in a function that was there before, with the way to change both."""
        if not isinstance(node, IRModule) or problem.span is None:
            return problem
        before = {v.name_hint: f for v, f in self.module.functions.items()}
        changed = {v.name_hint for v, f in node.functions.items() if before.get(v.name_hint, f) is not f}
        for var, function in node.functions.items():
            span = function.span
            if before.get(var.name_hint) is not function or span is None or span.source.name != problem.span.source.name:
                continue
            used = sorted(changed.intersection(uses(function)[0])) if isinstance(function, Function) else []
            if used and span.start <= problem.span.start < span.end:
                note = f"@{var.name_hint} uses @{used[0]} as it was: define both in one input, or keep the type of @{used[0]}"
                return replace(problem, notes=(*problem.notes, note))
        return problem


@dataclass(frozen=True)
class Prepared:
    """A checked input: the module whose entry is a function of `arguments` that returns a tuple."""

    module: IRModule
    arguments: list[Any]
    memory_limit: int | None = None
    time_limit: float | None = None

    @property
    def types(self) -> list[Type | None]:
        """The types of the tuple's fields."""
        ty = self.module[_ENTRY].body.checked_type
        return list(ty.fields) if isinstance(ty, TupleType) else [None] * len(end_of_lets(self.module[_ENTRY].body).fields)

    def evaluate(self, **options: Any) -> Any:
        """The tuple, by the interpreter; `options` are those of `relaylang.interpreter.evaluate`."""
        return evaluate(
            self.module, *self.arguments, entry=_ENTRY, memory_limit=self.memory_limit, time_limit=self.time_limit, **options
        )

    def runner(self, target: str) -> Callable[[], Any]:
        """A function that gives the tuple; what it takes to compile for a target is done. Raises `RelayError`."""
        if target == "interpreter":
            return self.evaluate
        artifact = compile_module(self.module, target, entry=_ENTRY)
        named = {p.name_hint: a for p, a in zip(self.module[_ENTRY].params, self.arguments)}
        return lambda: artifact.run(**named)

    def run(self, target: str = "interpreter") -> list[Value]:
        """The values of the tuple's fields."""
        values = self.runner(target)()
        return [Value(data, ty) for data, ty in zip(values, self.types)]


def _with_bindings(expr: Expr, bound: Sequence[Expr]) -> Expr:
    """The expression with a tuple at the end of its lets: its value, and what it binds."""
    lets: list[Let] = []
    names = {v for v in bound if isinstance(v, Var)}
    while isinstance(expr, Let) and expr.variable in names:
        lets.append(expr)
        expr = expr.body
    out: Expr = Tuple([expr, *bound], span=expr.span)
    for let in reversed(lets):
        out = Let(let.variable, let.value, out, let.span)
    return out


def end_of_lets(expr: Any) -> Any:
    """The expression behind a chain of lets."""
    while isinstance(expr, Let):
        expr = expr.body
    return expr


def type_says(ty: Type | None) -> str:
    return type_text(ty) if ty is not None else "?"
