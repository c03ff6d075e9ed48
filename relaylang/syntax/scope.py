"""What a text's names mean while it is read: variables, graph bindings, functions, types, constructors, operators."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain, islice
from typing import Any as AnyValue

from relaylang.diagnostics import Diagnostic, Diagnostics, Fix, did_you_mean, error
from relaylang.diagnostics.source import Span
from relaylang.ir.expr import Constructor, Expr, Function, GlobalVar, MetaRef, TupleGetItem, TypeData, Var
from relaylang.ir.module import IRModule
from relaylang.ir.types import GlobalTypeVar, IncompleteType, Type, TypeVar
from relaylang.ir.visit import post_order
from relaylang.ops import OPS
from relaylang.ops.extensions import find
from relaylang.ops.extensions import names as operator_names
from relaylang.syntax import codes as codes  # defines what is reported here
from relaylang.syntax.othernames import OTHER_DTYPES, OTHER_NAMES
from relaylang.syntax.placement import out_of_scope
from relaylang.syntax.spellings import BY_NAME, OldOp, Spelling, version_of
from relaylang.syntax.tokens import TokenSource
from relaylang.syntax.values import bad_escapes, string

#: Names longer than this are cut where they are shown.
_SHOWN = 60
#: How many known names a misspelt one is compared with.
_COMPARED = 50_000


class Pending:
    """A let's variable while its value is read: functions in the value may use it, anything else means what it `hides`."""

    __slots__ = ("at", "depth", "hides", "told", "var")

    def __init__(self, var: Var, at: int, depth: int, hides: AnyValue = None) -> None:
        self.var = var
        self.at = at
        self.depth = depth
        self.hides = hides
        self.told = False


def shown(name: str) -> str:
    name = name.replace("\0", "")
    return name if len(name) <= _SHOWN else name[: _SHOWN - 1] + "…"


def local_key(token: str) -> str:
    """`%name` for a token `%name` or `%"name"`. A quoted number is no graph name: its key is `%\\0` and the number."""
    if token[1] != '"':
        return token
    name = string(token[1:])
    return "%\0" + name if name[:1].isdigit() else "%" + name


def name_of(key: str) -> str:
    """The name that a key stands for."""
    return key[2:] if key[1:2] == "\0" else key[1:]


