"""Complex numbers: what makes them, their parts, and the operators that take them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relaylang.frontends.common import Builder, Malformed, Rule, Unsupported
from relaylang.frontends.common import complexes as cx
from relaylang.frontends.common.complexes import Complex
from relaylang.frontends.common.nn import matmul
from relaylang.frontends.torch.families.arithmetic import atan2, promoted
from relaylang.frontends.torch.families.shape import extent
from relaylang.frontends.torch.node import Node
from relaylang.frontends.torch.pt2 import DType, Meta
from relaylang.ir import Expr

#: Operators that move elements, or are linear in them: each part is converted as a real tensor.
_BY_PARTS = frozenset(
    "_conj_copy _reshape_alias _unsafe_view alias alias_copy as_strided atleast_1d atleast_2d atleast_3d broadcast_to cat"
    " chunk clone column_stack concat concatenate constant_pad_nd contiguous copy cumsum detach detach_ detach_copy diag"
    " diag_embed diagonal diff dropout dsplit dstack empty_like expand expand_as fill fill_diagonal flatten flip fliplr"
    " flipud full_like gather hsplit hstack im2col index index_add index_copy index_fill index_put index_select lift"
    " lift_fresh lift_fresh_copy masked_fill masked_select mean moveaxis movedim mT narrow neg negative new_zeros numpy_T"
    " pad permute positive ravel repeat repeat_interleave reshape reshape_as resolve_conj resolve_neg roll rot90 row_stack"
    " scatter select select_copy select_scatter slice slice_copy slice_scatter split split_copy split_with_sizes squeeze"
    " squeeze_copy stack sum swapaxes swapdims t t_copy take take_along_dim tensor_split tile trace transpose transpose_copy"
    " tril triu unbind unbind_copy unflatten unfold unsqueeze unsqueeze_copy view view_as view_copy vsplit vstack where zero"
    " zeros_like".split()
)
#: Arguments of those operators that are data, beside the first one. Real data has the imaginary part 0.
_DATA = frozenset(("self", "other", "tensors", "src", "source", "values", "value", "fill_value"))


def _part(n: Node, index: int, dtype: str) -> Node:
    """The call with the real (0) or the imaginary parts (1) of its data."""

    def taken(name: str, value: Any) -> Any:
        if isinstance(value, list) and name in _DATA:
            return [taken(name, v) for v in value]
        if isinstance(value, Complex):
            return value.imaginary if index else value.real
        if isinstance(value, DType):
            return DType(cx.PARTS.get(value.name, value.name))
        if name not in _DATA or value is None or isinstance(value, (str, bool)):
            return value
        if isinstance(value, Expr):
            value = value if "float" in n.b.dtype(value) else n.b.cast(value, dtype)
            return n.b.op("zeros_like", value) if index else value
        return complex(value).imag if index else complex(value).real

    return n.replaced({name: taken(name, n.get(name)) for name in n.call.args})


def by_parts(rule: Callable[[Node], Any], n: Node) -> Any:
    """A conversion of real tensors, for the real and the imaginary parts."""
    operands = [first for name in n.call.args if (first := _first(n.get(name))) is not None]
    dtype = n.b.dtype(operands[0].real) if operands else n.result_dtype()
    real, imaginary = (rule(_part(n, index, dtype)) for index in range(2))
    if isinstance(real, (list, tuple)):
        return [Complex(p, q) for p, q in zip(real, imaginary, strict=True)]
    return Complex(real, imaginary)


def _first(value: Any) -> Complex | None:
    """The complex tensor that a value is, or the first one of a list."""
    if isinstance(value, (list, tuple)):
        return next((v for v in value if isinstance(v, Complex)), None)
    return value if isinstance(value, Complex) else None


# ---- arithmetic


def _both(n: Node, name: str = "other") -> tuple[Complex, Complex]:
    """Two operands, of which one is complex."""
    x, y = n.get("self"), n.get(name)
    b, like = n.b, next(v for v in (x, y) if isinstance(v, Complex)).real
    x, y = cx.as_complex(b, x, like), cx.as_complex(b, y, like)
    dtype = b.dtype(promoted(b, x.real, y.real)[0])
    return x.each(lambda part: b.cast(part, dtype)), y.each(lambda part: b.cast(part, dtype))


def _sum(op: str, swapped: bool = False) -> Any:
    def convert(n: Node) -> Any:
        b, (x, y) = n.b, _both(n)
        alpha = n.get("alpha", 1)
        x, y = (y, x) if swapped else (x, y)
        if alpha != 1:
            scale = cx.as_complex(b, alpha, x.real)
            x, y = (cx.product(b, x, scale), y) if swapped else (x, cx.product(b, y, scale))
        return Complex(b.op(op, x.real, y.real), b.op(op, x.imaginary, y.imaginary))

    return convert


def _product(n: Node) -> Any:
    b, x, y = n.b, n.get("self"), n.get("other")
    number, factor = (x, y) if isinstance(x, Complex) else (y, x)
    if not isinstance(factor, (Complex, complex)):
        return number.each(lambda part: b.op("multiply", *promoted(b, part, factor)))
    return cx.product(b, *_both(n))


def _quotient(n: Node) -> Any:
    b, x, y = n.b, n.get("self"), n.get("other")
    if n.get("rounding_mode"):
        raise Unsupported("it rounds complex numbers")
    if isinstance(x, Complex) and not isinstance(y, (Complex, complex)):
        return x.each(lambda part: b.op("divide", *promoted(b, part, y)))
    return cx.quotient(b, *_both(n))


def _matmul(n: Node) -> Any:
    name = next(a for a in ("other", "mat2", "vec") if a in n.call.args)
    return cx.product(n.b, *_both(n, name), times=lambda p, q: matmul(n.b, p, q))


def _operand(function: Callable[[Node, Complex], Any]) -> Any:
    def convert(n: Node) -> Any:
        return function(n, n.get("self"))

    return convert


def _polar(b: Builder, size: Expr, angle: Expr) -> Complex:
    return Complex(b.op("multiply", size, b.op("cos", angle)), b.op("multiply", size, b.op("sin", angle)))


def _sign(n: Node, x: Complex) -> Any:
    b, size = n.b, cx.absolute(n.b, x)
    size = b.op("where", b.op("equal", size, 0.0), b.op("ones_like", size), size)
    return x.each(lambda part: b.op("divide", part, size))


def _power(n: Node) -> Any:
    """Powers by small whole numbers."""
    x, exponent = n.get("self"), n.get("exponent")
    if not isinstance(x, Complex) or not isinstance(exponent, (int, float)) or exponent not in (1, 2, 3, 4):
        raise Unsupported("it raises complex numbers to powers other than 1 to 4")
    power = x
    for _ in range(int(exponent) - 1):
        power = cx.product(n.b, power, x)
    return power


def _equal(n: Node) -> Any:
    x, y = _both(n)
    return n.b.op("logical_and", n.b.op("equal", x.real, y.real), n.b.op("equal", x.imaginary, y.imaginary))


def _each_part(op: str, joined: str) -> Any:
    """A test of both parts."""

    def convert(n: Node) -> Any:
        x = n.get("self")
        return n.b.op(joined, *(n.b.op(op, part) for part in (x.real, x.imaginary)))

    return convert


def _extents(n: Node) -> Any:
    return extent(n.replaced({"self": n.get("self").real}))


def _converted(n: Node) -> Any:
    """Another element type; of one that is real, the real parts."""
    b, x, dtype = n.b, n.get("self"), n.dtype()
    if dtype is None or not isinstance(x, Complex):
        return x
    return x.each(lambda part: b.cast(part, cx.PARTS[dtype])) if dtype in cx.PARTS else b.cast(x.real, dtype)


_TAKES: dict[str, Callable[[Node], Any]] = {
    "abs": _operand(lambda n, x: cx.absolute(n.b, x)),
    "absolute": _operand(lambda n, x: cx.absolute(n.b, x)),
    "add": _sum("add"),
    "sub": _sum("subtract"),
    "subtract": _sum("subtract"),
    "rsub": _sum("subtract", swapped=True),
    "mul": _product,
    "multiply": _product,
    "div": _quotient,
    "divide": _quotient,
    "true_divide": _quotient,
    "angle": _operand(lambda n, x: atan2(n.replaced({"self": x.imaginary, "other": x.real}))),
    "reciprocal": _operand(lambda n, x: cx.quotient(n.b, cx.as_complex(n.b, 1, x.real), x)),
    "exp": _operand(lambda n, x: _polar(n.b, n.b.op("exp", x.real), x.imaginary)),
    "sgn": _operand(_sign),
    "square": _operand(lambda n, x: cx.product(n.b, x, x)),
    "pow": _power,
    "eq": _equal,
    "ne": lambda n: n.b.op("logical_not", _equal(n)),
    "matmul": _matmul,
    "mm": _matmul,
    "bmm": _matmul,
    "mv": _matmul,
    "real": _operand(lambda n, x: x.real),
    "imag": _operand(lambda n, x: x.imaginary),
    **{name: _operand(lambda n, x: cx.conjugate(n.b, x)) for name in ("conj", "_conj", "conj_physical", "_conj_physical")},
    **{name: _operand(lambda n, x: cx.paired(n.b, x)) for name in ("view_as_real", "view_as_real_copy")},
    "isfinite": _each_part("isfinite", "logical_and"),
    "isnan": _each_part("isnan", "logical_or"),
    "isinf": _each_part("isinf", "logical_or"),
    "_to_copy": _converted,
    "to": _converted,
    "sym_size": _extents,
    "size": _extents,
    "is_complex": lambda n: True,
}
#: Operators that give complex numbers, or take them as they are.
_MAKES = frozenset(
    "complex polar view_as_complex view_as_complex_copy stft istft _fft_c2c _fft_c2r _fft_r2c _assert_tensor_metadata".split()
)


def chosen(rule: Callable[[Node], Any], n: Node, name: str) -> Any:
    """The result of the conversion `rule` of `aten.name`, where operands or results are complex. Raises `Unsupported`."""
    values = [n.get(argument) for argument in n.call.args]
    if not any(_first(v) is not None for v in values):
        meta = n.meta()
        if _makes(name) or not ((isinstance(meta, Meta) and meta.dtype in cx.PARTS) or any(isinstance(v, complex) for v in values)):
            return rule(n)
        x = n.get("self")
        if name in ("full", "zeros", "empty"):
            return by_parts(rule, n)
        if name not in _TAKES or not isinstance(x, Expr):
            raise Unsupported("it makes complex numbers of real ones")
        n = n.replaced({"self": cx.as_complex(n.b, x, x if "float" in n.b.dtype(x) else n.b.const(0, "float32"))})
    if name in _TAKES:
        return _TAKES[name](n)
    if name in _BY_PARTS:
        return by_parts(rule, n)
    if _makes(name):
        return rule(n)
    raise Unsupported("it computes with complex numbers")


def _makes(name: str) -> bool:
    return name in _MAKES or name.startswith("fft_")


# ---- operators of real tensors


def make(n: Node) -> Any:
    return Complex(n.x("real"), n.x("imag"))


def unpaired(n: Node) -> Any:
    return cx.unpaired(n.b, n.x())


def _itself(n: Node) -> Any:
    return n.x()


def _refused(n: Node) -> Any:
    raise Malformed("its operand is not complex")


RULES = (
    *(Rule(f"aten.{name}", _itself) for name in ("conj", "conj_physical", "_conj", "_conj_physical")),
    *(Rule(f"aten.{name}", _refused) for name in ("imag", "view_as_real", "view_as_real_copy")),
    Rule("aten.complex", make),
    Rule("aten.polar", lambda n: _polar(n.b, n.x("abs"), n.x("angle"))),
    Rule("aten.view_as_complex", unpaired),
    Rule("aten.view_as_complex_copy", unpaired),
)

__all__ = ["RULES", "chosen"]
