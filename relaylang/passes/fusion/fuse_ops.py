"""FuseOps: group operator calls into primitive functions, each to become one kernel.

A node is merged with its immediate post-dominator, the nearest node through which every path from it leads. The
patterns of all nodes between them must allow it (`OpPattern`). Examples are element-wise and broadcast operators behind
a convolution, chains of injective operators, and element-wise operators before a reduction. TVM's rules, so that its
groups come out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from relaylang.ir import (
    Call,
    Constant,
    Constructor,
    Expr,
    Function,
    FuncType,
    GlobalVar,
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
    rebuilt,
)
from relaylang.ir.scopes import Scope, common
from relaylang.ir.typed import retype, typed, typed_var
from relaylang.ops.record import Op, OpPattern
from relaylang.ops.traits import Trait
from relaylang.passes.context import PassContext
from relaylang.passes.manager import Pass
from relaylang.passes.rewriting import is_primitive

_SCALAR_DTYPES = frozenset({"int32", "int64", "float32", "float64", "bool"})
_ELEMWISE, _BROADCAST, _INJECTIVE, _REDUCE, _ANCHOR, _TUPLE, _OPAQUE = (
    OpPattern.ELEMWISE,
    OpPattern.BROADCAST,
    OpPattern.INJECTIVE,
    OpPattern.COMM_REDUCE,
    OpPattern.OUT_ELEMWISE_FUSABLE,
    OpPattern.TUPLE,
    OpPattern.OPAQUE,
)
PatternOf = Callable[[Op], int]


def is_closed(expr: Expr) -> bool:
    """Whether fusion leaves a function as it is: it is one kernel already, or another compiler's."""
    return is_primitive(expr) or (isinstance(expr, Function) and bool(expr.attrs.get("Compiler")))


class _Node(Scope):
    """An expression in the data-flow graph: its users, its group, and its place in the tree of post-dominators."""

    __slots__ = (
        "expr",
        "index",
        "pattern",
        "outputs",
        "extern",
        "merged",
        "kind",
        "size",
        "anchor",
        "root",
        "dom",
        "dom_pattern",
        "jump_pattern",
    )

    def __init__(self) -> None:
        super().__init__()
        self.expr: Expr | None = None
        self.index = -1
        self.pattern: int = _OPAQUE
        self.outputs: list[tuple[_Node, int]] = []
        self.extern = False
        self.merged: _Node | None = None  # in the union-find forest of groups
        self.kind: int = _OPAQUE  # the group's pattern
        self.size = 1
        self.anchor = False
        self.root: Expr | None = None
        self.dom: _Node | None = None
        #: The strongest pattern on the ways to the post-dominator, and on the way to `jump`.
        self.dom_pattern: int = _OPAQUE
        self.jump_pattern: int = _ELEMWISE

    def find(self) -> _Node:
        """The group's representative."""
        if self.merged is None:
            return self
        top = self.merged
        while top.merged is not None:
            top = top.merged
        node = self
        while node is not top:
            assert node.merged is not None
            node.merged, node = top, node.merged
        return top


#: On a stack of nodes: the one below it has had its children visited.
_READY: Any = object()


def _walk(expr: Expr) -> Iterator[Expr]:
    """Every node once, children first, a callee before its arguments; primitive functions are leaves."""
    done: set[int] = set()
    stack: list[Expr] = [expr]
    while stack:
        node = stack.pop()
        if node is _READY:
            yield stack.pop()
            continue
        if id(node) in done:
            continue
        done.add(id(node))
        kind = type(node)
        if kind in _LEAVES or is_closed(node):
            yield node
            continue
        stack += (node, _READY)
        if isinstance(node, Call):
            stack += node.args[::-1]
            stack.append(node.op)
            continue
        stack += children(node)[::-1]
        if isinstance(node, Let):
            stack.append(node.variable)
        elif isinstance(node, Function):
            stack += node.params[::-1]


_LEAVES = frozenset({Var, Op, Constant, GlobalVar, Constructor})


