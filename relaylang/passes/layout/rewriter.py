"""The rewriter of layouts: every value keeps the layout of its call until a user needs another one.

The walk goes once from operands to users. A rewritten expression is a `Value`: the expression, the value's layout in
the program, and its layout now. Tuples are `Many` of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from relaylang.diagnostics import RelayError, error
from relaylang.ir import (
    Call,
    Expr,
    Function,
    If,
    IRModule,
    Let,
    Match,
    RefCreate,
    RefRead,
    RefWrite,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
    children,
    post_order,
    rebuild,
)
from relaylang.ir.typed import retype, typed, typed_tuple
from relaylang.ops.build import with_axes_before
from relaylang.ops.layouts import expanded, has_blocks, is_layout, rank, turned_shape, whole
from relaylang.ops.record import Op, RelationError
from relaylang.passes.layout.registry import INFER
from relaylang.passes.manager import raised_in
from relaylang.rules.canonicalize import RULES as PLAIN_CALLS
from relaylang.rules.layout import RULES
from relaylang.rules.layout.rule import KEEP, PLAIN, TRANSFORM, InferCorrectLayoutOutput, Rule, named, transformed
from relaylang.typing import infer
from relaylang.typing.operators import Context
from relaylang.typing.solver import Solver

#: Attributes of functions that are one kernel, or another compiler's: they are not looked into.
_CLOSED = frozenset({"Primitive", "Composite", "Compiler"})

#: Gives a new call of an operator, from its attributes and its present operands; None to keep the call.
Change = Callable[[Call, Any, "list[Expr]"], "Call | None"]
#: Says why the changed call cannot be, or raises.
Refuse = Callable[[Call, Call, str], None]


class Misfit(Exception):
    """A call cannot have these layouts."""


@dataclass(slots=True)
class Value:
    """A tensor: in the layout `old` in the program (None: not known), in `new` now."""

    expr: Expr
    old: str | None = None
    new: str | None = None

    @property
    def altered(self) -> bool:
        return self.new != self.old


@dataclass(slots=True)
class Many:
    """A tuple, field by field; `expr` is the whole of it where it was not taken apart."""

    fields: list[Value]
    expr: Expr | None = None


def tensor_shape(expr: Expr) -> tuple[Any, ...]:
    ty = expr.checked_type
    if not isinstance(ty, TensorType):
        raise Misfit("it is no tensor")
    return tuple(ty.shape)


class Rewriter:
    """Rewrites functions of a typed module. `change` is asked for each call of an operator in `changes`. With `through`
    the program's own changes of layout are made only where they are needed, like the added ones.
    """

    def __init__(
        self, mod: IRModule, changes: Callable[[str], bool], change: Change, refuse: Refuse, *, through: bool = False
    ) -> None:
        self.through = through
        self.mod = mod
        self.changes = changes
        self.change = change
        self.refuse = refuse
        self.context = Context(Solver())
        self.states: dict[int, Value | Many] = {}
        self.done: dict[int, Expr] = {}
        self.turns: dict[tuple[int, str, str], Expr] = {}
        self.kept: list[Expr] = []  # nodes that `turns` knows by id
        self.pure = True
        self.lets: dict[Var, Let] = {}
        self.vars: dict[Var, Var] = {}
        self.fixed: set[Var] = set()

    # The replacements of nodes.

    def turned(self, expr: Expr, source: str, target: str) -> Expr:
        """A tensor in another layout; axes that it lacks are put in front. Raises `Misfit`."""
        if source == target:
            return expr
        known = self.turns.get((id(expr), source, target))
        if known is not None:
            return known
        converted, begin = expr, source
        shape = tensor_shape(expr)
        missing = len(whole(target)) - len(whole(source))
        if missing > 0:
            if all(extent == 1 for extent in shape):
                return expr  # it is spread over the others as it is
            begin = expanded(source, target)
            shape = (*[1] * missing, *shape)
            converted = with_axes_before(expr, expr.checked_type, missing)  # type: ignore[arg-type]
        if begin != target:
            after = turned_shape(shape, begin, target)
            if after is None:
                raise Misfit(f"a tensor of {list(shape)} cannot be brought from {begin} into {target}")
            ty = TensorType(after, expr.checked_type.dtype)  # type: ignore[union-attr]
            converted = transformed(converted, begin, target, ty)
        self.turns[id(expr), source, target] = converted
        self.kept.append(expr)
        return converted

    def realized(self, value: Value) -> Expr:
        """A tensor as the program had it."""
        if not value.altered or value.new is None or value.old is None:
            return value.expr
        return self.turned(value.expr, value.new, value.old)

    def plain(self, node: Expr) -> Expr:
        """The replacement of a node, in the layout that it had."""
        expr = self.done.get(id(node))
        if expr is None:
            state = self.states[id(node)]
            if isinstance(state, Value):
                expr = self.realized(state)
            else:
                expr = state.expr or _tuple([self.realized(f) for f in state.fields], node)
            self.done[id(node)] = expr
        return expr

    def state(self, node: Expr) -> Value | Many:
        return self.states.get(id(node)) or Value(self.plain(node))

    # The walk.

    def rewrite(self, func: Function) -> Expr:
        """The function in the layouts that are asked for; itself where nothing changes."""
        order = list(post_order(func))
        closed: set[int] = set()
        self.pure = not any(
            isinstance(n, (RefCreate, RefRead, RefWrite, Match)) or (type(n) is Call and not isinstance(n.op, Op)) for n in order
        )
        for node in order:
            if isinstance(node, Let):
                self.lets[node.variable] = node
            elif isinstance(node, Function) and node is not func and _CLOSED & node.attrs.keys() and node.body:
                inside = [n for n in post_order(node.body) if not isinstance(n, Op)]
                closed.update([id(n) for n in inside])
                self.fixed.update([n for n in inside if isinstance(n, Var)])
        for node in order:
            if id(node) in closed:
                self.done[id(node)] = node
            else:
                self.visit(node)
        return self.plain(func)

    def visit(self, node: Expr) -> None:
        match node:
            case Call(op=Op()) if type(node) is Call:
                self.call(node)
            case Var():
                self.variable(node)
            case Tuple():
                self.fields(node)
            case TupleGetItem():
                self.field(node)
            case Let():
                self.let(node)
            case If():
                self.branches(node)
            case _:
                self.again(node)

    def again(self, node: Expr) -> None:
        """A node with its children as they were."""
        kids = children(node)
        self.done[id(node)] = retype(rebuild(node, tuple([self.plain(c) for c in kids])), node) if kids else node

    def variable(self, var: Var) -> None:
        let = self.lets.get(var)
        state = self.states.get(id(let.value)) if let is not None and var not in self.fixed else None
        if isinstance(state, Value) and state.altered:
            self.states[id(var)] = Value(self.fresh(var, state.expr.checked_type), state.old, state.new)
        elif isinstance(state, Many) and any(f.altered for f in state.fields):
            types = [f.expr.checked_type for f in state.fields]
            new = self.fresh(var, TupleType(types))  # type: ignore[arg-type]
            fields = [Value(_item(new, i, f.expr.checked_type), f.old, f.new) for i, f in enumerate(state.fields)]
            self.states[id(var)] = Many(fields)
        else:
            if isinstance(state, Value):
                self.states[id(var)] = Value(var, state.old, state.new)
            self.done[id(var)] = var

    def fresh(self, var: Var, ty: Type | None) -> Var:
        new = self.vars.get(var)
        if new is None:
            new = typed(Var(var.name_hint, ty if var.type_annotation is not None else None, var.span, var.virtual_device), ty)
            self.vars[var] = new
        return new

    def let(self, node: Let) -> None:
        new = self.vars.get(node.variable)
        if new is None:
            rebuilt: Expr = rebuild(node, (self.plain(node.value), self.plain(node.body)))
        else:
            state = self.states[id(node.value)]
            value = state.expr if isinstance(state, Value) else _tuple([f.expr for f in state.fields], None)
            assert value is not None
            rebuilt = Let(new, value, self.plain(node.body), node.span)
        self.done[id(node)] = retype(rebuilt, node)

    def fields(self, node: Tuple) -> None:
        states = [self.state(f) for f in node.fields]
        fields = [s for s in states if isinstance(s, Value)]
        if len(fields) < len(states):
            self.again(node)
            return
        if not any(f.altered for f in fields):
            self.again(node)
            self.states[id(node)] = Many(fields, self.done[id(node)])
        else:
            self.states[id(node)] = Many(fields)

    def field(self, node: TupleGetItem) -> None:
        state = self.states.get(id(node.tuple_value))
        literal = isinstance(node.tuple_value, Tuple)
        if isinstance(state, Many) and state.expr is None and (self.pure or not literal):
            # Of a tuple that is written out the other fields are dropped: only where they do nothing but compute.
            self.states[id(node)] = state.fields[node.index]
            return
        self.again(node)
        if isinstance(state, Many) and state.expr is not None:
            value = state.fields[node.index]
            self.states[id(node)] = Value(self.done[id(node)], value.old, value.new)

    def branches(self, node: If) -> None:
        left, right = self.states.get(id(node.true_branch)), self.states.get(id(node.false_branch))
        if isinstance(left, Value) and isinstance(right, Value) and left.altered:
            if (left.old, left.new) == (right.old, right.new):
                branch = typed(If(self.plain(node.cond), left.expr, right.expr, node.span), left.expr.checked_type)
                self.states[id(node)] = Value(branch, left.old, left.new)
                return
        self.again(node)

    # Calls of operators.

    def call(self, node: Call) -> None:
        name = named(node)
        rule = INFER.get(name)
        changes = self.changes(name)
        if rule is None and not changes:
            if not (self.through and name == TRANSFORM and self.postponed(node)):
                self.again(node)
            return
        if rule is None:
            args = [self.plain(a) for a in node.args]
            new = self.change(node, node.attrs, args)
            self.again(node)
            if new is not None:
                self.accept(node, new)
            return
        looked_at = node
        if name in PLAIN_CALLS:
            looked_at = self.as_sum(node)
            rule = INFER[named(looked_at)]
        for altering in (True, False) if changes else (False,):
            try:
                state = self.by_rule(looked_at, rule, altering)
            except (Misfit, RelationError):
                continue
            if state is not None:
                self.states[id(node)] = state
                return
        self.again(node)

    def postponed(self, node: Call) -> bool:
        """A change of layout that the program makes: the value stays in the layout that it has."""
        value = self.state(node.args[0])
        source, target = node.attrs.src_layout, node.attrs.dst_layout
        if not isinstance(value, Value) or value.old not in (None, source) or not is_layout(source) or not is_layout(target):
            return False
        shape = turned_shape(tensor_shape(node.args[0]), source, target)
        if shape is None or shape != tensor_shape(node):
            return False
        self.states[id(node)] = Value(value.expr, target, value.new if value.old is not None else source)
        return True

    def as_sum(self, node: Call) -> Call:
        """A bias on data that has another layout now, as a sum; other calls stay."""
        data, bias = self.state(node.args[0]), node.args[1]
        ty = node.checked_type
        if not isinstance(data, Value) or not data.altered or data.old is None or data.new is None:
            return node
        if not isinstance(ty, TensorType) or has_blocks(data.old) or rank(data.old) != len(ty.shape):
            return node
        if data.new == data.old:
            return node
        biased = PLAIN_CALLS[named(node)](node, node.args[0], self.plain(bias), TensorType(tensor_shape(bias), ty.dtype), ty)
        biased.span = node.span
        wide = biased.args[1]
        self.done[id(wide)] = wide
        self.kept += [wide, biased]
        return biased

    def accept(self, node: Call, new: Call) -> None:
        """A call of an operator that no rule is for."""
        diagnostics = infer(new, fragment=True, module=self.mod)
        wrong = [d.title for d in diagnostics if d.severity == "error"]
        if wrong or new.checked_type != node.checked_type:
            self.refuse(node, new, wrong[0] if wrong else f"its result would be of `{new.checked_type!r}`")
            return
        self.done[id(node)] = retype(new, node)

    def flat(self, args: Sequence[Expr]) -> tuple[list[Value], list[int | None]]:
        """The operands, the fields of tuples one by one; and of each argument how many fields it has."""
        values: list[Value] = []
        counts: list[int | None] = []
        for arg in args:
            state = self.state(arg)
            if isinstance(state, Many):
                values += state.fields
                counts.append(len(state.fields))
            else:
                values.append(state)
                counts.append(None)
        return values, counts

    def by_rule(self, node: Call, rule: Rule, altering: bool) -> Value | Many | None:
        """The replacement of a call in the layouts that its rule gives; None where it gives none. Raises `Misfit`."""
        values, counts = self.flat(node.args)
        types = [a.checked_type for a in node.args]
        before = [v.old for v in values]
        looks = _checked(_asked(node, rule, node.attrs, None, before, types), len(values))
        if looks is None:
            return None
        if not altering and not any([v.new != v.old for v in values]):
            _result(node.checked_type, looks.output_layouts, looks.output_layouts)
            self.again(node)
            return _results(self.done[id(node)], node.checked_type, looks, looks)
        now = [v.new if v.new is not None else c for v, c in zip(values, looks.input_layouts)]
        was = [v.old if v.old is not None else c for v, c in zip(values, looks.input_layouts)]
        new: Call | None = None
        if altering:
            new = self.change(node, looks.new_attrs, _grouped([v.expr for v in values], counts, node.args))
            if new is None:
                return None
            self.typed(new)
            rule_of = INFER.get(named(new))
            try:
                if rule_of is None:
                    raise Misfit(f"there is no rule for layouts of {named(new)}")
                return self.placed(node, new, rule_of, values, counts, looks, now, was, types)
            except (Misfit, RelationError) as problem:
                self.refuse(node, new, str(problem))
                return None
        args = _grouped([v.expr for v in values], counts, node.args)
        new = Call(node.op, args, looks.new_attrs, node.type_args, node.span)
        return self.placed(node, new, rule, values, counts, looks, now, was, types)

    def placed(
        self,
        node: Call,
        new: Call,
        rule: Rule,
        values: list[Value],
        counts: list[int | None],
        looks: InferCorrectLayoutOutput,
        now: list[str | None],
        was: list[str | None],
        types: list[Type | None],
    ) -> Value | Many | None:
        """The new call with its operands in the layouts that it takes, and the layouts of its results."""
        takes = _checked(_asked(new, rule, new.attrs, now, was, types), len(values))
        if takes is None or len(takes.output_layouts) != len(looks.output_layouts):
            raise Misfit("it has no rule for layouts")
        flat_args: list[Expr] = []
        for arg in new.args:
            flat_args += arg.fields if isinstance(arg, Tuple) else [arg]
        if len(flat_args) != len(values) or len(new.args) != len(counts):
            raise Misfit(f"it has {len(flat_args)} operands instead of {len(values)}")
        operands = [
            self.operand(expr, value, view, takes_it)
            for expr, value, view, takes_it in zip(flat_args, values, looks.input_layouts, takes.input_layouts)
        ]
        args = _grouped(operands, counts, node.args)
        same = new.op is node.op and all(a is b for a, b in zip(args, node.args)) and takes.new_attrs == node.attrs
        call = node if same else Call(new.op, args, takes.new_attrs, new.type_args, node.span)
        expected = _result(node.checked_type, looks.output_layouts, takes.output_layouts)
        if call is not node:
            ty = self.type_of(call)
            if ty != expected:
                raise Misfit(f"its result would be of `{ty!r}`, not `{expected!r}`")
            typed(call, ty)
        return _results(call, expected, looks, takes)

    def operand(self, expr: Expr, value: Value, view: str | None, takes: str | None) -> Expr:
        """An operand in the layout that a call takes, from its present layout. The way leads through the program's
        layout where the call and the operand's maker view it differently.
        """
        if takes == KEEP:
            return expr
        if takes == PLAIN or view == PLAIN or value.old is None or value.new is None or view != value.old:
            if value.old is not None and value.new is not None:
                expr = self.turned(expr, value.new, value.old)
            if takes == PLAIN or view == PLAIN:
                return expr
            assert view is not None and takes is not None
            return self.turned(expr, view, takes)
        assert takes is not None
        return self.turned(expr, value.new, takes)

    def typed(self, call: Call) -> None:
        """Find the types of the operands that a user's function made."""
        for arg in call.args:
            for operand in arg.fields if isinstance(arg, Tuple) else [arg]:
                if operand.checked_type is None:
                    infer(operand, fragment=True, module=self.mod)

    def type_of(self, call: Call) -> Type:
        """The result's type, from the operands'. Raises `Misfit` or `RelationError`."""
        types = []
        for arg in call.args:
            if arg.checked_type is None:
                raise Misfit("an operand's type is not known")
            types.append(arg.checked_type)
        self.context.types = types
        self.context.node = call
        assert isinstance(call.op, Op)
        ty = call.op.rel(types, call.attrs, self.context)
        if ty is None:
            raise Misfit("its type is not known")
        return ty


