"""What attention is in a graph, and the pass that makes it a kernel: `softmax(change(q k^T)) v`.

Fusion makes kernels of the products and of softmax. `with_attention` merges them where no other kernel reads the scores.
A kernel knows attention by its form (`attention_of`), so each stage of the graph says what it computes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from relaylang.backends.cpu.isa import Isa
from relaylang.backends.cpu.lower import RESHAPES, SELECTIONS
from relaylang.ir import Call, Constant, Expr, Function, FuncType, Var, children, post_order, rewrite
from relaylang.ir.typed import retype, typed
from relaylang.kernels.sizes import has_sizes, step_of, surely_less
from relaylang.ops.record import Op, OpPattern
from relaylang.passes.rewriting import is_call, is_primitive
from relaylang.rules.decompositions.common import dtype_of, known, shape_of

#: The elements of a head that a block of rows has room for.
_DEPTH = 256
#: The fewest rows that gain: with fewer, most lanes of vectors are idle.
_ROWS = 4
#: Operators of which a masked score stays masked, and a number that is no mask stays one.
_KEEPS_MASKS = frozenset({"add", "subtract", "multiply", "divide", "where", "maximum", "minimum", "clip", "tanh", *RESHAPES})
#: Scores up to this are masked, whatever the product of query and key.
_MASKED = -1e30
#: The greatest constant that masks.
_LEAST_MASK = -1e3
#: Operators that give elements other places.
_MOVES = frozenset({*SELECTIONS, "repeat", "broadcast_to"})


# -- the form --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Attention:
    """The nodes of attention: `last = batch_matmul(weights, v)`, and `weights` has the elements of `softmax(scores)`.

    The elements of `scores` come from those of the product `first` one by one.
    """

    first: Call
    scores: Expr
    softmax: Call
    weights: Expr
    last: Call


def _operands(node: Expr) -> Sequence[Expr]:
    """The operands of which one may have the scores: those with as many elements as the node."""
    if not isinstance(node, Call) or not isinstance(node.op, Op):
        return ()
    if node.op.name not in RESHAPES and node.op.pattern > OpPattern.BROADCAST:
        return ()
    size = _size(node)
    return [a for a in node.args if dtype_of(a) == "float32" and _size(a) == size]


def _size(node: Expr) -> int:
    shape = shape_of(node)
    return math.prod(shape) if shape is not None else 0


def reshaped(node: Expr) -> Expr:
    """The node whose elements a node has in another shape."""
    while isinstance(node, Call) and is_call(node, *RESHAPES):
        node = node.args[0]
    return node


def _is_guard(node: Expr) -> bool:
    """Whether a node is softmax with 0 for some rows."""
    if not is_call(node, "where"):
        return False
    rows, zero, _ = node.args
    shape = shape_of(rows)
    return isinstance(zero, Constant) and not zero.data.any() and shape is not None and shape[-1:] == (1,)


def _way(last: Expr, values: Mapping[Var, Expr]) -> tuple[Attention, list[Var]] | None:
    """Attention whose last product is a node, and the variables on the way from it to the first. They have `values`."""
    if not _is_product(last):
        return None
    assert isinstance(last, Call)
    kernels: list[Var] = []

    def value(node: Expr) -> Expr:
        while isinstance(node, Var) and node in values:
            kernels.append(node)
            node = values[node]
        return node

    node = value(last.args[0])
    while isinstance(node, Call) and (is_call(node, *RESHAPES) or _is_guard(node)):
        node = value(node.args[-1])
    if not is_call(node, "nn.softmax", "nn.fast_softmax") or node.attrs.axis not in (-1, len(shape_of(node) or ()) - 1):
        return None
    softmax, before = node, len(kernels)
    # Which operand has the scores is known at the end: one after the other is tried.
    todo: list[tuple[Expr, int]] = [(softmax.args[0], before)]
    while todo:
        node, length = todo.pop()
        del kernels[length:]
        node = value(node)
        if _is_product(node):
            assert isinstance(node, Call)
            return Attention(node, softmax.args[0], softmax, last.args[0], last), kernels
        todo += [(operand, len(kernels)) for operand in _operands(node)]
    return None


def _is_product(node: Expr) -> bool:
    """Whether a node is a product of batches of matrices in float32, whose counts do not differ between runs."""
    if not is_call(node, "nn.batch_matmul") or node.attrs.transpose_a:
        return False
    if has_sizes(step_of(known(operand)[0], known(node)[0]) for operand in node.args):
        return False
    return {dtype_of(node), *map(dtype_of, node.args)} == {"float32"} and len(shape_of(node) or ()) == 3


def _fits(found: Attention, values: Mapping[Var, Expr]) -> bool:
    """Whether there are loops for attention, and they gain."""
    q, v, scores = (shape_of(e) for e in (found.first.args[0], found.last, found.scores))
    product = shape_of(found.first)
    if q is None or v is None or scores is None or product is None or len(scores) < 3:
        return False
    if has_sizes((q[2], v[2])) or not (0 < q[2] <= _DEPTH and 0 < v[2] <= _DEPTH) or 0 in scores:
        return False
    groups, rows, keys = product
    *outer, own = scores[:-1]
    if scores[-1] != keys or v[:2] != (groups, rows):
        return False
    if own == rows == 1:
        return math.prod(outer) == groups and repeats_of(found, outer[-1], values) >= _ROWS
    if surely_less(rows, _ROWS):
        return False
    if own == rows:
        return math.prod(outer) == groups
    return own == 1 and not has_sizes((outer[-1], rows)) and outer[-1] % rows == 0


def _moved(operand: Expr, values: Mapping[Var, Expr]) -> tuple[Expr, list[Var]]:
    """The node whose elements an operand has in other places, and the variables on the way to it."""
    way: list[Var] = []
    while True:
        if is_call(operand, *_MOVES):
            operand = operand.args[0]
        elif isinstance(operand, Var) and operand in values and all(map(_moves, post_order(values[operand]))):
            way.append(operand)
            operand = values[operand]
        else:
            return operand, way


def _moves(node: Expr) -> bool:
    return isinstance(node, (Var, Op)) or is_call(node, *_MOVES)


def repeats_of(found: Attention, heads: int, values: Mapping[Var, Expr]) -> int:
    """How many neighbouring heads have the same keys and values (grouped queries)."""
    counts = []
    for operand in (found.first.args[1], found.last.args[1]):
        all_of_them, own = _size(operand), _size(_moved(operand, values)[0])
        if has_sizes((heads,)) or not own or surely_less(all_of_them, own):
            return 1
        count = all_of_them // own
        if has_sizes((count,)) or own * count != all_of_them or heads % count:
            return 1
        counts.append(count)
    return counts[0] if counts[0] == counts[1] else 1


def attention_of(function: Function, isa: Isa) -> Attention | None:
    """Attention inside a kernel; None where it has none, or where other nodes read the scores."""
    order = list(post_order(function.body))
    if isa.lanes == 1 or not any(is_call(node, "nn.softmax", "nn.fast_softmax") for node in order):
        return None
    ways = [way[0] for node in order if (way := _way(node, {})) is not None and _fits(way[0], {})]
    if len(ways) != 1:
        return None
    return ways[0] if _is_closed(ways[0], function.body) else None


def _is_closed(found: Attention, body: Expr) -> bool:
    """Whether the scores are changed element by element, and nothing else reads them."""
    way: set[Expr] = {found.softmax, found.last}
    node = found.weights
    while isinstance(node, Call) and node is not found.softmax:
        way.add(node)
        node = node.args[-1]
    changes = set(post_order(found.scores))
    computed: set[Expr] = {found.first}
    for node in post_order(found.last):
        if computed.isdisjoint(children(node)):
            continue
        if node not in way and (node not in changes or not _operands(node)):
            return False
        computed.add(node)
    if found.last.args[1] in computed:
        return False
    done: set[Expr] = {found.last}
    todo = [body]
    while todo:
        node = todo.pop()
        if node in done:
            continue
        if node in computed:
            return False
        done.add(node)
        todo += children(node)
    return True


def mask_bound(form: Attention) -> float | None:
    """Scores up to this bound are masked, whatever the product; None where no node masks scores.

    A constant that `where` takes in place of scores is such a bound. A summand counts as a mask below any product.
    """
    computed: set[Expr] = {form.first}
    for node in post_order(form.scores):
        if not computed.isdisjoint(children(node)):
            computed.add(node)
    node, masks, bound = form.scores, False, _MASKED
    while node is not form.first:
        if not isinstance(node, Call) or not isinstance(node.op, Op) or node.op.name not in _KEEPS_MASKS:
            return None
        parts = [arg for arg in node.args if arg in computed]
        others = [arg for arg in node.args if arg not in computed]
        if len(parts) != 1:
            return None
        if is_call(node, "where") and not masks and isinstance(others[-1], Constant) and others[-1].data.size == 1:
            number = float(others[-1].data.item())
            bound = number if _MASKED < number <= _LEAST_MASK else bound
        masks |= is_call(node, "where") or (is_call(node, "add", "subtract", "minimum") and shape_of(others[0]) != ())
        node = parts[0]
    return bound if masks else None


# -- the graph -------------------------------------------------------------------------------------------------------------


def with_attention(function: Function, isa: Isa) -> Function:
    """Merge the kernels of attention where the machine has vectors."""
    order = list(post_order(function.body))
    if isa.lanes == 1 or not any(
        is_call(node, "nn.softmax", "nn.fast_softmax") for f in _kernels(order) for node in post_order(f.body)
    ):
        return function
    calls = [node for node in order if isinstance(node, Call) and is_primitive(node.op)]
    makers = _makers(order, calls)
    values: dict[Var, Expr] = {param: call.op.body for param, call in makers.items()}  # type: ignore[attr-defined]
    #: The merged kernels, and the variables between them, by the calls of their last kernels.
    merged: dict[int, list[Var]] = {}
    for call in calls:
        for node in post_order(call.op.body):  # type: ignore[attr-defined]
            way = _way(node, values)
            if way is not None and way[1] and _fits(way[0], values):
                operands = (*way[0].first.args, way[0].last.args[1])
                merged[id(call)] = list(
                    dict.fromkeys([*way[1], *(param for operand in operands for param in _moved(operand, values)[1])])
                )
    if not merged:
        return function

    def read(old: Expr, new: Expr) -> Expr:
        new = retype(new, old)
        if id(old) not in merged:
            return new
        assert isinstance(new, Call) and isinstance(new.op, Function)
        return retype(_merged(new, merged[id(old)], makers), old)

    body = rewrite(function.body, read)
    return retype(Function(function.params, body, function.ret_type, (), function.attrs, function.span), function)


def _makers(order: Sequence[Expr], calls: Sequence[Call]) -> dict[Var, Call]:
    """What a kernel's parameters stand for, where a kernel of one user makes it."""
    users = Counter(id(child) for node in order for child in children(node))
    often = Counter(id(call.op) for call in calls)
    makers: dict[Var, Call] = {}
    for call in calls:
        if often[id(call.op)] > 1:
            continue
        for param, arg in zip(call.op.params, call.args):  # type: ignore[attr-defined]
            if not (isinstance(arg, Call) and is_primitive(arg.op) and often[id(arg.op)] == 1):
                continue
            if users[id(arg)] == 1 or all(map(_moves, post_order(arg.op.body))):  # type: ignore[attr-defined]
                makers[param] = arg
    return makers


