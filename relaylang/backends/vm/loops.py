"""Loops of a known number of turns, which a region takes whole: its kernel has the loop."""

from __future__ import annotations

from relaylang.backends.cpu.lower import lowered
from relaylang.backends.cpu.turns import LEAST, Form, begins, form_of, whole_number
from relaylang.backends.vm.regions import is_static
from relaylang.ir import Call, Constant, Expr, Function, FuncType, If, Let, Tuple, TupleGetItem, Var, free_vars, post_order
from relaylang.ir.typed import retype, typed, typed_field, typed_tuple, typed_var
from relaylang.ops.record import Op
from relaylang.rules.decompositions.common import known, reshape

#: Loops of more turns stay instructions, between which a run can be stopped.
MOST = 4096


def counted_loop(let: Let) -> Function | None:
    """A let of a loop and its call as a function. None where it is no loop of known turns and extents.

    It takes the loop's free variables, and the operands of its call that are no constants. The extents of the function's
    results are known, those of rows, too.
    """
    function, call = let.value, let.body
    if not isinstance(function, Function) or not isinstance(call, Call) or call.op is not let.variable:
        return None
    form = form_of(function)
    if form is None or form.again.op is not let.variable or not begins(form, call.args):
        return None
    first, limit = whole_number(call.args[form.turn]), whole_number(form.limit)
    if first is None or limit is None or not LEAST <= limit - first <= MOST:
        return None
    same = isinstance(form.end, Tuple) and list(form.end.fields) == list(function.params)
    if not same or not _is_compiled(let, form):
        return None
    given = {n: typed_var(f"first{n}", x.checked_type) for n, x in enumerate(call.args) if not isinstance(x, Constant)}
    if not all(is_static(param.checked_type) for param in given.values()):
        return None
    began = Call(call.op, [given.get(n, x) for n, x in enumerate(call.args)], span=call.span)
    loop = typed(Let(let.variable, function, retype(began, call), let.span), let.checked_type)
    inner = [x for x in free_vars(function) if x is not let.variable]
    if not all(is_static(x.checked_type) for x in inner):
        return None
    fields: list[Expr] = []
    for n in range(len(function.params)):
        field: Expr = typed_field(loop, n)
        if n in form.rows:
            rows, *extents = known(form.rows[n])
            field = reshape(field, [(limit - first) * rows, *extents])
        fields.append(field)
    body = typed_tuple(fields)
    params = [*given.values(), *inner]
    made = Function(params, body)
    types = [ty for x in params if (ty := x.checked_type) is not None]
    return typed(made, FuncType(types, body.checked_type)) if body.checked_type is not None else None


def _is_compiled(let: Let, form: Form) -> bool:
    """Whether a turn has compiled operators of known extents alone; what collects its rows is not computed."""
    rows = {id(form.again.args[n]) for n in form.rows}
    bound = {variable: value for variable, value in form.lets}
    rows |= {id(bound[x]) for n in form.rows if isinstance(x := form.again.args[n], Var) and x in bound}
    for node in post_order(let.value):
        if isinstance(node, Call):
            if isinstance(node.op, Op):
                known = is_static(node.checked_type) or id(node) in rows
                if not known or node.op.stateful or node.op.name not in lowered():
                    return False
            elif node.op is not let.variable:
                return False
        elif isinstance(node, Function):
            if node is not let.value:
                return False
        elif not isinstance(node, (Constant, If, Let, Op, Tuple, TupleGetItem, Var)):
            return False
    return all(is_static(row.checked_type) for row in form.rows.values())


__all__ = ["counted_loop"]
