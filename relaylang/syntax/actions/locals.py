"""The variables and graph bindings of a text: their scopes while it is read."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping
from typing import Any as AnyValue

from relaylang.diagnostics import error
from relaylang.ir.expr import Expr, TupleGetItem, Var
from relaylang.ir.visit import post_order
from relaylang.ops import OPS
from relaylang.syntax.actions.reports import Reports, shown
from relaylang.syntax.literals import string
from relaylang.syntax.placement import out_of_scope
from relaylang.syntax.synonyms import OTHER_MEMBERS, OTHER_NAMES


def local_key(token: str) -> str:
    """`%name` for a token `%name` or `%"name"`. A quoted number names no graph binding: its key is `%\\0` and the number."""
    if token[1] != '"':
        return token
    name = string(token[1:])
    return "%\0" + name if name[:1].isdigit() else "%" + name


def name_of(key: str) -> str:
    """The name that a key stands for."""
    return key[2:] if key[1:2] == "\0" else key[1:]


class Pending:
    """A let's variable while its value is read. A function in the value may use it; elsewhere its name means `hides`."""

    __slots__ = ("at", "depth", "hides", "reported", "var")

    def __init__(self, var: Var, at: int, depth: int, hides: AnyValue = None) -> None:
        self.var = var
        self.at = at
        self.depth = depth
        self.hides = hides
        self.reported = False


