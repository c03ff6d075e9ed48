"""Counted loops, which a region takes whole: its kernel has the loop.

Such a loop is a function inside the region, so that the interpreter can compute it, too. Where its extents or its limit
are found at run time, it becomes an `OpenLoop` before the region gets its sizes (`sized`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relaylang.backends.cpu.external import OpaqueOp
from relaylang.backends.cpu.turns import LEAST, MOST, Form, begins, form_of, whole_number
from relaylang.backends.vm.regions import SIZED, STATIC, is_static, tensors_of, ways_of
from relaylang.ir import (
    Call,
    Constant,
    Expr,
    Function,
    FuncType,
    GlobalVar,
    If,
    IRModule,
    Let,
    TensorType,
    Tuple,
    TupleGetItem,
    Type,
    Var,
    children,
    free_vars,
    post_order,
    rewrite,
)
from relaylang.ir.typed import retype, typed, typed_field, typed_tuple, typed_var
from relaylang.kernels.dtypes import SIZES
from relaylang.ops.record import Op
from relaylang.passes.normal_forms import to_graph_normal_form
from relaylang.rules.decompositions.common import known, reshape

#: A longer loop over scalars alone is faster as instructions.
_MANY = 4096
#: A function of the module with more calls in one function stays a function.
_CALLS = 16
#: Loops inside each other that are one kernel.
_DEEPEST = 8


class OpenLoop(OpaqueOp):
    """The operator of a loop whose extents or limit sizes give. Its result has the final value of each of the loop's parameters.

    Its operands are the first states, then other values. `body` takes the turn and these. It gives the next states, the
    rows of the turn, and the limit.
    """

    __slots__ = ("body", "first", "form", "number")
    body: Function
    first: Constant
    form: Form
    number: int

    def __init__(self, body: Function, first: Constant, form: Form, number: int, result: Type) -> None:
        super().__init__(f"open loop {number}", len(body.params) - 1, result)
        for name, value in (("body", body), ("first", first), ("form", form), ("number", number)):
            object.__setattr__(self, name, value)


@dataclass(frozen=True)
class Counted:
    """A counted loop that becomes a kernel, as a function (`counted_loop`), and what its call stands for.

    `end` is the value of the loop's call, from the last value of each of `params`.
    """

    function: Function
    params: Sequence[Var]
    end: Expr

    def value(self, call: Expr) -> Expr:
        """The value of the loop's call, by a call of the function."""
        if isinstance(self.end, Tuple) and list(self.end.fields) == list(self.params):
            return call
        fields = {param: typed_field(call, n) for n, param in enumerate(self.params)}
        return rewrite(self.end, lambda old, new: fields[old] if isinstance(old, Var) and old in fields else retype(new, old))


def counted_loops(function: Function, global_function: Callable[[str], Function | None]) -> dict[Call, Counted]:
    """The calls that begin counted loops, each with its loop. A loop is a let's function, or a function of the module.

    Nothing else uses a let's loop: its only other use is the call of the next turn. A loop of known turns and extents takes
    those inside it.
    """
    uses: dict[Expr, list[Expr]] = {}
    lets: list[Let] = []
    calls: dict[str, list[Call]] = {}
    out: dict[Call, Counted] = {}
    inner = Inner()
    for node in post_order(function.body):
        if isinstance(node, Let) and isinstance(node.value, Function):
            lets.append(node)
        for child in children(node):
            if isinstance(child, Var):
                uses.setdefault(child, []).append(node)
        if isinstance(node, Call) and isinstance(node.op, GlobalVar):
            calls.setdefault(node.op.name_hint, []).append(node)
    for name, begins_of in calls.items():
        callee = global_function(name) if len(begins_of) <= _CALLS else None
        form = form_of(callee) if callee is not None and callee is not function else None
        if callee is None or form is None or not isinstance(form.again.op, GlobalVar) or form.again.op.name_hint != name:
            continue
        for begin in begins_of:
            loop = counted_loop(_with_states(name, callee, form, begin), inner)
            if loop is not None:
                out[begin] = Counted(loop, callee.params, form.end)
    for let in lets:
        assert isinstance(let.value, Function)
        form = form_of(let.value) if len(uses.get(let.variable, ())) == 2 else None
        use = next((x for x in uses[let.variable] if x is not form.again), None) if form is not None else None
        if form is None or not isinstance(use, Call) or use.op is not let.variable or form.again.op is not let.variable:
            continue
        loop = counted_loop(_with_states(let.variable.name_hint, let.value, form, use), inner)
        if loop is None:
            continue
        depth = 1
        for node in post_order(let.value.body):
            if id(node) in inner.loops:
                call, other = inner.loops[id(node)]
                out.pop(call, None)
                depth = max(depth, other + 1)
        out[use] = Counted(loop, let.value.params, form.end)
        if STATIC in ways_of_loop(loop) and not form.rows and depth < _DEEPEST:
            inner.add(let, use, depth)
    return out