def _results(call: Expr, ty: Type | None, looks: InferCorrectLayoutOutput, takes: InferCorrectLayoutOutput) -> Value | Many:
    """A call with its layouts: those that its results had in the program, and those that they have now."""
    pairs = list(zip(looks.output_layouts, takes.output_layouts))
    if not isinstance(ty, TupleType):
        return Value(call, *pairs[0]) if pairs[0][0] != PLAIN else Value(call)
    fields = [
        Value(_item(call, i, field), *(pair if pair[0] != PLAIN else (None, None)))
        for i, (field, pair) in enumerate(zip(ty.fields, pairs))
    ]
    return Many(fields, call if not any(f.altered for f in fields) else None)


def _item(expr: Expr, index: int, ty: Type | None) -> TupleGetItem:
    return typed(TupleGetItem(expr, index), ty)


def _tuple(fields: list[Expr], old: Expr | None) -> Tuple:
    return typed_tuple(fields, old.span if old is not None else None)


def _grouped(exprs: list[Expr], counts: list[int | None], old: Sequence[Expr]) -> list[Expr]:
    """Operands as arguments again: the fields of tuples together."""
    out: list[Expr] = []
    at = 0
    for count, arg in zip(counts, old):
        if count is None:
            out.append(exprs[at])
            at += 1
            continue
        fields = exprs[at : at + count]
        at += count
        same = isinstance(arg, Tuple) and all(a is b for a, b in zip(fields, arg.fields))
        out.append(arg if same else _tuple(fields, arg))
    return out