class Locals:
    """The local names in scope.

    `names` maps `%name` to its expression at this point; it is one dict for the whole text. `bind` returns what the name
    hid, and `unbind` puts it back, so that nothing is searched and nothing is copied.
    `ended` holds the statements of ended blocks by name, and where each block ends.
    `again` holds the variables of lets that are read once more: they stay the same where their annotations do.
    `bare` lets names without `%` stand for variables: the documented dialect binds them in patterns.
    """

    __slots__ = (
        "_binders",
        "_gone",
        "again",
        "bare",
        "bindings",
        "ended",
        "first_graph",
        "fn_depth",
        "free_vars",
        "in_def",
        "names",
        "outer",
        "reports",
        "reused",
    )

    def __init__(self, reports: Reports, variables: Mapping[str, Expr] | None = None) -> None:
        self.reports = reports
        self.names: dict[str, AnyValue] = {}
        if variables:
            self.names.update({"%" + k.removeprefix("%"): v for k, v in variables.items()})
        self.outer = dict(self.names)
        #: The names of a fragment's outermost statements, without `%`.
        self.bindings: dict[str, Expr] = {}
        self._binders: dict[str, list[int]] | None = None
        self.free_vars: list[Var] = []
        self.ended: list[tuple[Mapping[str, AnyValue], int]] = []
        self._gone: dict[str, tuple[int, int, AnyValue]] = {}
        self.reused: dict[str, tuple[int, tuple[int, int, AnyValue]]] = {}
        self.in_def = False
        self.fn_depth = 0
        self.bare = False
        self.again: dict[str, Var] = {}
        self.first_graph: int | None = None

    def begin_definition(self) -> None:
        """Begin a function of the module: the names of one mean nothing in another."""
        self._reset()
        self.in_def = True
        self.reports.reported.clear()
        self.reused = {}
        self.first_graph = None

    def end_definition(self) -> None:
        """End a function of the module."""
        self.in_def = False
        self._reset()

    def _reset(self) -> None:
        self.names.clear()
        self.names.update(self.outer)
        self.ended, self._gone = [], {}

    def bind(self, key: str, value: AnyValue) -> AnyValue:
        """Bind a name to a value. Returns the name's earlier value, for `unbind`."""
        old = self.names.get(key)
        self.names[key] = value
        return old

    def unbind(self, key: str, old: AnyValue) -> None:
        """Restore a name's value from before `bind`."""
        if old is None:
            del self.names[key]
        else:
            self.names[key] = old

    def find(self, token: str, at: int) -> Expr:
        """The expression of a variable whose token is not a key of `names`; reports an unknown one."""
        key = local_key(token)
        node = self.names.get(key)
        if node is None and token[1] != '"':
            node = self._projection(key, at)
        if node is None:
            return self._unbound(key, at)
        while node.__class__ is Pending and node.depth == self.fn_depth and node.hides is not None:
            node = node.hides
        if node.__class__ is Pending:
            if node.depth == self.fn_depth:
                if not node.reported:
                    node.reported = True
                    title, also = f"`{shown(key)}` is used in its own value", [(self.reports.place(node.at), "bound here")]
                    notes = ["a let's variable may be used in its own value inside a function only"]
                    self.reports.add(error("R0209", title, self.reports.place(at), "not known yet", also=also, notes=notes))
                return self.reports.unknown_value(at, at, key[1:])
            return node.var
        return node

    def _projection(self, key: str, at: int) -> Expr | None:
        """Fields of a tuple for `%t.0.1`, where `%t` is in scope. The longest name in scope is the tuple's."""
        parts = key.split(".")
        count = len(parts)
        while count > 1 and parts[count - 1].isascii() and parts[count - 1].isdigit() and len(parts[count - 1]) < 10:
            count -= 1
        if count == len(parts):
            return None
        base = None
        # a chain longer than any name is not tried from its end: that would cost the square of its length
        for end in range(len(parts) - 1 if len(parts) < 100 else count, count - 1, -1):
            name = ".".join(parts[:end])
            if name in self.names or (name[1:].isdigit() and len(name) < 12):
                base = name
                break
        if base is None:
            return None
        node = self.names.get(base)
        if node is None:
            node = self._unbound(base, at)
        elif node.__class__ is Pending:
            node = self.find(base, at)
        for index in parts[end:]:
            node = TupleGetItem(node, int(index), self.reports.span(at, at))
        return node

    def _unbound(self, key: str, at: int) -> Expr:
        gone = self._ended_binding(key)
        number = int(key[1:]) if key[1:].isdigit() and key.isascii() and len(key) < 12 else None
        if gone is not None and number is not None and isinstance(gone[2], Expr):
            # TVM numbers the nodes of a whole function, and names a shared one where it first stands
            self.reused.setdefault(key, (at, gone))
            return gone[2]
        reports = self.reports
        if gone is not None:
            self._outside(key, at, gone)
        elif self.in_def or (number is not None and self.first_graph is not None and number >= self.first_graph):
            elsewhere = self._elsewhere(key, at)
            function = f"@{name_of(key)}" if f"@{name_of(key)}" in self._binding_tokens() else None
            notes = [elsewhere] if elsewhere else [] if function else _notes(key, self.names, self.in_def)
            known = () if elsewhere else (name_of(k) for k in self.names)
            reports.unknown("R0201", "variable", name_of(key), reports.place(at), known, "%", notes, function)
        else:
            var = Var(key[1:], None, reports.span(at, at))
            self.free_vars.append(var)
            self.names[key] = var
            return var
        var = reports.unknown_value(at, at, key[1:])
        if gone is None:
            self.names[key] = var
        return var

    def _ended_binding(self, key: str) -> tuple[int, int, AnyValue] | None:
        """A graph binding of an ended block: where it begins, where the block ends, its expression."""
        for statements, end in self.ended:
            self._gone.update({name: (at, end, value) for name, _, value, at, var in statements.values() if var is None})
        self.ended.clear()
        return self._gone.get(key)

    def _binding_tokens(self) -> dict[str, list[int]]:
        """The tokens that bind local names and define functions, by name; those of all functions are under `def`."""
        if self._binders is None:
            tokens, self._binders = self.reports.tokens, {"def": []}
            for at, token in enumerate(tokens):
                before = tokens[at - 1] if at else ""
                if token[:1] == "@" and before == "def":
                    self._binders["def"].append(at)
                elif token[:1] != "%" or not (token[-1] == "=" or tokens[at + 1 : at + 2] == ["="] or before == "let"):
                    continue
                self._binders.setdefault(token.rstrip("(= "), []).append(at)
        return self._binders

    def _elsewhere(self, key: str, at: int) -> str:
        """Where the function binds a name that is unknown at a token; empty where it does not."""
        binders = self._binding_tokens()
        functions, places = binders["def"], binders.get(key, [])
        here = bisect_right(functions, at)
        start = functions[here - 1] if here else 0
        bound = next(iter(places[(first := bisect_right(places, start)) : first + 1]), None)
        if bound is None or bisect_right(functions, bound) != here:
            return ""
        place = self.reports.place(bound)
        if bound > at:
            return f"`{shown(key)}` is bound on line {place.line}, after this use: move the binding in front of it"
        return f"`{shown(key)}` is bound at {place.line}:{place.column}, inside another block: bind it in front of both blocks"

    def _outside(self, key: str, at: int, gone: tuple[int, int, AnyValue], why: str = "") -> None:
        """Report a graph binding that is used behind its block."""
        reports = self.reports
        if reports.once("R0204", key):
            also = [(reports.place(gone[0]), "defined here"), (reports.place(gone[1]), "the block ends here")]
            title = f"`{shown(key)}` is used outside the block that defines it"
            notes = [why] if why else ()
            reports.add(error("R0204", title, reports.place(at), "not known here", also=also, notes=notes))

    def check_reused(self, root: Expr) -> None:
        """Report graph bindings that are used behind their block and need a variable that only the block has."""
        reused, self.reused = self.reused, {}
        if not reused:
            return
        wrong = {id(var): var for var in out_of_scope(root, {id(var) for var in (*self.outer.values(), *self.free_vars)})}
        for key, (at, gone) in reused.items() if wrong else ():
            needed = next((node for node in post_order(gone[2]) if id(node) in wrong), None)
            if needed is not None:
                name = shown(wrong[id(needed)].name_hint)
                self._outside(key, at, gone, f"its value needs `%{name}`, which is bound in that block")


def _notes(key: str, names: Collection[str], inside: bool) -> list[str]:
    """What to do about an unknown variable: `%x.exp` means the operator on `%x`."""
    base, _, member = key.rpartition(".")
    if base in names and member and not member[0].isdigit():
        operator = OTHER_MEMBERS.get(member) or OTHER_NAMES.get(member.lower(), member)
        such = f"operators are called, such as `{operator}({base})`" if operator in OPS else f"`{base}.0` is a tuple's first field"
        return [f"values have no members: {such}"]
    return ["a fragment may leave variables free, a function of a module may not"] if inside else []


__all__ = ["Locals", "Pending", "local_key", "name_of"]