class Inner:
    """Loops that others may take: by the id of a loop's function, the call that begins it, and how deep it is."""

    def __init__(self) -> None:
        self.loops: dict[int, tuple[Call, int]] = {}
        self.variables: set[Expr] = set()
        #: the nodes of their turns, which have been looked at
        self.nodes: set[int] = set()

    def add(self, let: Let, begin: Call, depth: int) -> None:
        self.loops[id(let.value)] = begin, depth
        self.variables.add(let.variable)
        self.nodes.update(id(node) for node in post_order(let.value) if id(node) not in self.nodes)


def _with_states(name: str, function: Function, form: Form, begin: Call) -> Let:
    """A let of a loop with the call that begins it. The result has all parameters' last values."""
    assert isinstance(function.body, If)
    params, end = function.params, typed_tuple(list(function.params))
    result, types = end.checked_type, [ty for param in params if (ty := param.checked_type) is not None]
    ty = FuncType(types, result) if result is not None else None
    variable = typed_var(name, ty, function.span)
    turn: Expr = typed(Call(variable, form.again.args, None, (), form.again.span), result)
    lets, node = [], function.body.true_branch
    while isinstance(node, Let):
        lets.append(node)
        node = node.body
    for each in reversed(lets):
        turn = typed(Let(each.variable, each.value, turn, each.span), result)
    body = typed(If(function.body.cond, turn, end, function.body.span), result)
    loop = typed(Function(params, body, result, span=function.span), ty)
    return typed(Let(variable, loop, typed(Call(variable, begin.args, None, (), begin.span), result), begin.span), result)


def counted_loop(let: Let, inner: Inner) -> Function | None:
    """A let of a counted loop and its call as a function; None for other lets. It may have `inner` loops.

    It takes the operands of the loop's call that are no constants, and the loop's free variables. Known turns give known
    extents of rows.
    """
    form = _form(let, inner)
    if form is None:
        return None
    function, call = let.value, let.body
    assert isinstance(function, Function) and isinstance(call, Call)
    first, limit = whole_number(call.args[form.turn]), whole_number(form.limit)
    inputs = {n: typed_var(f"first{n}", x.checked_type) for n, x in enumerate(call.args) if not isinstance(x, Constant)}
    began = Call(call.op, [inputs.get(n, x) for n, x in enumerate(call.args)], span=call.span)
    loop = typed(Let(let.variable, function, retype(began, call), let.span), let.checked_type)
    params = [*inputs.values(), *(x for x in free_vars(function) if x is not let.variable)]
    if not all(_is_tensor(x.checked_type) for x in params):
        return None
    fields: list[Expr] = []
    for n in range(len(function.params)):
        field: Expr = typed_field(loop, n)
        if n in form.rows and first is not None and limit is not None and is_static(form.rows[n].checked_type):
            rows, *extents = known(form.rows[n])
            field = reshape(field, [(limit - first) * rows, *extents])
        fields.append(field)
    body = typed_tuple(fields)
    types = [ty for x in params if (ty := x.checked_type) is not None]
    if body.checked_type is None:
        return None
    loop_function = typed(Function(params, body), FuncType(types, body.checked_type))
    nested = any(id(node) in inner.loops for node in post_order(function.body))
    return loop_function if not nested or STATIC in ways_of_loop(loop_function) else None