class Scope:
    """The state of one reading.

    `names` maps `%name` to what it stands for at this point. Whoever binds a name keeps what it hid and puts it back at its
    block's end, so nothing is searched and nothing is copied.
    """

    def __init__(
        self,
        source: TokenSource,
        tokens: list[str],
        module: IRModule | None = None,
        variables: Mapping[str, Expr] | None = None,
        meta: Mapping[str, list[AnyValue]] | None = None,
    ) -> None:
        self.source = source
        self.tokens = tokens
        self.said = Diagnostics()
        self.told: set[tuple[str, str]] = set()
        self.names: dict[str, AnyValue] = {}
        for name, value in (variables or {}).items():
            self.names["%" + name.removeprefix("%")] = value
        self.outer = dict(self.names)
        self.bindings: dict[str, Expr] = {}
        self.versioned = False
        #: The version of TVM that wrote the text, where it says so; calls of old spellings, by their row: the first's token.
        self.version = version_of(source.text, source.end)
        self.respelled: dict[Spelling, list[int]] = {}
        self.deferred: dict[int, Diagnostic] = {}
        #: Graph bindings whose block has ended: where they begin, where it ends, what they stand for.
        self.gone: dict[str, tuple[int, int, AnyValue]] = {}
        self.reused: dict[str, tuple[int, tuple[int, int, AnyValue]]] = {}
        self.in_def = False
        self.fn_depth = 0
        self.in_case = False
        self.bare = False
        self.first_graph: int | None = None
        self.free_vars: list[Var] = []
        self.type_vars: dict[str, TypeVar] = {}
        self.meta = meta
        self.meta_refs: dict[str, AnyValue] = {}
        self.missing: list[MetaRef] = []
        self.depths: dict[int, tuple[int, AnyValue]] = {}  # how deep lists and maps among attributes' values nest
        self.meta_attrs: dict[tuple[AnyValue, int], tuple[AnyValue, AnyValue]] = {}  # attributes made of a section's nodes
        #: Metadata that is no expression and stands where one is wanted, by token; a call takes it as its attributes.
        self.loose: dict[int, tuple[str, str]] = {}
        self.dim_metas: dict[str, TypeVar] = {}
        # functions and types, by name: what is known, what this text defines, where each was first used
        self.globals: dict[str, GlobalVar] = {}
        self.global_types: dict[str, GlobalTypeVar] = {}
        self.ctors: dict[str, Constructor] = {}
        self.promised_ctors: dict[str, Constructor] = {}
        self.used_globals: dict[str, int] = {}
        self.open_globals = False  # whether functions may be used that nothing defines
        self.used_types: dict[str, int] = {}
        self.defined_globals: dict[str, int] = {}
        self.defined_types: dict[str, int] = {}
        self.defined_ctors: dict[str, int] = {}
        self.functions: dict[GlobalVar, Function] = {}
        self.types: dict[GlobalTypeVar, TypeData] = {}
        self.ahead: dict[str, int] | None = None
        self.pattern_names: list[tuple[str, AnyValue, int]] = []
        if module is not None:
            self.globals.update({gv.name_hint: gv for gv in module.functions})
            self.global_types.update({gtv.name_hint: gtv for gtv in module.type_definitions})
            for data in module.type_definitions.values():
                self.ctors.update({c.name_hint: c for c in data.constructors})
        self.module = module

    # -- places and reports

    def span(self, first: int, last: int) -> Span:
        return Span(self.source, first, last)

    def place(self, first: int, last: int | None = None) -> Span:
        """A span by offsets, as diagnostics have it."""
        return self.source.offsets(first, last)

    def within(self, at: int, start: int, end: int) -> Span:
        """A span inside token `at`, by offsets from its beginning."""
        begin = self.source.start_of(at)
        return Span(self.source.plain, begin + start, begin + end)

    def report(self, diagnostic: Diagnostic) -> None:
        self.said.add(diagnostic)

    def once(self, code: str, name: str) -> bool:
        """Whether this is the first complaint of its kind about a name."""
        key = (code, name)
        if key in self.told:
            return False
        self.told.add(key)
        return True

    def twice(self, what: str, at: int, before: int) -> None:
        self.report(
            error(
                "R0205",
                f"{what} is defined twice",
                self.place(at),
                "here again",
                also=[(self.place(before), "first here")],
            )
        )

    def unknown(
        self,
        code: str,
        what: str,
        name: str,
        span: Span,
        known: Iterable[str],
        sign: str = "",
        notes: Iterable[str] = (),
        near: str | None = None,
    ) -> None:
        """Report a name that means nothing, with the nearest known one, or with `near`, the name that was meant."""
        if not self.once(code, name):
            return
        if self.said.errors >= self.said.limit:
            self.said.errors += 1
            return
        if near is None:
            meant = did_you_mean(name, islice(known, _COMPARED))
            near = sign + meant if meant else None
        fix = Fix(span, near, f"did you mean `{shown(near)}`?") if near else None
        self.report(error(code, f"unknown {what} `{sign}{shown(name)}`", span, "not known here", notes=notes, fix=fix))

    # -- local variables and graph bindings

    def bind(self, key: str, value: AnyValue) -> AnyValue:
        """Let a name stand for a value. Returns what it stood for, for `unbind`."""
        old = self.names.get(key)
        self.names[key] = value
        return old

    def unbind(self, key: str, old: AnyValue) -> None:
        if old is None:
            del self.names[key]
        else:
            self.names[key] = old

    def find_local(self, token: str, at: int) -> Expr:
        """What a variable that is not in scope by its own text stands for; otherwise says that it is unknown."""
        key = local_key(token)
        node = self.names.get(key)
        if node is None and token[1] != '"':
            node = self._projection(key, at)
        if node is None:
            return self._unbound(key, at)
        while node.__class__ is Pending and node.depth == self.fn_depth and node.hides is not None:
            node = node.hides
        if node.__class__ is Pending:
            if node.depth == self.fn_depth and not node.told:
                node.told = True
                self.report(
                    error(
                        "R0209",
                        f"`{shown(key)}` is used in its own value",
                        self.place(at),
                        "not known yet",
                        also=[(self.place(node.at), "bound here")],
                        notes=["a let's variable may be used in its own value inside a function only"],
                    )
                )
            return node.var
        return node

    def _projection(self, key: str, at: int) -> Expr | None:
        """Fields of a tuple for `%t.0.1`, where `%t` is in scope; the longest name that is in scope is the tuple's."""
        parts = key.split(".")
        count = len(parts)
        while count > 1 and parts[count - 1].isascii() and parts[count - 1].isdigit() and len(parts[count - 1]) < 10:
            count -= 1
        if count == len(parts):
            return None
        base = None
        # a chain that is longer than any name is not tried from its end, which would cost the square of its length
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
            node = self.find_local(base, at)
        for index in parts[end:]:
            node = TupleGetItem(node, int(index), self.span(at, at))
        return node

    def _unbound(self, key: str, at: int) -> Expr:
        gone = self.gone.get(key)
        number = int(key[1:]) if key[1:].isdigit() and key.isascii() and len(key) < 12 else None
        if gone is not None and number is not None and isinstance(gone[2], Expr):
            # TVM numbers the nodes of a whole function, and names a shared one where it first stands
            self.reused.setdefault(key, (at, gone))
            return gone[2]
        if gone is not None:
            self.outside(key, at, gone)
        elif self.in_def or (number is not None and self.first_graph is not None and number >= self.first_graph):
            self.unknown(
                "R0201", "variable", name_of(key), self.place(at), (name_of(k) for k in self.names), "%",
                ["a fragment may leave variables free, a function of a module may not"] if self.in_def else (),
            )  # fmt: skip
        else:
            var = Var(key[1:], None, self.span(at, at))
            self.free_vars.append(var)
            self.names[key] = var
            return var
        var = Var(key[1:], IncompleteType(), self.span(at, at))
        if gone is None:
            self.names[key] = var
        return var

    def outside(self, key: str, at: int, gone: tuple[int, int, AnyValue], why: str = "") -> None:
        """Report a graph binding that is used where its block has ended."""
        if self.once("R0204", key):
            self.report(
                error(
                    "R0204",
                    f"`{shown(key)}` is used outside the block that defines it",
                    self.place(at),
                    "not known here",
                    also=[(self.place(gone[0]), "defined here"), (self.place(gone[1]), "the block ends here")],
                    notes=[why] if why else (),
                )
            )

    def check_reused(self, root: Expr) -> None:
        """Report graph bindings that are used outside their block and need a variable that only the block has."""
        reused, self.reused = self.reused, {}
        if not reused:
            return
        wrong = {id(var): var for var in out_of_scope(root, {id(var) for var in (*self.outer.values(), *self.free_vars)})}
        for key, (at, gone) in reused.items() if wrong else ():
            needed = next((node for node in post_order(gone[2]) if id(node) in wrong), None)
            if needed is not None:
                name = shown(wrong[id(needed)].name_hint)
                self.outside(key, at, gone, f"its value needs `%{name}`, which is bound in that block")

    # -- functions, types, constructors, operators

    def global_var(self, name: str, at: int) -> GlobalVar:
        var = self.globals.get(name)
        if var is None:
            var = self.globals[name] = GlobalVar(name, self.span(at, at))
            self.used_globals[name] = at
        return var

    def global_type(self, name: str, at: int, define: bool = False) -> GlobalTypeVar:
        var = self.global_types.get(name)
        if var is None or (define and name not in self.used_types):
            var = self.global_types[name] = GlobalTypeVar(name, span=self.span(at, at))
        if name not in self.used_types:
            self.used_types[name] = at
        return var

    def unknown_type(self, name: str, at: int) -> None:
        scalars = ("int8", "int32", "int64", "uint8", "float16", "float32", "float64", "bool", "Tensor")
        near = OTHER_DTYPES.get(name.lower())
        known = (near,) if near else chain(self.type_vars, self.global_types, scalars)
        notes = ["`type List[A] { Cons(A, List[A]), Nil, }` defines it"] if name == "List" else ()
        self.unknown("R0207", "type", name, self.place(at), known, "", notes, near)

    def close_type_vars(self, binders: Iterable[tuple[str, TypeVar | None, TypeVar]]) -> None:
        for name, old, _ in binders:
            if old is None:
                self.type_vars.pop(name, None)
            else:
                self.type_vars[name] = old

    def _definitions_ahead(self) -> dict[str, int]:
        """Names that stand where a type definition has its constructors, anywhere in the text."""
        if self.ahead is None:
            ahead: dict = {}
            self.ahead = ahead
            inside, depth = False, 0
            for i, token in enumerate(self.tokens):
                if not inside:
                    if token == "{" and self.tokens[i - 1][:1] not in (")", "=") and self._is_type_head(i):
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
                elif (depth == 0 and token[:1].isalpha() and self.tokens[i - 1] in ("{", ",", ")", "}", "]")) or (
                    depth == 0 and token[:1].isalpha() and self.tokens[i + 1] == ":"
                ):
                    ahead.setdefault(token, i)
        return self.ahead

    def _is_type_head(self, brace: int) -> bool:
        """Whether a `{` opens a type definition: `type T {`, `type T[A, B] {`."""
        at = brace - 1
        if self.tokens[at] in ("]", ">"):
            limit = max(0, at - 64)
            while at > limit and self.tokens[at] not in ("[", "<"):
                at -= 1
            at -= 1
        return at > 0 and self.tokens[at - 1] in ("type", "data")

    def constructor(self, name: str, at: int) -> Constructor | None:
        """The constructor of a name, also where its definition comes further down."""
        found = self.ctors.get(name) or self.promised_ctors.get(name)
        if found is None and name in self._definitions_ahead():
            found = self.promised_ctors[name] = Constructor(name, (), GlobalTypeVar(name), -1, self.span(at, at))
        return found

    def find_callee(self, name: str, at: int, end: int) -> Expr:
        """An operator, a constructor or a variable of the documented dialect, by its bare name."""
        op = OPS.get(name)
        if op is not None:
            return op
        if self.bare:
            local = self.names.get("%" + name)
            if local is not None:
                return local if local.__class__ is not Pending else local.var
        ctor = self.constructor(name, at)
        if ctor is not None:
            return ctor
        op = find(name)
        if op is not None:
            return op
        if name in BY_NAME and self.opens(at):
            return OldOp(name)
        upper = name[:1].isupper()
        kind = "operator or constructor" if upper else "operator"
        known: Iterable[str] = chain(self.ctors, self._definitions_ahead())
        near = None
        notes = []
        if "%" + name in self.names:
            near, notes = "%" + name, [f"`%{shown(name)}` is a variable; a bare name is an operator or a constructor"]
        elif name in self.globals or name in self.defined_globals:
            near, notes = "@" + name, [f"`@{shown(name)}` is a function; a bare name is an operator or a constructor"]
        elif name.lower() in OTHER_NAMES:
            near = OTHER_NAMES[name.lower()]
        elif name in ("Cons", "Nil"):
            notes = ["`type List[A] { Cons(A, List[A]), Nil, }` defines it: a text defines the types that it uses"]
        elif not upper:
            known = chain(operator_names(), ("ref", "ref_read", "ref_write"), known)
        if self.tokens[at + 1 : at + 2] == ["=="]:
            notes.append("an attribute is given with one `=`")
        self.unknown("R0202", kind, name, self.within(at, 0, end), known, "", notes, near)
        return Var(name, IncompleteType(), self.span(at, at))

    def opens(self, at: int) -> bool:
        """Whether the name at a token is called."""
        return self.tokens[at][-1] == "(" or self.tokens[at + 1 : at + 2] == ["("]

    # -- values of the metadata section

    def meta_value(self, token: str, at: int) -> AnyValue:
        """What `meta[key][n]` stands for: the section's value, or a `MetaRef` where there is none."""
        head, _, comment = token.partition("/*")
        key, _, number = head[5:].rstrip().rstrip("]").partition("][")
        if self.meta is not None:
            found = self.meta.get(key)
            if found is not None and len(number) < 10 and int(number) < len(found) and found[int(number)] is not None:
                return found[int(number)]
        name = f"{key}][{number}"
        known = self.meta_refs.get(name)
        if known is None:
            if len(number) > 9:
                self.report(error("R0105", "the number of a metadata value is too large", self.place(at)))
                number = "0"
            ty = self.comment_type(comment) if comment else None
            known = self.meta_refs[name] = MetaRef(key, int(number), ty, self.span(at, at))
            self.missing.append(known)
        elif comment and known.type_annotation is None:
            known.type_annotation = self.comment_type(comment)
        return known

    def comment_type(self, comment: str) -> Type | None:
        """The type that a comment behind an expression states, or None where it states none that can be read."""
        raise AssertionError("the reader gives this")

    # -- the end

    def check_escapes(self) -> None:
        """Report escapes in strings that lack their digits."""
        for at, token in enumerate(self.tokens):
            if "\\" in token and token[0] not in "/#":
                for start, problem in bad_escapes(token):
                    self.report(error("R0105", problem, self.within(at, start, start + 2)))

    def finish(self) -> None:
        """Report the functions, types and constructors that were used and never defined, and what waited for its end."""
        for diagnostic in self.deferred.values():
            self.report(diagnostic)
        if "\\" in self.source.text:
            self.check_escapes()
        for at, (token, kind) in self.loose.items():
            what = shown(token.partition("/*")[0].strip())
            notes = ["it may stand last in a call, as the call's attributes"] if kind == "attributes" else []
            self.report(error("R0103", f"`{what}` holds {kind} and is not an expression", self.place(at), notes=notes))
        for name, ctor in self.promised_ctors.items():
            if ctor.span is not None:
                self.unknown("R0202", "constructor", name, self.place(ctor.span.first), self.ctors)
        for name, at in self.used_globals.items():
            if name not in self.defined_globals and not self.open_globals:
                known = chain(self.defined_globals, self.module._globals if self.module is not None else ())
                self.unknown("R0206", "function", name, self.place(at), known, "@")
        known_types = self.module._types if self.module is not None else {}
        for name, at in self.used_types.items():
            if name not in self.defined_types and name not in known_types:
                self.global_types.pop(name, None)
                self.unknown_type(name, at)