class _Graph:
    """The data-flow graph of an expression: nodes in post-order, and for each its users with the edge's pattern."""

    def __init__(self, expr: Expr, pattern_of: PatternOf) -> None:
        self.order = list(_walk(expr))
        self.by_id: dict[int, _Node] = {id(item): _Node() for item in self.order}
        self.nodes: list[_Node] = []
        self._leaves(expr)
        for item in self.order:
            self._visit(item, pattern_of)
        for item in self.order:
            if isinstance(item, (Function, Op)):
                continue
            node = self.by_id[id(item)]
            node.expr = node.root = item
            node.index = len(self.nodes)
            node.kind = node.pattern
            node.anchor = node.pattern == _ANCHOR
            self.nodes.append(node)
        self._dominators()

    def _leaves(self, *exprs: Expr) -> None:
        """The node leaves the data flow here: it is needed as a whole."""
        for expr in exprs:
            self.by_id[id(expr)].extern = True

    def _visit(self, expr: Expr, pattern_of: PatternOf) -> None:
        by_id = self.by_id
        if isinstance(expr, Call):
            self._visit_call(expr, pattern_of)
        elif isinstance(expr, Let):
            self._leaves(expr.variable, expr.value, expr.body)
        elif isinstance(expr, Function):
            if not is_closed(expr):
                self._leaves(*expr.params, *children(expr))
        elif isinstance(expr, Constant):
            simple = expr.data.ndim == 0 and expr.dtype in _SCALAR_DTYPES
            by_id[id(expr)].pattern = _ELEMWISE if simple else _OPAQUE
        elif isinstance(expr, Tuple):
            node = by_id[id(expr)]
            node.pattern = _TUPLE
            for item in expr.fields:
                if isinstance(item.checked_type, TensorType):
                    by_id[id(item)].outputs.append((node, _INJECTIVE))
                else:
                    self._leaves(item)
        elif isinstance(expr, TupleGetItem):
            ty = expr.tuple_value.checked_type
            if isinstance(ty, TupleType) and all([isinstance(f, TensorType) for f in ty.fields]):
                node = by_id[id(expr)]
                node.pattern = _INJECTIVE
                by_id[id(expr.tuple_value)].outputs.append((node, _INJECTIVE))
            else:
                self._leaves(expr.tuple_value)
        elif isinstance(expr, (If, Match, RefCreate, RefRead, RefWrite)):
            self._leaves(*children(expr))

    def _visit_call(self, call: Call, pattern_of: PatternOf) -> None:
        node, ty = self.by_id[id(call)], call.checked_type
        if isinstance(call.op, Op):
            node.pattern = pattern_of(call.op)
        else:
            self._leaves(call.op)
            node.pattern = _OPAQUE
        for arg in call.args:
            edge = node.pattern
            if edge == _BROADCAST and isinstance(ty, TensorType):
                arg_type = arg.checked_type
                if isinstance(arg_type, TensorType) and arg_type.shape == ty.shape:
                    edge = _ELEMWISE
            self.by_id[id(arg)].outputs.append((node, edge))

    def _dominators(self) -> None:
        """Each node's immediate post-dominator, and the strongest pattern on the edges that lead there."""
        top = _Node()  # above the nodes that nothing post-dominates
        for node in reversed(self.nodes):
            if node.extern or not node.outputs:
                node.dom_pattern = _OPAQUE if node.extern else _ELEMWISE
                node.hang(top)
                continue
            (dominator, pattern), *others = node.outputs
            for user, edge in others:
                above = common(dominator, user)
                pattern = max(pattern, edge, _strongest(dominator, above), _strongest(user, above))
                dominator = above
                if dominator is top:
                    break
            node.dom_pattern = pattern
            node.dom = dominator if dominator is not top else None
            node.hang(dominator)
            far = dominator.jump
            node.jump_pattern = pattern if node.jump is dominator else max(pattern, dominator.jump_pattern, far.jump_pattern)


def _strongest(node: _Node, above: _Node) -> int:
    """The strongest pattern on the ways from a node to one that post-dominates it."""
    pattern: int = _ELEMWISE
    while node is not above:
        if node.jump.depth >= above.depth:
            pattern = max(pattern, node.jump_pattern)
            node = node.jump
        else:
            pattern = max(pattern, node.dom_pattern)
            node = node.parent
    return pattern


class _Rule(NamedTuple):
    """When a node joins the group of its immediate post-dominator: sets of patterns."""

    #: Of the strongest edge on the ways to the post-dominator.
    edge: frozenset[int]
    #: Of the groups on these ways.
    between: frozenset[int]
    #: Of the post-dominator's group.
    sink: frozenset[int]


