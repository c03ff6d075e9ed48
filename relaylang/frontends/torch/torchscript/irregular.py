"""Operators that ask about tensors, make them of plain values, or change lists: they have no table of arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from relaylang.frontends.common import Unsupported
from relaylang.frontends.common.complexes import PARTS, Complex, as_complex
from relaylang.frontends.common.nn import broadcast_extents
from relaylang.frontends.torch.torchscript.plain_values import compute, known, number
from relaylang.frontends.torch.torchscript.recurrent import GRU, LSTM
from relaylang.frontends.torch.torchscript.values import DTYPES, NUMBERS, Quant, Raised, Tensor
from relaylang.ir import Expr

if TYPE_CHECKING:
    from relaylang.frontends.torch.torchscript.operators import Operators


def _size(m: Operators, x: Any, dim: Any = None) -> Any:
    if not isinstance(x, Tensor):
        return NotImplemented
    b, value = m.b, _parted(x.read())

    def extent(axis: int) -> Any:
        extent = b.shape(value)[axis]
        if isinstance(extent, int):
            return int(extent)
        axis %= b.rank(value)
        return b.scalar(b.slice(b.shape_of(value), [axis], [axis + 1], [0]))

    return [extent(i) for i in range(b.rank(value))] if dim is None else extent(dim)


def _dim(m: Operators, x: Tensor) -> Any:
    return m.b.rank(_parted(x.value))


def _parted(value: Any) -> Expr:
    """A tensor, or the real part of a complex one: what tells the extents."""
    part: Expr = value.real if isinstance(value, Complex) else value
    return part


def _numel(m: Operators, x: Tensor) -> Any:
    count: Any = 1
    for extent in _size(m, x):
        count = compute(m.b, "mul", [count, extent])
    return count


def _stride(m: Operators, x: Tensor, dim: Any = None) -> Any:
    steps: list[Any] = [1]
    for extent in reversed(_size(m, x)[1:]):
        steps.insert(0, compute(m.b, "mul", [steps[0], extent]))
    return steps if dim is None else steps[dim]


_PYTHON: dict[str, Callable[[Any], Any]] = {"int64": int, "float64": float, "bool": bool}


def _item(dtype: str) -> Callable[..., Any]:
    """A tensor of one element, or a number, as a number of a kind."""

    def convert(m: Operators, x: Any) -> Any:
        if isinstance(x, (int, float, str)):
            return x if not dtype else _PYTHON[dtype](x)
        if isinstance(x, (list, dict)):
            return NotImplemented
        b, value = m.b, x.read() if isinstance(x, Tensor) else x
        kind = dtype or ("bool" if b.dtype(value) == "bool" else "float64" if "float" in b.dtype(value) else "int64")
        return known(b, b.cast(b.scalar(value), kind))

    return convert


def _to_tensor(m: Operators, data: Any, dtype: Any = None, device: Any = None, requires_grad: Any = None) -> Any:
    """A tensor of numbers, or of nested lists of them."""
    if isinstance(data, Tensor):
        return data if dtype is None else _cast(m, data, DTYPES[dtype])
    b = m.b
    if isinstance(data, Expr):
        kind = DTYPES[dtype] if dtype is not None else {"float64": "float32"}.get(b.dtype(data), b.dtype(data))
        return Tensor(b.cast(data, kind))
    if isinstance(data, list) and any(isinstance(v, Expr) for v in data):
        parts = [b.reshape(number(b, v), [1]) for v in data]
        return Tensor(b.cast(b.concat(parts, 0), DTYPES[dtype] if dtype is not None else b.dtype(parts[0])))
    array = np.array(data)
    plain = {"f": "float32", "i": "int64", "b": "bool"}.get(array.dtype.kind)
    if plain is None:
        raise Unsupported("it makes a tensor of values that are no numbers")
    return Tensor(b.const(array, DTYPES[dtype] if dtype is not None else plain))


def _cast(m: Operators, x: Tensor, dtype: str) -> Tensor:
    value, b = x.read(), m.b
    if isinstance(value, Complex) or dtype in PARTS:
        pair = as_complex(b, value, b.const(0.0, PARTS.get(dtype, "float32")))
        return Tensor(pair.each(lambda part: b.cast(part, PARTS[dtype])) if dtype in PARTS else b.cast(pair.real, dtype))
    return x if b.dtype(value) == dtype else Tensor(b.cast(value, dtype))


def _to(m: Operators, x: Any, *args: Any, **named: Any) -> Any:
    """Another element type; devices and layouts mean nothing here."""
    if not isinstance(x, Tensor):
        return NotImplemented
    dtype = named.get("dtype")
    copy = named.get("copy", False)
    flags = [a for a in args if isinstance(a, bool)]
    for a in args:
        if isinstance(a, Tensor):
            dtype = _dtype(m, a)
        elif isinstance(a, int) and not isinstance(a, bool) and dtype is None:
            dtype = a
    converted = x if dtype is None else _cast(m, x, DTYPES[dtype])
    return Tensor(x.read()) if converted is x and (copy or flags[1:2] == [True]) else converted


def _itself(m: Operators, x: Any, *args: Any, **named: Any) -> Any:
    return x


def _dtype(m: Operators, x: Tensor) -> Any:
    kind = m.b.dtype(_parted(x.value))
    return NUMBERS[next(c for c, part in PARTS.items() if part == kind) if isinstance(x.value, Complex) else kind]


def _is_float(m: Operators, x: Tensor) -> Any:
    return not isinstance(x.value, Complex) and "float" in m.b.dtype(x.value)


def _constant(value: Any) -> Callable[..., Any]:
    return lambda m, *args, **named: value


def _is(m: Operators, x: Any, y: Any) -> Any:
    return x is y


def _raise(m: Operators, message: Any = "", *args: Any) -> Any:
    raise Raised(str(message)[:200])


def _changed(change: Callable[..., Any]) -> Callable[..., Any]:
    """A change of a list or dict in place."""

    def convert(m: Operators, values: Any, *args: Any) -> Any:
        if not isinstance(values, (list, dict)):
            return NotImplemented
        if m.journal is not None and id(values) not in m.journal.own:
            raise Unsupported("it changes a list under a condition that depends on data")
        return change(values, *args)

    return convert


def _append(values: list[Any], value: Any) -> Any:
    values.append(value)
    return values


def _extend(values: list[Any], more: list[Any]) -> Any:
    values.extend(list(more))
    if len(values) > 1 << 20:
        raise Unsupported("it makes a list that is too long")


def _set(values: Any, at: Any, value: Any) -> Any:
    values[at] = value
    return values


def _pick(m: Operators, values: Any, at: Any) -> Any:
    if isinstance(values, Tensor):
        return NotImplemented
    if isinstance(at, Expr):
        raise Unsupported("it takes an element at a place that depends on data")
    return values[at]


def _copied(m: Operators, values: Any) -> Any:
    return list(values) if isinstance(values, (list, tuple)) else dict(values) if isinstance(values, dict) else NotImplemented


def _broadcast(m: Operators, tensors: list[Tensor]) -> Any:
    values = [t.read() for t in tensors]
    shape = broadcast_extents(m.b, values)
    return [Tensor(m.b.op("broadcast_to", v, shape=shape)) for v in values]


def _scale(m: Operators, x: Tensor) -> Any:
    return float(_quant(x).scale)


def _zero(m: Operators, x: Tensor) -> Any:
    return int(_quant(x).zero)


def _quant(x: Tensor) -> Quant:
    if x.quant is None or x.quant.scale.ndim:
        raise Unsupported("its operand has no scale of its own")
    return x.quant


#: Operators by name; `NotImplemented` is their result where the operator takes the usual way.
SPECIAL: dict[str, Callable[..., Any]] = {
    "size": _size, "dim": _dim, "len": lambda m, x: _size(m, x, 0) if isinstance(x, Tensor) else len(x),
    "numel": _numel, "stride": _stride, "item": _item(""), "int": _item("int64"),
    "float": _item("float64"), "bool": _item("bool"), "Int": _item("int64"), "Float": _item("float64"), "Bool": _item("bool"),
    "IntImplicit": _item("int64"), "FloatImplicit": _item("float64"), "ScalarImplicit": _item(""), "tensor": _to_tensor,
    "as_tensor": _to_tensor, "NumToTensor": lambda m, value: Tensor(number(m.b, value)),
    "to": _to, "_to_copy": _to, "cpu": _itself, "cuda": _itself,
    "requires_grad_": _itself, "data": _itself, "dtype": _dtype, "device": _constant("cpu"), "layout": _constant(0),
    "type": _constant("cpu"),
    "is_cuda": _constant(False), "is_mkldnn": _constant(False), "is_sparse": _constant(False), "requires_grad": _constant(True),
    "is_nested": _constant(False), "is_grad_enabled": _constant(True), "is_autocast_enabled": _constant(False),
    "is_contiguous": _constant(True), "is_complex": lambda m, x: isinstance(x.value, Complex), "is_scripting": _constant(True),
    "is_floating_point": _is_float, "__is__": _is, "__isnot__": lambda m, x, y: x is not y,
    "__not__": lambda m, x: compute(m.b, "__not__", [m.truth(x)]),
    "RaiseException": _raise,
    "warn": _constant(None), "Print": _constant(None), "_assert": _constant(None), "append": _changed(_append),
    "extend": _changed(_extend), "_set_item": _changed(_set), "insert": _changed(list.insert),
    "pop": _changed(lambda v, *a: v.pop(*a)), "clear": _changed(lambda v: v.clear()), "reverse": _changed(list.reverse),
    "__getitem__": _pick, "list": _copied, "copy": _copied,
    "dict": lambda m, pairs=(): dict(pairs),
    "unchecked_unwrap_optional": _itself, "_unwrap_optional": _itself, "broadcast_tensors": _broadcast,
    "q_scale": _scale, "q_zero_point": _zero, "is_quantized": lambda m, x: x.quant is not None,
    "quantized_lstm": LSTM, "quantized_gru": GRU,
    "set_grad_enabled": _constant(None), "_set_grad_enabled": _constant(None), "manual_seed": _constant(None),
}  # fmt: skip

__all__ = ["SPECIAL"]
