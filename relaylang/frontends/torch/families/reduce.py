"""Reductions, extreme elements, sorting, running sums."""

from __future__ import annotations

from typing import Any

from relaylang.frontends.common import Rule
from relaylang.frontends.torch.node import Node
from relaylang.ir import Expr


def _axes(n: Node) -> tuple[int, ...] | None:
    """The axes; None for all of them."""
    dims = n.get("dim")
    return None if dims is None or dims == [] else tuple(n.ints("dim"))


def reduce_(op: str) -> Any:
    """A reduction in the element type of the result."""

    def convert(n: Node) -> Any:
        b, x = n.b, n.x()
        x = b.cast(x, "bool" if op in ("all", "any") else n.dtype() or n.result_dtype())
        return b.op(op, x, axis=_axes(n), keepdims=bool(n.get("keepdim", False)))

    return convert


def variance(n: Node) -> Any:
    b, x, axes, keep = n.b, n.x(), _axes(n), bool(n.get("keepdim", False))
    correction = n.get("correction", 1 if n.get("unbiased", True) else 0)
    axes = axes if axes is not None else tuple(range(b.rank(x)))
    mean = b.op("mean", x, axis=axes, keepdims=True)
    off = b.op("subtract", x, mean)
    total = b.op("sum", b.op("multiply", off, off), axis=axes, keepdims=keep)
    count = 1
    for a in axes:
        count *= b.extent(x, a)
    made = b.op("divide", total, float(count - (1 if correction is None else correction)))
    if "std" in n.call.target:
        made = b.op("sqrt", made)
    if "mean" in n.call.target:
        return [made, mean if keep else b.op("mean", x, axis=axes)]
    return made


def arg(op: str) -> Any:
    def convert(n: Node) -> Any:
        axes = _axes(n)
        return n.b.cast(n.b.op(op, n.x(), axis=axes, keepdims=bool(n.get("keepdim", False))), "int64")

    return convert


def extreme(op: str) -> Any:
    """max and min: of two tensors, of all elements, or along an axis with the positions."""

    def convert(n: Node) -> Any:
        b, x = n.b, n.x()
        if n.overload == "other":
            return b.op("maximum" if op == "max" else "minimum", x, n.x("other"))
        if n.overload == "default":
            return b.op(op, x)
        axis, keep = (n.int("dim"),), bool(n.get("keepdim", False))
        return [b.op(op, x, axis=axis, keepdims=keep), b.cast(b.op(f"arg{op}", x, axis=axis, keepdims=keep), "int64")]

    return convert


def top_k(n: Node) -> Any:
    b = n.b
    largest = bool(n.get("largest", True))
    made = b.op("topk", n.x(), k=n.int("k"), axis=n.int("dim", -1), ret_type="both", is_ascend=not largest, dtype="int64")
    return b.fields(made)


def sort(n: Node) -> Any:
    b, x = n.b, n.x()
    axis, ascend = n.int("dim", -1), not n.get("descending", False)
    order = b.op("argsort", x, axis=axis, is_ascend=ascend, dtype="int64")
    return [b.op("sort", x, axis=axis, is_ascend=ascend), order]


def running(op: str) -> Any:
    def convert(n: Node) -> Any:
        dtype = n.dtype() or n.result_dtype()
        return n.b.op(op, n.b.cast(n.x(), dtype), axis=n.int("dim"), dtype=dtype)

    return convert


def norm(n: Node) -> Any:
    b, x = n.b, n.x()
    order = n.get("ord", n.get("p", 2))
    order = 2 if order is None else order
    axes, keep = _axes(n), bool(n.get("keepdim", False))
    size: Expr = b.op("abs", x)
    if order == 1:
        return b.op("sum", size, axis=axes, keepdims=keep)
    if order == float("inf"):
        return b.op("max", size, axis=axes, keepdims=keep)
    if order == 2:
        return b.op("sqrt", b.op("sum", b.op("multiply", x, x), axis=axes, keepdims=keep))
    total = b.op("sum", b.op("power", size, float(order)), axis=axes, keepdims=keep)
    return b.op("power", total, 1.0 / float(order))


def log_sum_exp(n: Node) -> Any:
    b, x, axes, keep = n.b, n.x(), _axes(n), bool(n.get("keepdim", False))
    most = b.op("max", x, axis=axes, keepdims=True)
    total = b.op("sum", b.op("exp", b.op("subtract", x, most)), axis=axes, keepdims=keep)
    return b.op("add", b.op("log", total), most if keep else b.op("max", x, axis=axes))


RULES = (
    *(Rule(f"aten.{name}", reduce_(name)) for name in ("sum", "mean", "prod", "all", "any")),
    *(Rule(f"aten.{name}", variance) for name in ("var", "std", "var_mean", "std_mean")),
    Rule("aten.amax", reduce_("max")),
    Rule("aten.amin", reduce_("min")),
    Rule("aten.argmax", arg("argmax")),
    Rule("aten.argmin", arg("argmin")),
    Rule("aten.cumprod", running("cumprod")),
    Rule("aten.cumsum", running("cumsum")),
    Rule("aten.linalg_vector_norm", norm),
    Rule("aten.logsumexp", log_sum_exp),
    Rule("aten.max", extreme("max")),
    Rule("aten.min", extreme("min")),
    Rule("aten.norm", norm),
    Rule("aten.sort", sort),
    Rule("aten.topk", top_k),
)