def _kernels(order: Sequence[Expr]) -> list[Function]:
    return [node.op for node in order if isinstance(node, Call) and is_primitive(node.op)]  # type: ignore[misc]


def _merged(call: Call, between: Sequence[Var], makers: Mapping[Var, Call]) -> Call:
    """The call of a kernel into which the kernels of some of its values are merged, from its own on."""
    inner = call.op
    assert isinstance(inner, Function)
    args = dict(zip(inner.params, call.args))
    bodies: dict[int, Expr] = {}
    for param in between:
        maker = args.pop(param)
        assert isinstance(maker, Call) and isinstance(maker.op, Function)
        args.update(zip(maker.op.params, maker.args))
        bodies[id(param)] = maker.op.body
    for param in reversed(between):
        bodies[id(param)] = rewrite(bodies[id(param)], lambda old, new: bodies.get(id(old)) or retype(new, old))
    body = rewrite(inner.body, lambda old, new: bodies.get(id(old)) or retype(new, old))
    types = [p.checked_type or p.type_annotation for p in args]
    kernel = typed(Function(list(args), body, inner.ret_type, (), {"Primitive": 1}, inner.span), FuncType(types, body.checked_type))  # type: ignore[arg-type]
    return Call(kernel, list(args.values()), None, (), call.span)
