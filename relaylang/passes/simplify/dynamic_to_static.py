"""DynamicToStatic: operators that take shapes as operands become those that have them as attributes, where the operands
are known. What this makes known is used further on: shapes of results, sums of shapes, and so on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError
from relaylang.ir import (
    Call,
    Constant,
    Expr,
    Function,
    If,
    IRModule,
    Tuple,
    Var,
    children,
    post_order,
    rebuild,
    rewrite,
)
from relaylang.ops import OPS, get, make_attrs
from relaylang.ops.record import Op
from relaylang.passes.manager import Pass
from relaylang.passes.rewriting import per_function
from relaylang.passes.simplify.fold_constant import Compute, _fold, evaluator
from relaylang.typing import infer

#: A call and its constant operands to the static operator, its operands and what else it has for attributes.
Static = Callable[[Call, list[Any]], "tuple[str, list[Expr], dict[str, Any]] | None"]


def _ints(value: Any) -> list[int] | None:
    return None if value is None else [int(v) for v in np.asarray(value).reshape(-1)]


def _shaped(name: str, attr: str) -> Static:
    """An operator whose second operand is the attribute `attr` of the static one."""

    def make(call: Call, values: list[Any]) -> tuple[str, list[Expr], dict[str, Any]] | None:
        shape = _ints(values[1])
        return None if shape is None else (name, [call.args[0]], {attr: shape})

    return make


def _init(name: str) -> Static:
    def make(call: Call, values: list[Any]) -> tuple[str, list[Expr], dict[str, Any]] | None:
        shape = _ints(values[-1])
        return None if shape is None else (name, list(call.args[:-1]), {"shape": shape})

    return make


def _strided_slice(call: Call, values: list[Any]) -> tuple[str, list[Expr], dict[str, Any]] | None:
    begin, end, strides = (_ints(v) for v in values[1:4])
    if begin is None or end is None or strides is None:
        return None
    return "strided_slice", [call.args[0]], {"begin": begin, "end": end, "strides": strides}


def _topk(call: Call, values: list[Any]) -> tuple[str, list[Expr], dict[str, Any]] | None:
    return None if values[1] is None else ("topk", [call.args[0]], {"k": int(values[1].item())})


def _one_hot(call: Call, values: list[Any]) -> tuple[str, list[Expr], dict[str, Any]] | None:
    return None if values[3] is None else ("one_hot", list(call.args[:3]), {"depth": int(values[3])})


def _expand_dims(call: Call, values: list[Any]) -> tuple[str, list[Expr], dict[str, Any]] | None:
    return None if values[1] is None else ("expand_dims", [call.args[0]], {"axis": int(values[1])})


def _pad(call: Call, values: list[Any]) -> tuple[str, list[Expr], dict[str, Any]] | None:
    if values[1] is None:
        return None
    widths = [[int(v) for v in row] for row in np.asarray(values[1])]
    return "nn.pad", [call.args[0], call.args[2]], {"pad_width": widths}


def _upsampling(name: str, scales: tuple[str, ...]) -> Static:
    def make(call: Call, values: list[Any]) -> tuple[str, list[Expr], dict[str, Any]] | None:
        if any(v is None for v in values[1:]):
            return None
        return name, [call.args[0]], {s: float(v) for s, v in zip(scales, values[1:])}

    return make


def _resize2d(call: Call, values: list[Any]) -> tuple[str, list[Expr], dict[str, Any]] | None:
    size = _ints(values[1])
    if size is None or values[2] is None:
        return None
    return "image.resize2d", [call.args[0]], {"size": size, "roi": [float(v) for v in np.asarray(values[2]).reshape(-1)]}


def _sparse_to_dense(call: Call, values: list[Any]) -> tuple[str, list[Expr], dict[str, Any]] | None:
    shape = _ints(values[3])
    return None if shape is None else ("sparse_to_dense", list(call.args[:3]), {"output_shape": shape})


STATIC: dict[str, Static] = {
    "dyn.reshape": _shaped("reshape", "newshape"),
    "dyn.broadcast_to": _shaped("broadcast_to", "shape"),
    "dyn.tile": _shaped("tile", "reps"),
    "dyn.squeeze": _shaped("squeeze", "axis"),
    "dyn.zeros": _init("zeros"),
    "dyn.ones": _init("ones"),
    "dyn.full": _init("full"),
    "dyn.strided_slice": _strided_slice,
    "dyn.topk": _topk,
    "dyn.one_hot": _one_hot,
    "dyn.expand_dims": _expand_dims,
    "dyn.nn.pad": _pad,
    "dyn.nn.upsampling": _upsampling("nn.upsampling", ("scale_h", "scale_w")),
    "dyn.nn.upsampling3d": _upsampling("nn.upsampling3d", ("scale_d", "scale_h", "scale_w")),
    "dyn.image.resize2d": _resize2d,
    "dyn.sparse_to_dense": _sparse_to_dense,
}


def _static_call(call: Call) -> Call | None:
    assert isinstance(call.op, Op)
    values = [a.data if isinstance(a, Constant) else None for a in call.args]
    made = STATIC[call.op.name](call, values)
    if made is None or made[0] not in OPS:
        return None
    name, args, attrs = made
    op = get(name)
    kept = {k: getattr(call.attrs, k) for k in op.schema if call.attrs is not None and hasattr(call.attrs, k)}
    assert op.attrs is not None
    return Call(op, args, make_attrs(op.attrs, {**kept, **attrs}), (), call.span)


def dynamic_to_static(mod: IRModule, compute: Compute) -> IRModule:
    """A module in which operators of the dyn dialect with known operands are static.

    What has types only when that is done, as TVM takes it, may be without before: branches of different types on a
    known condition, a shape whose length follows from another. Raises `RelayError` for what has none then either.
    """
    decided = per_function(mod, _decided)
    wrong = [d for d in infer(decided) if d.severity == "error"]
    made = per_function(decided, lambda f: _convert(f, compute, decided, untyped=bool(wrong)))
    if wrong and any(d.severity == "error" for d in infer(made)):
        raise RelayError(wrong)
    return made


def _decided(func: Function) -> Expr:
    """Known conditions, be they bool or whole numbers, replaced by their branches."""
    if not any(isinstance(n, If) and isinstance(n.cond, Constant) for n in post_order(func)):
        return func
    return rewrite(func, lambda old, new: _branch(new))


def _branch(expr: Expr) -> Expr:
    if isinstance(expr, If) and isinstance(expr.cond, Constant) and expr.cond.data.ndim == 0:
        return expr.true_branch if bool(expr.cond.data) else expr.false_branch
    return expr


def _convert(func: Function, compute: Compute, mod: IRModule, untyped: bool) -> Expr:
    order = list(post_order(func))
    if not any(isinstance(n, Op) and n.name.startswith("dyn.") for n in order):
        return func
    done: dict[int, Expr] = {}
    loose: set[int] = set()  # what has another type than before
    for node in order:
        inner = children(node)
        if not inner or isinstance(node, (Var, Op)):
            if untyped and node.checked_type is None and isinstance(node, (Var, Constant)):
                infer(node, fragment=True, module=mod)
            done[id(node)] = node
            continue
        new = rebuild(node, tuple([done[id(c)] for c in inner]))
        if isinstance(new, Call) and isinstance(new.op, Op) and new.op.name in STATIC:
            new = _static_call(new) or new
        touched = new is not node or (untyped and isinstance(node, (Call, Tuple)))
        if touched and isinstance(new, (Call, Tuple)) and all(done[id(c)].checked_type is not None or isinstance(c, Op)
                                                             for c in inner):  # fmt: skip
            infer(new, fragment=True, module=mod)
            new = _fold(node, new, compute, False)
        elif not touched and isinstance(new, Call):
            new = _fold(node, new, compute, False)
        elif touched and not any([id(c) in loose for c in inner]):
            new.checked_type = node.checked_type
        if new.checked_type != node.checked_type:
            loose.add(id(node))
        done[id(node)] = new
    result = done[id(func)]
    if isinstance(result, Function) and result is not func and result.ret_type is not None:
        # The result may be known more exactly than its annotation said.
        result = Function(result.params, result.body, None, result.type_params, result.attrs, result.span)
    return result


@dataclass(frozen=True)
class DynamicToStatic(Pass):
    """Operators that take shapes as operands become those that have them as attributes, where they are known."""

    opt_level = 2
    required = ()

    def run(self, mod: IRModule) -> IRModule:
        return dynamic_to_static(mod, evaluator())
