"""Expressions as Relay text.

Variables, globals, constants, operators and constructors stand in line. Every other node gets a graph name, `%n = ...;`, in the
scope that meets it first. A scope's last expression and a let's value get none where they are used once. Function bodies,
branches, match arms and what follows a let are scopes. Graph names are counted through the whole printout.

Nothing recurses on the program's depth. An explicit stack walks data flow. Each node that opens a scope is a generator,
driven by `walk`. A scope's text is a nested list of strings, joined once at the end.
"""

from __future__ import annotations

from typing import Any as AnyValue

from relaylang.ir.expr import (
    Call,
    Constant,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Match,
    MetaRef,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from relaylang.ir.types import FuncType, TensorType
from relaylang.ir.visit import Walk, free_vars, walk
from relaylang.ops.record import Op
from relaylang.syntax.attribute_text import AttributeText
from relaylang.syntax.literal_text import scalar_text
from relaylang.syntax.name_text import Names, global_text
from relaylang.syntax.placement import LEAVES, ScopeKey, missing_values, place, shared_nodes
from relaylang.syntax.rope import Lines, Moved, Text
from relaylang.syntax.type_text import TypeText

#: The deepest level of indentation. Deeper levels are not indented further. So a nest's text grows with its size, and
#: not with the square of it.
MAX_LEVEL = {"lossless": 40, "tvm": 400}

#: The nodes whose type is shown behind them.
ANNOTATED = frozenset({Constant, Call, Var, Function, Tuple, TupleGetItem})


class Crossing(Exception):
    """A graph name would stand outside the scope that defines it: the nodes' places must be worked out beforehand."""


class ExpressionText:
    """The expressions of one printout. `careful` works out beforehand where shared nodes belong."""

    def __init__(self, root: AnyValue, style: str, show_types: bool, section: bool, show_spans: bool, careful: bool = False) -> None:
        self.root = root
        self.show_spans = show_spans
        self.missing: set[tuple[str, int]] | None = None  # places in the metadata section that must stay empty
        self.style = style
        self.tvm = style == "tvm"
        self.careful = careful
        self.show_types = show_types
        self.meta: dict[str, list[AnyValue]] = {}
        self.meta_texts: dict[int, str] = {}
        self.types = TypeText(style, self.meta_text)
        self.attributes = AttributeText(style, self.meta_text, section, self.types.extent)
        self.names = Names(style)
        self.counter = 0
        self.deepest = MAX_LEVEL[style]
        self.lines = ["\n"]  # line ends, by the level of the next line
        self.texts: dict[Expr, Text] = {}  # the own text of a node that is visited and not yet referred to
        self.refs: dict[Expr, str] = {}  # how a node is referred to that may be referred to again; "" once its scope has ended
        self.levels: dict[Expr, int] = {}  # the level at which a node's nested text was made
        self.free: dict[Expr, str] = {}  # the declarations of free variables that are visited, but not yet used
        self.kept: list[AnyValue] = []  # keeps values alive whose `id` is a key above
        self.start(None)

    def start(self, root: Expr | None) -> None:
        """Make ready for one definition. TVM's style keeps the names of earlier definitions."""
        if not self.tvm:
            self.texts, self.refs, self.free = {}, {}, {}
        self.shared = set() if root is None else shared_nodes(root)
        self.places = place(root) if self.careful and root is not None else None
        self.scopes: dict[ScopeKey, tuple[Lines, int, list[Expr]]] = {}
        self.doc = Lines()
        self.level = 0
        self.hoisted: list[Expr] = []  # the shared nodes that have graph names in this scope
        self.scopes[()] = (self.doc, self.level, self.hoisted)

    # -- leaves

    def line(self, level: int) -> str:
        """A line end and the indentation behind it."""
        if level > self.deepest:
            level = self.deepest
        lines = self.lines
        while level >= len(lines):
            lines.append(lines[-1] + "  ")
        return lines[level]

    def meta_text(self, type_key: str, value: AnyValue) -> str:
        """`meta[key][n]` for a value that stands in the metadata section."""
        text = self.meta_texts.get(id(value))
        if text is None:
            if self.missing is None:
                self.missing = missing_values(self.root)
            values = self.meta.setdefault(type_key, [])
            while (type_key, len(values)) in self.missing:
                values.append(None)
            text = f"meta[{type_key}][{len(values)}]"
            values.append(value)
            self.meta_texts[id(value)] = text
        return text

    def info(self, node: Expr) -> str:
        """` /* ty=... */` where the type is known, with ` span=...` if the places are wanted, or a script states them."""
        ty = node.checked_type
        said = "" if ty is None or not self.show_types else self.types.comment(ty)
        if node.span is not None and (self.show_spans or node.span.stated):
            place = str(node.span).replace("*/", "* /").replace("/*", "/ *").replace("\n", " ")
            said = f"{said[:-3]} span={place} */" if said else f" /* span={place} */"
        return said

    def bind(self, var: Var) -> str:
        """Name a variable where it is bound. Returns the binder's text: the name with the variable's type."""
        if self.tvm and var in self.refs:
            return self.refs[var] + "-malformed-ir"
        name = self.names.local(var.name_hint)
        self.refs[var] = name
        annotation = var.type_annotation
        ty = var.checked_type if self.show_types else None
        if annotation is None and self.tvm:
            annotation = ty
        if var.virtual_device is not None:
            name = f"{name} {{virtual_device={self.attributes.value(var.virtual_device)}}}"
        if annotation is not None:
            name = f"{name}: {self.types.text(annotation)}"
        return name if ty is None and var.span is None else name + self.info(var)

    def leaf(self, node: Expr) -> None:
        """Make the text of a node that always stands in line."""
        match node:
            case Var():
                self.free[node] = self.bind(node)
                self.texts[node] = self.refs.pop(node)
                return
            case Constant():
                literal = scalar_text(node.data, node.dtype, self.style)
                text = (self.meta_text("relay.Constant", node) if literal is None else literal) + self.info(node)
            case GlobalVar():
                text = "@" + node.name_hint if self.tvm else global_text(node.name_hint)
            case MetaRef():
                ty = node.type_annotation if node.checked_type is None else node.checked_type
                text = node.name_hint + ("" if ty is None or not self.show_types else self.types.comment(ty))
            case Constructor():
                text = node.name_hint
            case _:
                text = node.name  # type: ignore[attr-defined]
        self.refs[node] = text

    # -- references

    def ref(self, node: Expr) -> str:
        """The reference to a visited node from inside another: in line, or by a graph name."""
        return self.refs.get(node) or self.name(node)

    def name(self, node: Expr) -> str:
        """The name of a node that has none yet. Its definition stands in front of the text that follows."""
        return self.declare(node) if type(node) is Var else self.hoist(node)

    def declare(self, var: Var) -> str:
        """Declare a variable that nothing binds, where it is first used."""
        name = self.refs[var] = str(self.texts.pop(var))
        self.doc.add(f"free_var {self.free[var]};{self.line(self.level)}")
        return name

    def hoist(self, node: Expr) -> str:
        """`%n = ...;` for a visited node, in the current scope or where it belongs. Returns `%n`."""
        name = f"%{self.counter}"
        doc, level, hoisted = self.doc, self.level, self.hoisted
        if self.tvm:
            self.refs[node] = name
        else:
            if node in self.refs:
                raise Crossing
            if self.places is not None:
                doc, level, hoisted = self.scopes[self.places[id(node)]]
            if node in self.shared:
                hoisted.append(node)
                self.refs[node] = name
        self.counter += 1
        text = self.texts.pop(node)
        info = self.info(node) if type(node) in ANNOTATED else ""
        line = self.line(level)
        if type(text) is str:
            doc.add(f"{name} = {text}{info};{line}")
            return name
        home = self.levels[node]
        if home != level:
            text = [Moved(text, level - home)]
        if type(node) is Let:
            text = ["(", self.line(level + 1), text, line, ")"]
        doc += [f"{name} = ", text, f"{info};{line}"]
        return name

    def finish(self, node: Expr) -> Text:
        """The text of a let's value or of a scope's last node: in line if it is used once."""
        if node in self.refs or node in self.shared or type(node) is Var:
            return self.ref(node)
        text = self.texts[node] if self.tvm else self.texts.pop(node)
        info = self.info(node) if type(node) in ANNOTATED else ""
        if type(text) is str:
            return text + info
        return [text, info] if info else text

    # -- data flow

    def is_visited(self, node: Expr) -> bool:
        """Whether a node has its own text, or a name."""
        return node in self.refs or node in self.texts

    def expand(self, root: Expr, wrap: bool = True, at: int | None = None) -> Walk:
        """Make the text of a node and of everything that it is computed from, operators and arguments first.

        Children get graph names when their parent's text is made, not when their own is. `wrap`: if the root
        is a let, it will stand in parentheses. `at`: the level at which the root stands, if not at the scope's.
        """
        texts = self.texts
        stack: list[Expr] = [root]
        while self.flow(stack):
            node = stack[-1]
            level = self.level
            if self.places is not None:
                level = self.scopes[self.places[id(node)]][1]
            if node is root and at is not None:
                level = at
            self.levels[node] = level
            if type(node) is Let:
                texts[node] = yield self.let(node, level + (wrap or node is not root))  # type: ignore[assignment]
            else:
                texts[node] = yield _NESTED[type(node)](self, node, level)  # type: ignore[assignment]
            stack.pop()
        return ""

    def flow(self, stack: list[Expr]) -> bool:
        """Make the texts of a stack's nodes and of what they are computed from. Whether a node that opens scopes is next."""
        texts, refs = self.texts, self.refs
        push = stack.append
        while stack:
            node = stack[-1]
            if node in texts or node in refs:
                stack.pop()
                continue
            kind = type(node)
            height = len(stack)
            if kind is Call:
                for arg in node.args[::-1]:  # type: ignore[attr-defined]
                    if arg not in refs and arg not in texts:
                        push(arg)
                op = node.op  # type: ignore[attr-defined]
                if type(op) is not Op and not self.is_visited(op):
                    push(op)
                if len(stack) > height:
                    continue
                texts[node] = self.call(node)  # type: ignore[arg-type]
            elif kind is Tuple:
                for arg in node.fields[::-1]:  # type: ignore[attr-defined]
                    if arg not in refs and arg not in texts:
                        push(arg)
                if len(stack) > height:
                    continue
                parts = [refs.get(arg) or self.name(arg) for arg in node.fields]  # type: ignore[attr-defined]
                texts[node] = f"({', '.join(parts)},)" if len(parts) == 1 else f"({', '.join(parts)})"
            elif kind is TupleGetItem:
                value = node.tuple_value  # type: ignore[attr-defined]
                if not self.is_visited(value):
                    push(value)
                    continue
                texts[node] = self.projection(node)  # type: ignore[arg-type]
            elif kind is RefCreate or kind is RefRead:
                value = node.value if kind is RefCreate else node.ref  # type: ignore[attr-defined]
                if not self.is_visited(value):
                    push(value)
                    continue
                texts[node] = f"{'ref' if kind is RefCreate else 'ref_read'}({self.ref(value)})"
            elif kind in LEAVES:
                self.leaf(node)
            else:
                return True
            stack.pop()
        return False

    def call(self, node: Call) -> str:
        """A call whose arguments and operator have been visited."""
        refs = self.refs
        args = [refs.get(arg) or self.name(arg) for arg in node.args]
        op = node.op
        if node.attrs is not None:
            args += self.attributes.call(node.attrs, type(op) is Op)
        if not self.tvm and type(op) is not Op and node.type_args and all(type(t) is TensorType for t in node.type_args):
            args += [self.types.tensor(t) for t in node.type_args]  # type: ignore[arg-type]
        if not args and type(op) is Constructor and not op.inputs:
            return op.name_hint
        callee = op.name if type(op) is Op else self.ref(op)
        if type(op) is Constant and not self.tvm:
            callee = f"({callee})"
        return f"{callee}({', '.join(args)})"

    def projection(self, node: TupleGetItem) -> str:
        """`t.1`, with parentheses where the bare text would be a number's or a name's."""
        text = self.ref(node.tuple_value)
        if self.tvm:
            return f"{text}.{node.index}"
        kind = type(node.tuple_value)
        if (kind in LEAVES and kind is not Var) or f"{text[1:]}.{node.index}" in self.names:
            return f"({text}).{node.index}"
        return f"{text}.{node.index}"

    # -- nodes that open scopes

    def scope(self, body: Expr, key: ScopeKey, level: int) -> Walk:
        """A body with everything that is hoisted in it."""
        doc, old, hoisted = self.doc, self.level, self.hoisted
        mine: tuple[Lines, int, list[Expr]] = (Lines(), level, [])
        self.doc, self.level, self.hoisted = mine
        self.scopes[key] = mine
        if not self.is_visited(body):
            yield self.expand(body, body in self.shared)
        self.doc.append(self.finish(body))
        self.close()
        self.doc, self.level, self.hoisted = doc, old, hoisted
        return mine[0]

    def close(self) -> None:
        """The current scope ends: its graph names stand for nothing any more."""
        self.refs.update(dict.fromkeys(self.hoisted, ""))

    def let(self, node: Let, level: int) -> Walk:
        """A chain of lets. The graph bindings that a value needs stand between its let and the one before."""
        doc, old, hoisted = self.doc, self.level, self.hoisted
        line = self.line(level)
        mine, inner = Lines(), list[Expr]()  # all scopes of the chain end together
        rest: Expr = node
        while type(rest) is Let:
            if rest is not node and not self.tvm and rest in self.shared:
                break
            name = self.bind(rest.variable)
            value = rest.value
            parens = type(value) is Let and not self.tvm
            if not self.is_visited(value):
                shared = value in self.shared
                yield self.expand(value, parens or shared, None if shared else level)
            text = self.finish(value)
            if parens and type(text) is not str:
                text = ["(", self.line(level + 1), text, line, ")"]
            if type(text) is str:
                mine.add(f"let {name} = {text};{line}")
            else:
                mine += [f"let {name} = ", text, f";{line}"]
            self.doc, self.level, self.hoisted = mine, level, inner
            if self.places is not None:
                self.scopes[(id(rest), 0)] = (mine, level, inner)
            rest = rest.body
        if not self.is_visited(rest):
            yield self.expand(rest, rest in self.shared)
        mine.append(self.finish(rest))
        self.close()
        self.doc, self.level, self.hoisted = doc, old, hoisted
        return mine

    def conditional(self, node: If, level: int) -> Walk:
        """`if (c) { a } else { b }`"""
        if not self.is_visited(node.cond):
            yield self.expand(node.cond)
        head = f"if ({self.ref(node.cond)}) {{{self.line(level + 1)}"
        line = self.line(level)
        then = yield self.scope(node.true_branch, (id(node), 0), level + 1)
        other = yield self.scope(node.false_branch, (id(node), 1), level + 1)
        return [head, then, f"{line}}} else {{{self.line(level + 1)}", other, f"{line}}}"]

    def function(self, node: Function, level: int, prefix: str = "fn ") -> Walk:
        """`fn [A](%x: T, key=value) -> T { body }`, or a definition with `prefix` in place of the `fn`."""
        type_params = self.types.enter(node.type_params)
        generics = f"[{', '.join(type_params)}]" if type_params else ""
        params = [self.bind(p) for p in node.params]
        if node.attrs:
            params += self.attributes.dictionary(node.attrs)
        ty = node.ret_type
        if ty is None and self.tvm and self.show_types and isinstance(node.checked_type, FuncType):
            ty = node.checked_type.ret_type
        arrow = "" if ty is None else f"-> {self.types.text(ty)} "
        head = f"{prefix}{generics}({', '.join(params)}) {arrow}{{{self.line(level + 1)}"
        body = yield self.scope(node.body, (id(node), 0), level + 1)
        self.types.leave(node.type_params, type_params)
        return [head, body, f"{self.line(level)}}}"]

    def match(self, node: Match, level: int) -> Walk:
        """`match (e) { pattern => { body }, ... }`"""
        if not self.is_visited(node.data):
            yield self.expand(node.data)
        out: list[AnyValue] = [f"match{'' if node.complete else '?'} ({self.ref(node.data)}) {{"]
        outer, inner = self.line(level + 1), self.line(level + 2)
        for i, clause in enumerate(node.clauses):
            out.append(f"{outer}{self.pattern(clause.lhs)} => {{{inner}")
            out.append((yield self.scope(clause.rhs, (id(node), i), level + 2)))
            out.append(f"{outer}}},")
        if not node.clauses:
            out.append(outer)
        out.append(f"{self.line(level)}}}")
        return out

    def write(self, node: RefWrite, level: int) -> Walk:
        """`ref_write(r, v)`"""
        if not self.is_visited(node.ref):
            yield self.expand(node.ref)
        ref = self.ref(node.ref)
        if not self.is_visited(node.value):
            yield self.expand(node.value)
        return f"ref_write({ref}, {self.ref(node.value)})"

    def pattern(self, pattern: Pattern) -> str:
        """A match pattern; binds its variables."""
        out: list[str] = []
        stack: list[Pattern | str] = [pattern]
        while stack:
            p = stack.pop()
            if isinstance(p, str):
                out.append(p)
            elif isinstance(p, PatternVar):
                out.append(self.bind(p.var))
            elif isinstance(p, (PatternConstructor, PatternTuple)):
                is_tuple = isinstance(p, PatternTuple)
                if isinstance(p, PatternConstructor):
                    out.append(p.constructor.name_hint)
                    if not p.patterns:
                        continue
                stack.append(",)" if is_tuple and len(p.patterns) == 1 and not self.tvm else ")")
                for i in range(len(p.patterns) - 1, -1, -1):
                    stack.append(p.patterns[i])
                    if i:
                        stack.append(", ")
                stack.append("(")
            else:
                out.append("_")
        return "".join(out)

    def expression(self, expr: Expr) -> Text:
        """One expression, its free variables declared."""
        self.start(expr)
        if not self.tvm:
            for var in free_vars(expr):
                self.leaf(var)
                self.declare(var)
        declared = self.doc
        return [declared, walk(self.scope(expr, (), 0))]


_NESTED: dict[type, AnyValue] = {
    If: ExpressionText.conditional,
    Function: ExpressionText.function,
    Match: ExpressionText.match,
    RefWrite: ExpressionText.write,
}


__all__ = ["MAX_LEVEL", "Crossing", "ExpressionText"]