def _form(let: Let, inner: Inner) -> Form | None:
    """The form of a loop that becomes a kernel."""
    function, call = let.value, let.body
    if not isinstance(function, Function) or not isinstance(call, Call) or call.op is not let.variable:
        return None
    form = form_of(function)
    if form is None or form.again.op is not let.variable or not begins(form, call.args):
        return None
    first, limit = whole_number(call.args[form.turn]), whole_number(form.limit)
    if first is None or (limit is not None and not LEAST <= limit - first <= MOST):
        return None
    many = limit is None or limit - first > _MANY
    if many and not form.rows and all(call.args[n].checked_type.shape == () for n in form.states):  # type: ignore[union-attr]
        return None  # scalars have instructions
    return form if let.checked_type is not None and _is_compiled(let, form, inner) else None


def ways_of_loop(function: Function) -> frozenset[str]:
    """The ways in which a loop (`counted_loop`) may be compiled."""
    _, form = _parts(function)
    known = all(is_static(x.checked_type) for x in (*function.params, function.body))
    return frozenset({STATIC} if known and whole_number(form.limit) is not None else {SIZED})


def _parts(function: Function) -> tuple[Let, Form]:
    """The let of a loop (`counted_loop`) and its form."""
    assert isinstance(function.body, Tuple)
    let = next(field.tuple_value for field in function.body.fields if isinstance(field, TupleGetItem))
    assert isinstance(let, Let) and isinstance(let.value, Function)
    form = form_of(let.value)
    assert form is not None
    return let, form


def with_open_loops(module: IRModule) -> IRModule:
    """A region whose loops are calls of `OpenLoop`s."""
    function = module["main"]
    loops = [node for node in post_order(function.body) if isinstance(node, Call) and isinstance(node.op, Function)]
    if not loops:
        return module
    numbers = {id(node): n for n, node in enumerate(loops)}

    def opened(old: Expr, new: Expr) -> Expr:
        if id(old) not in numbers:
            return retype(new, old)
        assert isinstance(new, Call) and isinstance(old, Call) and isinstance(old.op, Function)
        return _open_loop(old.op, new.args, numbers[id(old)])

    return IRModule.from_expr(Function(function.params, rewrite(function.body, opened)))


def _open_loop(function: Function, args: Sequence[Expr], number: int) -> Call:
    let, form = _parts(function)
    assert isinstance(let.value, Function) and isinstance(let.body, Call)
    values = dict(zip(function.params, args))
    params, began = let.value.params, [values.get(x, x) if isinstance(x, Var) else x for x in let.body.args]
    places = [*form.states, *(n for n in range(len(params)) if n not in (form.turn, *form.states, *form.rows))]
    free = [x for x in free_vars(let.value) if x is not let.variable]
    turn: Expr = typed_tuple([*(form.again.args[n] for n in form.states), *form.rows.values(), form.limit])
    for variable, value in reversed(form.lets):
        turn = typed(Let(variable, value, turn), turn.checked_type)
    body = Function([params[form.turn], *(params[n] for n in places), *free], to_graph_normal_form.convert(turn))
    first = began[form.turn]
    assert isinstance(first, Constant) and let.checked_type is not None
    op = OpenLoop(body, first, form, number, let.checked_type)
    return typed(Call(op, [*(began[n] for n in places), *(values[x] for x in free)], None, (), let.span), op.result)


def _is_tensor(ty: Type | None) -> bool:
    """Whether compiled code has values of a type."""
    return isinstance(ty, TensorType) and ty.dtype in SIZES


def _is_compiled(let: Let, form: Form, inner: Inner) -> bool:
    """Whether a turn has compiled operators and inner loops alone; what collects its rows is not computed."""
    rows = {id(form.again.args[n]) for n in form.rows}
    bound = {variable: value for variable, value in form.lets}
    rows |= {id(bound[x]) for n in form.rows if isinstance(x := form.again.args[n], Var) and x in bound}
    for node in post_order(let.value):
        if id(node) in inner.nodes:
            continue
        if isinstance(node, Call):
            if isinstance(node.op, Op):
                if node.op.stateful or not (id(node) in rows or ways_of(node)):
                    return False
            elif node.op is not let.variable and node.op not in inner.variables:
                return False
        elif isinstance(node, Function):
            if node is not let.value:
                return False
        elif not isinstance(node, (Constant, If, Let, Op, Tuple, TupleGetItem, Var)):
            return False
    return all(tensors_of(row.checked_type) for row in form.rows.values())


__all__ = ["Counted", "OpenLoop", "counted_loops", "ways_of_loop", "with_open_loops"]
