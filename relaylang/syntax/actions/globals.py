"""The functions, types and constructors of a text, and the callees among its names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from relaylang.ir.expr import Constructor, Expr, Function, GlobalVar, TypeData
from relaylang.ir.module import IRModule
from relaylang.ir.types import GlobalTypeVar, TypeVar
from relaylang.ops import OPS
from relaylang.ops.extensions import find
from relaylang.ops.extensions import names as operator_names
from relaylang.syntax.actions.locals import Locals, Pending
from relaylang.syntax.actions.reports import Reports, shown
from relaylang.syntax.spellings import BY_NAME, OldOp
from relaylang.syntax.synonyms import OTHER_DTYPES, relay_name


class FunctionNames:
    """The functions that a text defines and uses.

    `known` are the variables by name, `used` and `defined` the tokens at which a name first stands. `elsewhere` are the
    functions that other parts of the same text define. With `open`, a text may use functions that nothing defines.
    With `unsure`, the parameters of the next definition could not be read.
    """

    __slots__ = ("defined", "elsewhere", "known", "made", "module", "open", "reports", "unsure", "used")

    def __init__(self, reports: Reports, module: IRModule | None = None, elsewhere: Mapping[str, GlobalVar] | None = None) -> None:
        self.reports = reports
        self.module = module
        self.elsewhere = elsewhere if elsewhere is not None else {}
        self.known: dict[str, GlobalVar] = {} if module is None else {gv.name_hint: gv for gv in module.functions}
        self.used: dict[str, int] = {}
        self.defined: dict[str, int] = {}
        self.open = False
        self.unsure = False
        self.made: dict[GlobalVar, Function] = {}

    def var(self, name: str, at: int) -> GlobalVar:
        """The variable of a function that token `at` uses."""
        var = self.known.get(name) or self.elsewhere.get(name)
        if var is None:
            var = self.known[name] = GlobalVar(name, self.reports.span(at, at))
            self.used[name] = at
        return var

    def declare(self, name: str, at: int) -> None:
        """Enter the name of a definition. A second definition of the name is an error."""
        known = self.defined.get(name)
        if known is not None:
            self.reports.twice(f"function `@{name}`", at, known)
        else:
            self.defined[name] = at

    def define(self, name: str, function: Function, at: int) -> None:
        """Enter a definition. The first one of a name counts. A second one, which is reported, is checked under another name, as
        is one whose parameters could not be read.
        """
        var = self.var(name, at)
        if var in self.made or self.unsure:
            var = GlobalVar(f"{name} at {at}", self.reports.span(at, at))
        self.made[var] = function
        self.unsure = False

    def __contains__(self, name: str) -> bool:
        return name in self.known or name in self.defined or name in self.elsewhere

    def finish(self) -> None:
        """Report the functions that are used and that nothing defines."""
        for name, at in self.used.items():
            if name not in self.defined and name not in self.elsewhere and not self.open:
                known = chain(self.elsewhere, self.defined, self.module._globals if self.module is not None else ())
                self.reports.unknown("R0206", "function", name, self.reports.place(at), known, "@")


class TypeNames:
    """The types, type variables and constructors of a text.

    `variables` are the type variables in scope. `known` are the global types by name, `used` and `defined` the tokens at
    which a name first stands. `elsewhere` are the types that other parts of the same text define.
    """

    __slots__ = (
        "constructors",
        "defined",
        "defined_constructors",
        "elsewhere",
        "found_ahead",
        "known",
        "made",
        "module",
        "promised",
        "reports",
        "used",
        "variables",
    )

    def __init__(self, reports: Reports, module: IRModule | None = None, elsewhere: Mapping[str, GlobalTypeVar] | None = None) -> None:
        self.reports = reports
        self.module = module
        self.elsewhere = elsewhere if elsewhere is not None else {}
        self.variables: dict[str, TypeVar] = {}
        self.known: dict[str, GlobalTypeVar] = {}
        self.used: dict[str, int] = {}
        self.defined: dict[str, int] = {}
        self.made: dict[GlobalTypeVar, TypeData] = {}
        self.constructors: dict[str, Constructor] = {}
        self.defined_constructors: dict[str, int] = {}
        #: Constructors that are used above their definition.
        self.promised: dict[str, Constructor] = {}
        self.found_ahead: dict[str, int] | None = None
        if module is not None:
            self.known.update({var.name_hint: var for var in module.type_definitions})
            for data in module.type_definitions.values():
                self.constructors.update({c.name_hint: c for c in data.constructors})

    # -- types

    def var(self, name: str, at: int, define: bool = False) -> GlobalTypeVar:
        """The variable of a global type that token `at` uses or defines."""
        elsewhere = self.elsewhere.get(name)
        if elsewhere is not None:
            self.used.setdefault(name, at)
            return elsewhere
        var = self.known.get(name)
        if var is None or (define and name not in self.used):
            var = self.known[name] = GlobalTypeVar(name, span=self.reports.span(at, at))
        if name not in self.used:
            self.used[name] = at
        return var

    def open_variables(self, names: Iterable[tuple[str, int]]) -> list[tuple[str, TypeVar | None, TypeVar]]:
        """Put type variables into scope. Returns for each its name, the variable that it hides or None, and itself."""
        opened = []
        seen: dict[str, int] = {}
        for name, at in names:
            if name in seen:
                self.reports.twice(f"type parameter `{name}`", at, seen[name])
            seen[name] = at
            var = TypeVar(name, span=self.reports.span(at, at))
            opened.append((name, self.variables.get(name), var))
            self.variables[name] = var
        return opened

    def close_variables(self, binders: Iterable[tuple[str, TypeVar | None, TypeVar]]) -> None:
        """End the scope of the type variables that `open_variables` returned."""
        for name, old, _ in binders:
            if old is None:
                self.variables.pop(name, None)
            else:
                self.variables[name] = old

    # -- constructors

    def constructor(self, name: str, at: int) -> Constructor | None:
        """The constructor of a name, also where its definition comes further down."""
        constructor = self.constructors.get(name) or self.promised.get(name)
        if constructor is None and name in self.ahead():
            constructor = self.promised[name] = Constructor(name, (), GlobalTypeVar(name), -1, self.reports.span(at, at))
        return constructor

    def has_fields(self, name: str) -> bool:
        """Whether a constructor whose definition comes further down has fields there."""
        at = self.ahead().get(name) if name in self.promised else None
        if at is None:
            return False
        tokens = self.reports.tokens
        behind = tokens[at + 1 : at + 4]
        if tokens[at][-1] == "(":
            return behind[0] != ")"
        return (behind[0] == "(" and behind[1] != ")") or (behind[:2] == [":", "("] and behind[2] != ")")

    def ahead(self) -> dict[str, int]:
        """The names of constructors in the type definitions of the whole text, with their tokens."""
        if self.found_ahead is None:
            self.found_ahead = constructors_in(self.reports.tokens)
        return self.found_ahead

    def finish_constructors(self) -> None:
        """Report the constructors that are used and that nothing defines."""
        for name, ctor in self.promised.items():
            if ctor.span is not None:
                self.reports.unknown("R0202", "constructor", name, self.reports.place(ctor.span.first), self.constructors)

    def finish(self) -> None:
        """Report the types that are used and that nothing defines."""
        in_module = self.module._types if self.module is not None else {}
        for name, at in self.used.items():
            if name not in self.defined and name not in self.elsewhere and name not in in_module:
                self._unknown(name, at)

    def _unknown(self, name: str, at: int) -> None:
        self.known.pop(name)
        scalars = ("int8", "int32", "int64", "uint8", "float16", "float32", "float64", "bool", "Tensor")
        near = OTHER_DTYPES.get(name.lower())
        known = (near,) if near else chain(self.variables, self.known, scalars)
        notes = [_PRELUDE] if name in ("List", "Option", "Tree") else ()
        self.reports.unknown("R0207", "type", name, self.reports.place(at), known, "", notes, near)


_PRELUDE = '`import "prelude.rly"` at the top of the text defines it'


def constructors_in(tokens: Sequence[str]) -> dict[str, int]:
    """The names that stand where a type definition has its constructors, with their tokens."""
    ahead: dict[str, int] = {}
    inside, depth = False, 0
    for i, token in enumerate(tokens):
        if not inside:
            if token == "{" and tokens[i - 1][:1] not in (")", "=") and _is_type_head(tokens, i):
                inside, depth = True, 0
            continue
        if token == "}":
            inside = False
        elif token[-1:] == "(" or token in "[<":
            if depth == 0 and len(token) > 1:
                ahead.setdefault(token[:-1], i)
            depth += 1
        elif token in (")", "]", ">"):
            depth -= 1
        elif (depth == 0 and token[:1].isalpha() and tokens[i - 1] in ("{", ",", ")", "}", "]")) or (
            depth == 0 and token[:1].isalpha() and tokens[i + 1] == ":"
        ):
            ahead.setdefault(token, i)
    return ahead


def _is_type_head(tokens: Sequence[str], brace: int) -> bool:
    """Whether a `{` opens a type definition: `type T {`, `type T[A, B] {`."""
    at = brace - 1
    if tokens[at] in ("]", ">"):
        limit = max(0, at - 64)
        while at > limit and tokens[at] not in ("[", "<"):
            at -= 1
        at -= 1
    return at > 0 and tokens[at - 1] in ("type", "data")


class Callees:
    """Resolves bare names: operators, constructors, variables of the documented dialect."""

    __slots__ = ("functions", "locals", "reports", "types")

    def __init__(self, reports: Reports, locals: Locals, functions: FunctionNames, types: TypeNames) -> None:
        self.reports = reports
        self.locals = locals
        self.functions = functions
        self.types = types

    def find(self, name: str, at: int, end: int) -> Expr:
        """The callee of a bare name, the first `end` characters of token `at`; reports an unknown one."""
        op = OPS.get(name)
        if op is not None:
            return op
        if self.locals.bare:
            local = self.locals.names.get("%" + name)
            if local is not None:
                return local if local.__class__ is not Pending else local.var
        ctor = self.types.constructor(name, at)
        if ctor is not None:
            return ctor
        op = find(name)
        if op is not None:
            return op
        if name in BY_NAME and self._opens(at):
            return OldOp(name)
        self._unknown(name, at, end)
        return self.reports.unknown_value(at, at, name)

    def _unknown(self, name: str, at: int, end: int) -> None:
        upper = name[:1].isupper()
        kind = "operator or constructor" if upper else "operator"
        known: Iterable[str] = chain(self.types.constructors, self.types.ahead())
        near = None
        notes = []
        if "%" + name in self.locals.names:
            near, notes = "%" + name, [f"`%{shown(name)}` is a variable; a bare name is an operator or a constructor"]
        elif name in self.functions:
            near, notes = "@" + name, [f"`@{shown(name)}` is a function; a bare name is an operator or a constructor"]
        elif (other := relay_name(name)) is not None:
            near = other
        elif name in ("Cons", "Nil"):
            notes = ["`type List[A] { Cons(A, List[A]), Nil, }` defines it: a text defines the types that it uses"]
        elif upper and (same := _written_small(name)) is not None:
            near = same
        elif not upper:
            known = chain(operator_names(), ("ref", "ref_read", "ref_write"), known)
        if self.reports.tokens[at + 1 : at + 2] == ["=="]:
            notes.append("an attribute is given with one `=`")
        self.reports.unknown("R0202", kind, name, self.reports.within(at, 0, end), known, "", notes, near)

    def _opens(self, at: int) -> bool:
        """Whether the name at a token is called."""
        tokens = self.reports.tokens
        return tokens[at][-1] == "(" or tokens[at + 1 : at + 2] == ["("]


def _written_small(name: str) -> str | None:
    """The operator that another framework writes with capitals: `Add`, `Relu`, `BatchNorm`."""
    small = name.lower()
    names = [op for op in operator_names() if op.rpartition(".")[2].replace("_", "") == small]
    return min(names, key=len, default=None)


__all__ = ["Callees", "FunctionNames", "TypeNames", "constructors_in"]
