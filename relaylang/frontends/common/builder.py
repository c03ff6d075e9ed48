"""The builder: typed nodes from operator names and operands, with constants folded and places kept."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import Any

import numpy as np

from relaylang import ops
from relaylang.diagnostics import RelayError
from relaylang.diagnostics.source import Span
from relaylang.diagnostics.unsupported import Report, Unsupported
from relaylang.frontends.common.arrays import Arrays
from relaylang.frontends.common.extents import Extents
from relaylang.frontends.common.listing import Listing
from relaylang.frontends.common.report import Malformed
from relaylang.frontends.common.shape_values import Knowledge
from relaylang.frontends.common.shapes import Rank, Shape, joined, numbers_for
from relaylang.frontends.options import Options
from relaylang.interpreter.compute import compute
from relaylang.ir import (
    ANY,
    Call,
    Constant,
    Dim,
    Expr,
    Function,
    FuncType,
    GlobalVar,
    If,
    IRModule,
    Let,
    TensorType,
    Tuple,
    TupleType,
    Type,
    TypeVar,
    Var,
    free_vars,
    is_static,
    rewrite,
    type_text,
)
from relaylang.ir.typed import retype, typed, typed_constant, typed_field, typed_tuple, typed_var
from relaylang.ops.record import Op, make_attrs
from relaylang.rules.dynamic_to_static import RULES as DYNAMIC
from relaylang.rules.dynamic_to_static import static_call
from relaylang.rules.work import elements, work
from relaylang.runtime.budget import Budget
from relaylang.typing.incremental import CallTyper

#: A tensor has at most so many axes, as numpy's arrays.
_MAX_RANK = 64
#: A folded result may have this many elements, or as many as its operands.
_FOLDED = 1 << 16

_NO_OPERAND, _NO_TENSOR = "an operand is missing", "an operand is a sequence or an optional, not a tensor"


#: What a conversion may give for an operand.
Operand = Expr | np.ndarray | np.generic | int | float | bool


class Builder:
    """Builds the program of one model. Every node gets its type and the place of the current layer at once.

    `span` is the current layer's place. `module` takes functions beside `@main`. `budget` bounds what the file makes,
    and `arrays` makes arrays under it.
    """

    def __init__(self, listing: Listing, report: Report, options: Options, budget: Budget | None = None) -> None:
        self.budget = budget or Budget(listing.name, 0, options.nodes, options.bytes, options.work)
        self.arrays = Arrays(self.budget)
        self.listing = listing
        self.report = report
        self.options = options
        self.module = IRModule()
        self.span: Span | None = None
        self.params: dict[str, np.ndarray] = {}
        self._weights: dict[Var, np.ndarray] = {}
        self._typer = CallTyper()
        self._known = Knowledge()
        #: What conversions note about nodes, for those that take them later.
        self.notes: dict[Expr, Any] = {}
        #: The extents that the model names.
        self.extents = Extents()
        #: The nodes that searches for loop invariants came to, in order; and which of them depend on weights alone.
        self.reached: dict[Expr, int] = {}
        self.fixed: dict[Expr, bool] = {}
        self._names: dict[str, int] = {}

    # ---- nodes

    def op(self, name: str, *operands: Operand, **attrs: Any) -> Any:
        """A call of an operator; a constant where all operands are constants. Numbers get the first tensor's dtype.

        `attrs` are the operator's attributes by name; the others have their defaults. Raises `RelayError` where the
        operator does not take these operands.
        """
        return self._folded(self.unfolded(name, *operands, **attrs))

    def unfolded(self, name: str, *operands: Operand, **attrs: Any) -> Any:
        """The call of an operator, as `op` makes it, where its operands are constants, too."""
        parts = attrs.get("indices_or_sections")
        self.budget.take_nodes(parts if isinstance(parts, int) and parts > 0 else 1, "writing its layers out")
        op = ops.get(name)
        args = self.operands(operands)
        call = Call(op, args, make_attrs(op.attrs, attrs) if op.attrs is not None else None, (), self.span)
        try:
            self._typer.give(call)
        except RelayError:
            unnamed = self._with_unnamed(call)
            if unnamed is None:
                raise
            return unnamed
        return call

    def _with_unnamed(self, call: Call) -> Call | None:
        """The call with `?` for the names in as few operands as it takes; None where the error stays.

        A model may give one extent two names. What runs the program compares them then.
        """
        unnamed = [self._unnamed(a) for a in call.args] if self.extents else call.args
        named = [i for i, (a, b) in enumerate(zip(unnamed, call.args)) if a is not b]
        for places in [*[{i} for i in reversed(named)], set(named)] if named else []:
            args = [unnamed[i] if i in places else a for i, a in enumerate(call.args)]
            weaker = Call(call.op, args, call.attrs, (), call.span)
            try:
                self._typer.give(weaker)
            except RelayError:
                continue
            return weaker
        return None

    def _unnamed(self, x: Expr) -> Expr:
        """A tensor, or a tuple of them, with `?` for extents that have names."""
        if isinstance(x, Tuple):
            fields = [self._unnamed(f) for f in x.fields]
            return x if all(map(is_, fields, x.fields)) else self.tuple(fields)
        ty = x.checked_type
        if not isinstance(ty, TensorType) or not any(isinstance(d, TypeVar) for d in ty.shape):
            return x
        return self.stated(x, TensorType([ANY if isinstance(d, TypeVar) else d for d in ty.shape], ty.dtype))

    def _folded(self, call: Call) -> Any:
        """A typed call of an operator; a constant where it can be folded."""
        op = call.op
        assert isinstance(op, Op)
        operands = (x for arg in call.args for x in (arg.fields if isinstance(arg, Tuple) else (arg,)))
        if not op.stateful and not op.name.startswith("qnn.") and all(isinstance(x, Constant) for x in operands):
            folded = self._fold(call)
            if folded is not None:
                return folded
        self._known.follow(call, op)
        return call

    def type_call(self, call: Call) -> None:
        """Give a call of an operator that was built elsewhere its type. Raises `RelayError` where its operands do not fit."""
        self._typer.give(call)

    def operands(self, values: Sequence[Operand]) -> list[Expr]:
        """Expressions for operands. Numbers become constants of the first tensor's element type."""
        if any(v is None or isinstance(v, (list, str)) for v in values):
            raise Malformed(_NO_OPERAND if any(v is None for v in values) else _NO_TENSOR)
        types = [v.checked_type for v in values if isinstance(v, Expr)]
        dtype = next((t.dtype for t in types if isinstance(t, TensorType)), None)
        return [v if isinstance(v, Expr) else self.const(v, dtype if isinstance(v, (int, float)) else None) for v in values]

    def const(self, value: Any, dtype: str | None = None) -> Constant:
        """A constant: of a numpy array, or of a number or list as `dtype`. Raises `Malformed` for other values."""
        array = value if isinstance(value, np.ndarray) else np.asarray(value)
        self.budget.take_bytes(array.nbytes, "computing its constants")
        if dtype is not None and array.dtype != np.dtype(dtype):
            if array.dtype.kind in "OSU" and value is not None:
                raise Malformed(f"{repr(value)[:60]} stands where it takes a tensor or a number")
            with np.errstate(all="ignore"):
                array = array.astype(np.dtype(dtype))
        return typed_constant(array, span=self.span)

    def weight(self, name: str, array: np.ndarray) -> Expr:
        """A weight of the model: a constant, or a parameter of `@main` where the import does not freeze weights.

        Numbers, shapes and indices (one element, or int32, int64 and bool of rank 1) are always constants.
        """
        small = array.size <= 1 or (array.ndim <= 1 and array.dtype.name in ("int32", "int64", "bool"))
        if self.options.freeze or small:
            return typed_constant(array, span=self.span)
        name = self.unique(name)
        variable = typed_var(name, TensorType(array.shape, array.dtype.name), self.span)
        self.params[name] = array
        self._weights[variable] = array
        return variable

    def variable(self, name: str, ty: Type) -> Var:
        """A new variable: an input of the model, or a parameter of a function."""
        return typed_var(name, ty, self.span)

    def unique(self, name: str) -> str:
        """The name, or the name with a number behind it where it is taken."""
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        return name if count == 0 else self.unique(f"{name}_{count}")

    def tuple(self, fields: Sequence[Expr]) -> Tuple:
        """A tuple of expressions."""
        return typed_tuple(fields, self.span)

    def field(self, value: Expr, index: int) -> Expr:
        """A field of a tuple; the expression itself where the tuple is built here."""
        return value.fields[index] if isinstance(value, Tuple) else typed_field(value, index, self.span)

    def fields(self, value: Any) -> list[Expr]:
        """All fields of a tuple, or of an operator's result that has several."""
        source: Expr = value if isinstance(value, Expr) else value.tuple_value
        if not isinstance(source.checked_type, TupleType):
            raise Unsupported("an operand is not a tuple")
        return [self.field(source, i) for i in range(len(source.checked_type.fields))]

    def if_(self, cond: Expr, then: Expr, other: Expr) -> Expr:
        """A conditional; `cond` is a bool scalar. Extents that differ between the branches become `?`."""
        known = self.value(cond)
        if known is not None:
            return then if bool(known) else other
        assert then.checked_type is not None and other.checked_type is not None
        ty = joined(then.checked_type, other.checked_type)
        if ty is None:
            texts = f"`{type_text(then.checked_type)}` and `{type_text(other.checked_type)}`"
            raise Unsupported(f"its branches have the types {texts}")
        if ty not in (then.checked_type, other.checked_type):
            then = self.stated(then, ty)
        return typed(If(cond, then, other, self.span), ty)

    def stated(self, x: Expr, ty: Type) -> Expr:
        """An expression under a type with more `?`, which the program states."""
        name = self.variable("wide", ty)
        return typed(Let(name, x, name, self.span), ty)

    def call(self, function: Expr, args: Sequence[Expr]) -> Call:
        """A call of a function value or of a function of the module."""
        ty = self.module[function].checked_type if isinstance(function, GlobalVar) else function.checked_type
        assert isinstance(ty, FuncType)
        return typed(Call(function, args, None, (), self.span), ty.ret_type)

    def function(self, params: Sequence[Var], body: Expr) -> Function:
        """A function of typed variables."""
        assert body.checked_type is not None
        ty = FuncType([p.checked_type for p in params if p.checked_type is not None], body.checked_type)
        return typed(Function(params, body, body.checked_type, span=self.span), ty)

    def frozen(self, x: Expr) -> Any:
        """An expression with constants for the weights that are not frozen."""
        values = {v: self.const(self._weights[v]) for v in free_vars(x) if v in self._weights}
        return rewrite(x, lambda old, new: values[old] if old in values else retype(new, old)) if values else x

    # ---- questions

    def type_of(self, x: Expr) -> TensorType:
        """A tensor's type. Raises `Unsupported` for another value, `Malformed` for none."""
        if not isinstance(x, Expr):
            raise Malformed(_NO_OPERAND if x is None else _NO_TENSOR)
        if not isinstance(x.checked_type, TensorType):
            raise Unsupported(f"an operand has the type `{type_text(x.checked_type)}`" if x.checked_type else "")
        return x.checked_type

    def shape(self, x: Expr, rank: int | None = None) -> Shape:
        """A tensor's extents; `ANY` for those that are not known. Raises `Malformed` for another number of them than `rank`."""
        shape = Shape(self.type_of(x).shape)
        if rank is not None and len(shape) != rank:
            raise Malformed(f"an operand has the type `{type_text(self.type_of(x))}`, and it must have {rank} axes")
        return shape

    def static_shape(self, x: Expr, what: str = "the operand", rank: int | None = None) -> Shape:
        """A tensor's extents. Raises `Unsupported` where one is not known, `Malformed` for another number than `rank`."""
        shape = self.shape(x, rank)
        if not all(isinstance(d, int) for d in shape):
            raise Unsupported(f"{what} must have a known shape, not `{type_text(self.type_of(x))}`; --shape gives it")
        return Shape(int(d) for d in shape if isinstance(d, int))

    def extent(self, x: Expr, axis: int, what: str = "") -> int:
        """One extent. Raises `Unsupported` where it is not known."""
        dim = self.shape(x)[axis]
        if not isinstance(dim, int):
            raise Unsupported(f"{what or f'axis {axis} of the operand'} must have a known extent; --shape gives it")
        return int(dim)

    def of_rank(self, x: Expr, rank: int) -> Expr:
        """The tensor itself. Raises `Malformed` where it has another number of axes."""
        self.shape(x, rank)
        return x

    def rank(self, x: Expr) -> Rank:
        """The number of a tensor's axes."""
        return Rank(len(self.type_of(x).shape))

    def dtype(self, x: Expr) -> str:
        """A tensor's element type."""
        return self.type_of(x).dtype

    def value(self, x: Expr | None) -> np.ndarray | None:
        """The value of a constant, or of a weight that is a parameter; None for anything else."""
        if isinstance(x, Constant):
            return x.data
        return self._weights.get(x) if isinstance(x, Var) else None

    def known(self, x: Expr) -> list[int | None] | None:
        """The elements of a small integer tensor, in order, None for unknown ones; None where nothing is known."""
        dims = self.elements(x)
        return None if dims is None else [d if is_static(d) else None for d in dims]

    def elements(self, x: Expr) -> list[Dim] | None:
        """The elements of a small integer tensor, in order: numbers, named extents, `?`; None where nothing is known."""
        value = self.value(x)
        if value is not None:
            return [int(v) for v in value.reshape(-1)] if value.size <= 1024 else None
        return self._known.of(x)

    def need(self, x: Expr | None, what: str) -> np.ndarray:
        """The value of a constant. Raises `Unsupported` where the operand is computed."""
        value = self.value(x)
        if value is None:
            raise Unsupported(f"{what} must be a constant")
        return value

    def need_ints(self, x: Expr | None, what: str) -> list[int]:
        """The elements of a constant as whole numbers. Raises `Unsupported`."""
        known = self.known(x) if x is not None else None
        if known is None or None in known:
            raise Unsupported(f"{what} must be a constant")
        return [int(v) for v in known if v is not None]

    # ---- common calls

    def cast(self, x: Operand, dtype: str) -> Expr:
        """The values, or a number, as another element type; the expression itself where it has that type."""
        if not isinstance(x, Expr):
            return self.const(x, dtype)
        if self.dtype(x) == dtype:
            return x
        if isinstance(x, Constant) and np.can_cast(x.data.dtype, np.dtype(dtype), "safe"):
            return self.const(x.data.astype(np.dtype(dtype)))
        return self.op("cast", x, dtype=dtype)

    def reshape(self, x: Expr, shape: Sequence[int]) -> Expr:
        """`reshape` with Relay's special extents: -1 takes the remaining elements, 0 keeps the extent of the same axis."""
        have = self.shape(x)
        if tuple(shape) == have and all(isinstance(d, int) and d >= 1 for d in have):
            return x
        # A true extent of 0 must not be read as "keep".
        return self.op("reshape", x, newshape=tuple(shape))

    def reshape_exactly(self, x: Expr, shape: Sequence[int]) -> Expr:
        """`reshape` to these extents, of which some may be 0."""
        if tuple(shape) == self.shape(x):
            return x
        return self.op("reshape", x, newshape=tuple(shape), **({"allowzero": True} if 0 in shape else {}))

    def transpose(self, x: Expr, axes: Sequence[int]) -> Expr:
        """The axes in another order; the expression itself for the same order."""
        return x if list(axes) == list(range(len(axes))) else self.op("transpose", x, axes=tuple(axes))

    def squeeze(self, x: Expr, axes: Sequence[int]) -> Expr:
        """Without some axes of extent 1."""
        return self.op("squeeze", x, axis=tuple(axes)) if axes else x

    def unsqueeze(self, x: Expr, axes: Sequence[int]) -> Expr:
        """With axes of extent 1 at these places of the result."""
        rank = self.rank(x) + len(axes)
        for axis in sorted(a % rank for a in axes):
            x = self.op("expand_dims", x, axis=axis)
        return x

    def concat(self, parts: Sequence[Expr], axis: int) -> Expr:
        """Tensors behind each other; one tensor alone is itself."""
        return parts[0] if len(parts) == 1 else self.op("concatenate", self.tuple(parts), axis=axis)

    def slice(
        self, x: Expr, begin: Sequence[int], end: Sequence[int], axes: Sequence[int], strides: Sequence[int] | None = None
    ) -> Expr:
        """`x[begin:end:stride]` on some axes, with numpy's meaning of negative positions."""
        steps = list(strides) if strides is not None else [1] * len(axes)
        return self.op("strided_slice", x, begin=list(begin), end=list(end), strides=steps, axes=list(axes))

    def arange(self, start: Expr, stop: Expr, step: Expr, dtype: str) -> Expr:
        """Numbers from `start` to before `stop`: a vector, whose extent is known where all three are."""
        first, last, by = (self.value(x) for x in (start, stop, step))
        if first is not None and last is not None and by is not None and by.all() and ((last - first) * np.sign(by) <= 0).all():
            return self.const(self.arrays.zeros(0, np.dtype(dtype)))  # Relay's operator refuses a vector without elements
        numbers: Expr = self.op("arange", start, stop, step, start=start, stop=stop, step=step, dtype=dtype)
        return numbers

    def scalar(self, x: Expr) -> Expr:
        """A tensor of one element without its axes."""
        return x if self.rank(x) == 0 else self.op("reshape", x, newshape=())

    def shape_of(self, x: Expr, dtype: str = "int64") -> Expr:
        """The extents as a vector: a constant where they are known."""
        shape = self.shape(x)
        if all(isinstance(d, int) for d in shape):
            return self.const(np.array(shape, dtype))
        extents: Expr = self.op("shape_of", x, dtype=dtype)
        self._known.put(extents, [int(d) if is_static(d) else d for d in shape])
        return extents

    def reshape_to(self, x: Expr, shape: Expr, *, allow_zero: bool = False) -> Expr:
        """A reshape to a computed shape; static as far as its extents are known.

        `shape` is a vector of integers with ONNX's meaning: -1 takes the remaining elements, 0 keeps an extent unless `allow_zero`.
        """
        count = self.extent(shape, 0, "the rank of the result")
        if count > _MAX_RANK:
            raise Malformed(f"its result would have {count} axes, more than {_MAX_RANK}")
        known = self.known(shape) or [None] * count
        unknown = [i for i, n in enumerate(known) if n is None]
        if not unknown:
            wanted = [int(n) for n in known if n is not None]
            if allow_zero and 0 in wanted:
                return self.op("reshape", x, newshape=tuple(wanted), allowzero=True)
            return self.reshape(x, wanted)
        elements, have = self.elements(shape), self.shape(x)
        numbers = numbers_for(have, elements) if elements is not None else None
        if numbers is not None:
            return x if list(have) == elements else self.reshape(x, numbers)
        if elements is not None and all([isinstance(d, TypeVar) or (is_static(d) and d > 0) for d in elements]):
            return self.op("reshape", x, newshape=elements)
        if len(unknown) == 1 and -1 not in known and (0 not in known or not allow_zero):
            return self.reshape(x, [-1 if n is None else n for n in known])
        if not allow_zero and 0 in known:
            extents = self.shape_of(x, self.dtype(shape))
            kept = [self.slice(extents if n == 0 else shape, [i], [i + 1], [0]) for i, n in enumerate(known)]
            shape = self.concat(kept, 0)
        reshaped = self.op("dyn.reshape", x, shape, allowzero=allow_zero)
        return self.refine(reshaped, elements or known)

    def refine(self, x: Expr, known: Sequence[Dim | None]) -> Expr:
        """A tensor of unknown extents with those that are known put into its type: numbers, and names for `?`."""
        kept = [
            n if (isinstance(n, int) and n > 0 and not is_static(d)) or (isinstance(n, TypeVar) and d is ANY) else 0
            for d, n in zip(self.shape(x), known)
        ]
        return self.op("reshape", x, newshape=kept) if any(kept) else x

    # ---- folding

    def _fold(self, call: Call) -> Expr | None:
        if elements(call.checked_type) > max(_FOLDED, sum(elements(a.checked_type) for a in call.args)):
            return None
        if isinstance(call.op, Op) and call.op.name in DYNAMIC:  # Its operands' values are its extents.
            static = static_call(call)
            if static is None:
                return None
            self._typer.give(static)
            return self._folded(static)
        self.budget.take_work(work(call), "computing its constants")
        self.budget.take_bytes(_size(call.checked_type), "computing its constants")
        result = compute(call, [_value(a) for a in call.args])
        return None if result is None else self._as_constant(result, call.checked_type)

    def _as_constant(self, result: Any, ty: Type | None) -> Expr | None:
        if isinstance(ty, TupleType):
            fields = [self._as_constant(part, t) for part, t in zip(tuple(result), ty.fields)]
            return None if any(f is None for f in fields) else self.tuple([f for f in fields if f is not None])
        if not isinstance(ty, TensorType):
            return None
        array = np.asarray(result)
        if array.dtype.name != ty.dtype:
            return None
        return typed_constant(np.ascontiguousarray(array).reshape(array.shape), span=self.span)


def _value(x: Expr) -> Any:
    if isinstance(x, Tuple):
        return tuple([_value(f) for f in x.fields])
    assert isinstance(x, Constant)
    return x.data


def _size(ty: Type | None) -> int:
    """The bytes of a type whose extents are known."""
    if isinstance(ty, TupleType):
        return sum(_size(f) for f in ty.fields)
    return elements(ty) * np.dtype(ty.dtype).itemsize if isinstance(ty, TensorType) else 0


__all__ = ["Builder", "Operand", "RelayError"]
