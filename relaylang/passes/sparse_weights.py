"""Weights that are mostly zeros in blocks, and weights without transpositions. Both look at the values of parameters.

Usage:

    func, params = sparse_weights(func, params, "nn.dense", (16, 1), 0.8)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.ir import Call, Constant, Expr, Function, TensorType, Var, free_vars, post_order, rewrite
from relaylang.passes.rewriting import is_call
from relaylang.rules.sparse import PRODUCT, RULES, TRANSPOSE, Blocks

Params = dict[str, np.ndarray]


def in_blocks(matrix: np.ndarray, block: tuple[int, int]) -> Blocks:
    """The blocks of a matrix that are not zero, (blocks, rows, columns). Then the column of each, in blocks, and where each
    row of blocks begins. Raises `RelayError` (R0501) for blocks that do not divide the matrix."""
    high, wide = block
    if matrix.shape[0] % high or matrix.shape[1] % wide:
        raise RelayError(error("R0501", f"blocks of {high} x {wide} do not divide a matrix of {matrix.shape[0]} x {matrix.shape[1]}"))
    parts = matrix.reshape(matrix.shape[0] // high, high, matrix.shape[1] // wide, wide).transpose(0, 2, 1, 3)
    used = parts.any(axis=(2, 3))
    rows = np.concatenate([[0], np.cumsum(used.sum(axis=1))])
    return np.ascontiguousarray(parts[used]), np.nonzero(used)[1].astype("int32"), rows.astype("int32")


def sparse_weights(
    func: Function,
    params: Mapping[str, np.ndarray],
    op: str,
    block: tuple[int, int],
    threshold: float,
    wanted: Callable[[Call], bool] = lambda call: True,
) -> tuple[Function, Params]:
    """A function whose calls of `op` take weights in blocks. At least `threshold` of a weight lies outside of its blocks.

    `params` has values by name. A weight `w` becomes the parameters `w.data`, `w.indices` and `w.indptr`; a constant becomes
    constants. `wanted` says which calls are changed. Raises `RelayError` (R0501).
    """
    rule, values, sparse = RULES[op], dict(params), dict[Expr, list[Expr]]()

    def change(old: Expr, new: Expr) -> Expr:
        if not is_call(new, op) or not wanted(new):
            return new
        weight = new.args[1]
        value = weight.data if isinstance(weight, Constant) else values.get(weight.name_hint) if isinstance(weight, Var) else None
        matrix = None if value is None else rule.matrix(new.attrs, np.asarray(value))
        if matrix is None:
            return new
        if weight not in sparse:
            parts = in_blocks(matrix, block)
            if 1 - parts[0].size / max(matrix.size, 1) < threshold:
                return new
            blocks = parts[0][..., 0] if block[1] == 1 and rule.thin(new.attrs) else parts[0]
            named = zip(("data", "indices", "indptr"), (blocks, *parts[1:]), strict=True)
            sparse[weight] = [_parameter(weight, name, part, values) for name, part in named]
        return rule.call(new, sparse[weight])

    return _finished(func, rewrite(func, change), values)


def _parameter(weight: Expr, name: str, value: np.ndarray, values: Params) -> Expr:
    """A part of a weight as the weight was: a constant, or a parameter with a value."""
    if not isinstance(weight, Var):
        return Constant(value)
    values[f"{weight.name_hint}.{name}"] = value
    return Var(f"{weight.name_hint}.{name}", TensorType(value.shape, value.dtype.name))


def without_transposes(func: Function, params: Mapping[str, np.ndarray]) -> tuple[Function, Params]:
    """A function in which products take the parameter `w.T` for the transposition of `w`."""
    values, transposed = dict(params), dict[Expr, Expr]()

    def change(old: Expr, new: Expr) -> Expr:
        if not is_call(new, PRODUCT) or not is_call(new.args[1], TRANSPOSE):
            return new
        turned = new.args[1]
        assert isinstance(turned, Call)
        weight = turned.args[0]
        if not isinstance(weight, Var) or weight.name_hint not in values or tuple(turned.attrs.axes or (1, 0)) != (1, 0):  # type: ignore[attr-defined]
            return new
        if weight not in transposed:
            transposed[weight] = _parameter(weight, "T", np.ascontiguousarray(values[weight.name_hint].T), values)
        return Call(new.op, [new.args[0], transposed[weight]], new.attrs, new.type_args, new.span)

    return _finished(func, rewrite(func, change), values)


def _finished(func: Function, rewritten: Expr, values: Params) -> tuple[Function, Params]:
    """The function with the parameters that it needs now, and their values."""
    assert isinstance(rewritten, Function)
    if rewritten is func:
        return func, values
    used = {n for n in post_order(rewritten.body) if isinstance(n, Var)}
    gone = {p.name_hint for p in func.params if p not in used}
    params = [p for p in func.params if p in used or p.name_hint not in values]
    params += free_vars(Function(params, rewritten.body))
    new = Function(params, rewritten.body, rewritten.ret_type, rewritten.type_params, rewritten.attrs, rewritten.span)
    return new, {name: value for name, value in values.items() if name not in gone}


__all__ = ["in_blocks", "sparse_weights", "without_transposes"]