def _asked(call: Call, rule: Rule, *about: Any) -> InferCorrectLayoutOutput | None:
    """A rule's answer. Raises `RelayError` for an error in a rule that a user registered."""
    name = named(call)
    if rule is RULES.get(name):
        return rule(*about)
    try:
        output = rule(*about)
    except RelayError:
        raise
    except Exception as problem:
        raise RelayError(raised_in(f"FInferCorrectLayout of {name}", problem, "the function")) from problem
    if output is not None and not isinstance(output, InferCorrectLayoutOutput):
        said = f"the function FInferCorrectLayout of {name} returned a {type(output).__name__}"
        raise RelayError(error("R0503", said, call.span, notes=["it returns an InferCorrectLayoutOutput, or None"]))
    return output


def _checked(output: InferCorrectLayoutOutput | None, count: int) -> InferCorrectLayoutOutput | None:
    """A rule's answer, None where it leaves a layout open."""
    if output is None or len(output.input_layouts) != count:
        return None
    if any(layout is None for layout in (*output.input_layouts, *output.output_layouts)):
        return None
    if not all(layout in (PLAIN, KEEP) or is_layout(layout) for layout in output.input_layouts):
        raise Misfit("it has no such layout")
    if not all(layout == PLAIN or is_layout(layout) for layout in output.output_layouts):
        raise Misfit("it has no such layout")
    return output


def _result(ty: Type | None, old: Sequence[str | None], new: Sequence[str | None]) -> Type:
    """The result's type in other layouts. Raises `Misfit`."""
    fields = ty.fields if isinstance(ty, TupleType) else [ty]
    if len(fields) != len(old):
        raise Misfit("it has another number of results")
    field_types: list[Type] = []
    for field, before, after in zip(fields, old, new):
        if not isinstance(field, TensorType) or before is None or after is None:
            raise Misfit("its result is no tensor")
        if before == after or before == PLAIN:
            if before != PLAIN and rank(before) != len(field.shape):
                raise Misfit(f"a tensor of {list(field.shape)} has no layout {before}")
            field_types.append(field)
            continue
        shape = turned_shape(tuple(field.shape), before, after)
        if shape is None:
            raise Misfit(f"a result of {list(field.shape)} cannot be brought from {before} into {after}")
        field_types.append(TensorType(shape, field.dtype))
    return TupleType(field_types) if isinstance(ty, TupleType) else field_types[0]