_POINTWISE = frozenset({_ELEMWISE, _BROADCAST})
_MOVING = _POINTWISE | {_INJECTIVE}
_ANY = frozenset(OpPattern)
#: Element-wise results follow an anchor.
_AFTER_ANCHOR = _Rule(edge=frozenset({_ELEMWISE}), between=_POINTWISE, sink=_POINTWISE)
#: Element-wise operators precede whatever computes an element from few others.
_POINTWISE_FIRST = _Rule(edge=_MOVING | {_REDUCE}, between=_MOVING, sink=_MOVING | {_REDUCE, _ANCHOR})
#: Data movement joins data movement.
_MOVEMENT = _Rule(edge=_ANY, between=_MOVING, sink=_MOVING)
#: The rounds of merging: the rule by the pattern of the node. Anchors choose before data movement does.
_ROUNDS: tuple[dict[int, _Rule], ...] = (
    {_ANCHOR: _AFTER_ANCHOR, **dict.fromkeys(_POINTWISE, _POINTWISE_FIRST)},
    {_INJECTIVE: _MOVEMENT, _TUPLE: _MOVEMENT, **dict.fromkeys(_POINTWISE, _POINTWISE_FIRST)},
)
#: After the rounds, fields join a tuple that data movement has taken into its group.
_FIELDS: dict[int, _Rule] = dict.fromkeys(_MOVING, _MOVEMENT)


def _region(start: _Node, sink: _Node, rule: _Rule, limit: int) -> list[_Node] | None:
    """The nodes from `start` up to the sink, which dominates them.

    None where the rule forbids one of their groups, or where the merged group exceeds `limit` nodes.
    """
    target = sink.find()
    if start.dom_pattern not in rule.edge or target.kind not in rule.sink:
        return None
    total = target.size
    seen = {id(start), id(sink)}
    region = [start]
    for node in region:
        total += node.size
        if total > limit:
            return None
        for user, _ in node.outputs:
            if id(user) in seen:
                continue
            if user.find().kind not in rule.between:
                return None
            seen.add(id(user))
            region.append(user)
    return region


def _merge(nodes: list[_Node], sink: _Node) -> None:
    """Make one group of the nodes' groups and the sink's."""
    group = sink.find()
    others = {id(root): root for root in (node.find() for node in nodes) if root is not group}.values()
    for other in others:
        other.merged = group
    group.size += sum(other.size for other in others)
    anchored = [other.kind for other in others if other.anchor]
    if anchored:
        group.anchor, group.kind = True, max(group.kind, *anchored)


def _partition(graph: _Graph, max_depth: int) -> None:
    """Merge nodes with their post-dominators, round by round; a group holds at most `max_depth` nodes."""
    for rules, into_tuples in [*((rules, False) for rules in _ROUNDS), (_FIELDS, True)]:
        for node in graph.nodes:
            rule, sink = rules.get(node.kind), node.dom
            if rule is None or sink is None or (sink.kind == _TUPLE) is not into_tuples:
                continue
            if node.find() is sink.find():
                continue
            region = _region(node, sink, rule, max_depth)
            if region is not None:
                _merge(region, sink)


class _Group:
    """A kernel in the making: the parameters found so far and the arguments they stand for."""

    __slots__ = ("params", "arguments", "has_call", "reshape_only")

    def __init__(self) -> None:
        self.params: dict[int, Var] = {}
        self.arguments: list[Expr] = []
        self.has_call = False
        self.reshape_only = True

    def param(self, expr: Expr, ty: Type | None) -> Var:
        param = self.params.get(id(expr))
        if param is None:
            param = self.params[id(expr)] = typed_var(f"p{len(self.params)}", ty)
            self.arguments.append(expr)
            if not isinstance(ty, TensorType):
                self.reshape_only = False
        return param


def fuse_expr(
    expr: Expr,
    *,
    max_depth: int = 256,
    pattern_of: PatternOf | None = None,
    merge: bool = True,
    link_params: bool = False,
) -> Expr:
    """Fuse one typed expression; see `fuse_ops`."""
    graph = _Graph(expr, pattern_of or (lambda op: op.pattern))
    if merge:
        _partition(graph, max_depth)
    groups: dict[int, _Group] = {}
    new: dict[int, Expr] = {}
    group_of = {id(node.expr): node.find() for node in graph.nodes}

    def inputs(args: tuple[Expr, ...], group: _Group, mine: _Node) -> list[Expr]:
        out: list[Expr] = []
        for arg in args:
            value = new[id(arg)]
            inside = group_of.get(id(arg)) is mine or (link_params and isinstance(value, Constant))
            out.append(value if inside else group.param(value, arg.checked_type))
        return out

    for old in graph.order:
        if type(old) in _LEAVES or is_closed(old):
            new[id(old)] = old
            continue
        mine = group_of.get(id(old))
        traits = old.op.traits if isinstance(old, Call) and isinstance(old.op, Op) else frozenset()
        if isinstance(old, Call) and Trait.SEPARATION in traits and Trait.NON_COMPUTATIONAL not in traits:
            new[id(old)] = new[id(old.args[0])]
            continue
        if mine is None or not _is_fused(old, mine, group_of):
            new[id(old)] = retype(rebuilt(old, new), old)
            continue
        group = groups.setdefault(id(mine), _Group())
        if isinstance(old, Call):
            assert isinstance(old.op, Op)
            group.has_call = True
            # A group of operators that only change the shape is a view.
            group.reshape_only = group.reshape_only and Trait.RESHAPE in old.op.traits and Trait.LIKE not in old.op.traits
            value: Expr = Call(old.op, inputs(old.args, group, mine), old.attrs, old.type_args)
        elif isinstance(old, Tuple):
            value = Tuple(inputs(old.fields, group, mine))
        else:
            assert isinstance(old, TupleGetItem)
            value = TupleGetItem(inputs((old.tuple_value,), group, mine)[0], old.index)
        value = retype(value, old)
        new[id(old)] = _closed(group, value, old) if mine.root is old else value
    return new[id(expr)]


def _is_fused(expr: Expr, group: _Node, group_of: Mapping[int, _Node]) -> bool:
    """Whether an expression goes into the function of its group."""
    if isinstance(expr, Call):
        return isinstance(expr.op, Op) and Trait.NON_COMPUTATIONAL not in expr.op.traits
    if isinstance(expr, TupleGetItem):
        # A projection alone from what no kernel of this group made stays outside.
        return group.root is not expr or group_of.get(id(expr.tuple_value)) is group
    return isinstance(expr, Tuple) and group.root is not expr


def _closed(group: _Group, body: Expr, old: Expr) -> Expr:
    """The call of a group's function, of the type of the expression that it replaces."""
    params = list(group.params.values())
    attrs = {"Primitive": int(group.has_call)}
    if group.has_call and group.reshape_only:
        attrs["relay.reshape_only"] = 1
    function = Function(params, body, old.checked_type, (), attrs)
    types = [p.type_annotation for p in params]
    if old.checked_type is not None:
        typed(function, FuncType([t for t in types if t is not None], old.checked_type))
    return retype(Call(function, group.arguments), old)


def fuse_ops(
    mod: Any,
    *,
    max_depth: int = 256,
    pattern_of: PatternOf | None = None,
    merge: bool = True,
    link_params: bool = False,
) -> Any:
    """Fuse every function of a typed module (also usable on a single expression).

    A group holds at most `max_depth` nodes. `pattern_of` may give operators other patterns than their own. Without
    `merge` each operator becomes a function of its own. With `link_params` constants stay inside the kernels that use
    them, else those that are no simple scalars are arguments. The result is typed.
    """

    def fused(expr: Expr) -> Expr:
        return fuse_expr(expr, max_depth=max_depth, pattern_of=pattern_of, merge=merge, link_params=link_params)

    if isinstance(mod, Expr):
        return fused(mod)
    return mod.with_functions({gv: f if is_closed(f) else fused(f) for gv, f in mod.functions.items()})


@dataclass(frozen=True)
class FuseOps(Pass):
    """Group operators into primitive functions, each one kernel.

    Level 0 gives each operator a function of its own. All higher levels are alike. -1 takes the context's `opt_level`. The
    context's `relay.FuseOps.max_depth` (256) limits the size of a group. With `relay.FuseOps.link_params`, constants stay
    inside the functions.
    """

    fuse_opt_level: int = -1

    def run(self, mod: IRModule) -> IRModule:
        ctx = PassContext.current()
        level = ctx.opt_level if self.fuse_opt_level == -1 else self.fuse_opt_level
        fused: IRModule = fuse_ops(
            mod,
            max_depth=ctx.config.get("relay.FuseOps.max_depth", 256),
            merge=level > 0,
            link_params=bool(ctx.config.get("relay.FuseOps.link_params", False)),
        )
        return fused
