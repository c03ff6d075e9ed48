"""Expressions of the Relay language, as a graph of plain nodes.

Identity is sharing: a node that two others refer to is computed once. A node never changes after construction, but for
`checked_type`, which the checker fills. A rewriter that knows the type of a new node gives it with `relaylang.ir.typed`.
"""

from __future__ import annotations

import copy
import operator
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any as AnyValue
from typing import ClassVar

import numpy as np

from relaylang.diagnostics.source import Span
from relaylang.ir.flat import Flat
from relaylang.ir.shown import Shown
from relaylang.ir.types import GlobalTypeVar, IncompleteType, TensorType, Type, TypeVar, dtype_name
from relaylang.services import service


def _operator(name: str, *args: AnyValue) -> Expr:
    """A call of an operator, for Python's signs."""
    call: Expr = service("operator call")(name)(*args)
    return call


def _no_expression(value: AnyValue, what: str) -> TypeError:
    """The error for a value of another class where a program needs an expression."""
    kind = "None" if value is None else f"a value of type {type(value).__name__}"
    advice = ", which const(...) makes of numbers" if isinstance(value, (int, float)) else ""
    return TypeError(f"{what} is an expression{advice}; here it is {kind}")


class Expr(Shown, Flat):
    """An expression. `span` is its place in a text, `checked_type` its type once it has been checked.

    `+ - * / < <= > >=` and `-` before an expression make calls of operators; a plain number beside them becomes a
    constant. `==` compares identity. An expression that is called makes a call.
    """

    __slots__ = ("checked_type", "span")
    __match_args__: tuple[str, ...] = ()
    __array_ufunc__ = None  # an array on the left leaves the operation to us
    #: Whether all uses share one record, as with operators. Such a record has no type and no place of its own.
    is_record: ClassVar[bool] = False
    span: Span | None
    checked_type: Type | None

    def __str__(self) -> str:
        text: str = service("shown")(self)
        return text

    def __add__(self, other: AnyValue) -> Expr:
        return _operator("add", self, other)

    def __radd__(self, other: AnyValue) -> Expr:
        return _operator("add", other, self)

    def __sub__(self, other: AnyValue) -> Expr:
        return _operator("subtract", self, other)

    def __rsub__(self, other: AnyValue) -> Expr:
        return _operator("subtract", other, self)

    def __mul__(self, other: AnyValue) -> Expr:
        return _operator("multiply", self, other)

    def __rmul__(self, other: AnyValue) -> Expr:
        return _operator("multiply", other, self)

    def __truediv__(self, other: AnyValue) -> Expr:
        return _operator("divide", self, other)

    def __rtruediv__(self, other: AnyValue) -> Expr:
        return _operator("divide", other, self)

    def __neg__(self) -> Expr:
        return _operator("negative", self)

    def __lt__(self, other: AnyValue) -> Expr:
        return _operator("less", self, other)

    def __le__(self, other: AnyValue) -> Expr:
        return _operator("less_equal", self, other)

    def __gt__(self, other: AnyValue) -> Expr:
        return _operator("greater", self, other)

    def __ge__(self, other: AnyValue) -> Expr:
        return _operator("greater_equal", self, other)

    def __call__(self, *args: AnyValue) -> Call:
        return Call(self, args)

    def same_as(self, other: object) -> bool:
        """Whether this is the same node, not one that is equal to it."""
        return self is other

    def astype(self, dtype: str) -> Expr:
        """The values as another element type."""
        return _operator("cast", self, dtype)


@cache
def _name(dtype: np.dtype) -> str:
    """numpy makes the name anew at each question."""
    return dtype.name


class Constant(Expr):
    """A tensor that the program carries: `data` is a numpy array of any shape (ml_dtypes for bfloat16 and the like).

    `dtype` names the element type as Relay does; it is `data.dtype.name` unless given (custom types).
    """

    __slots__ = ("data", "dtype")
    __match_args__ = ("data",)

    def __init__(self, data: np.ndarray, span: Span | None = None, dtype: str | None = None) -> None:
        self.data = data if isinstance(data, np.ndarray) else np.asarray(data)
        self.dtype = dtype or _name(self.data.dtype)
        self.span = span
        self.checked_type = None


class Var(Expr):
    """A local variable, identified by the object. `name_hint` is its name behind the `%`.

    `virtual_device` is the text's attribute for the device of its value, or None.
    """

    __slots__ = ("name_hint", "type_annotation", "virtual_device")
    __match_args__ = ("name_hint", "type_annotation")

    def __init__(
        self,
        name_hint: str,
        type_annotation: Type | None = None,
        span: Span | None = None,
        virtual_device: AnyValue = None,
    ) -> None:
        self.name_hint = name_hint
        self.type_annotation = type_annotation
        self.virtual_device = virtual_device
        self.span = span
        self.checked_type = None

    def __repr__(self) -> str:
        return f"Var(%{self.name_hint})"


class GlobalVar(Expr):
    """The name of a module's function, written behind the `@`."""

    __slots__ = ("name_hint",)
    __match_args__ = ("name_hint",)

    def __init__(self, name_hint: str, span: Span | None = None) -> None:
        self.name_hint = name_hint
        self.span = span
        self.checked_type = None

    def __repr__(self) -> str:
        return f"GlobalVar(@{self.name_hint})"


class Tuple(Expr):
    """`(a, b)`"""

    __slots__ = ("fields",)
    __match_args__ = ("fields",)

    def __init__(self, fields: Sequence[Expr], span: Span | None = None) -> None:
        self.fields = tuple(fields)
        for item in self.fields:
            if not isinstance(item, Expr):
                raise _no_expression(item, "a field of a tuple")
        self.span = span
        self.checked_type = None

    def __len__(self) -> int:
        return len(self.fields)

    def __getitem__(self, index: int) -> Expr:
        """Field `index` itself; no projection is made. Raises `IndexError`."""
        return self.fields[index]

    def __bool__(self) -> bool:
        return True  # a tuple of no fields is an expression as any other


def field_index(index: AnyValue) -> int:
    """The number of a tuple's field: an int, or numpy's. Raises `TypeError`."""
    if not hasattr(index, "__index__") or isinstance(index, (bool, np.bool_)):
        raise TypeError(f"the number of a tuple's field is an int, not a value of type {type(index).__name__}")
    return operator.index(index)


class TupleGetItem(Expr):
    """`t.1`: field `index` of a tuple, counted from 0."""

    __slots__ = ("index", "tuple_value")
    __match_args__ = ("tuple_value", "index")

    def __init__(self, tuple_value: Expr, index: int, span: Span | None = None) -> None:
        if not isinstance(tuple_value, Expr):
            raise _no_expression(tuple_value, "the tuple that a field is taken of")
        self.tuple_value = tuple_value
        self.index = field_index(index)
        self.span = span
        self.checked_type = None


class Call(Expr):
    """A call of an operator, a constructor or any function value.

    `attrs` is an instance of the operator's attribute class; a call of something else may carry `RawAttrs`.
    """

    __slots__ = ("args", "attrs", "op", "type_args")
    __match_args__ = ("op", "args", "attrs", "type_args")

    def __init__(
        self,
        op: Expr,
        args: Sequence[Expr],
        attrs: AnyValue = None,
        type_args: Sequence[Type] = (),
        span: Span | None = None,
    ) -> None:
        if not isinstance(op, Expr):
            raise _no_expression(op, "a call's callee")
        if isinstance(args, Expr):
            raise TypeError("a call's arguments are a list of expressions: [x]")
        self.op = op
        self.args = args = tuple(args)
        for argument in args:
            if not isinstance(argument, Expr):
                raise _no_expression(argument, "an argument of a call")
        self.attrs = attrs
        self.type_args = type_args or ()
        self.span = span
        self.checked_type = None


class RawAttrs(Flat):
    """Attributes of a call whose callee has no schema: the text's type key, and the values by name."""

    __slots__ = ("type_key", "values")

    def __init__(self, type_key: str, values: Mapping[str, AnyValue]) -> None:
        self.type_key = type_key
        self.values = dict(values)


class Let(Expr):
    """`let %x = value; body`. The variable is in scope in its own value, which matters for functions."""

    __slots__ = ("body", "value", "variable")
    __match_args__ = ("variable", "value", "body")

    def __init__(self, variable: Var, value: Expr, body: Expr, span: Span | None = None) -> None:
        if not isinstance(value, Expr) or not isinstance(body, Expr):
            wrong, what = (body, "the body") if isinstance(value, Expr) else (value, "the value")
            raise _no_expression(wrong, f"{what} of a let")
        self.variable = variable
        self.value = value
        self.body = body
        self.span = span
        self.checked_type = None

    @property
    def var(self) -> Var:
        return self.variable


class If(Expr):
    """`if (cond) { true_branch } else { false_branch }`; the condition is a bool scalar."""

    __slots__ = ("cond", "false_branch", "true_branch")
    __match_args__ = ("cond", "true_branch", "false_branch")

    def __init__(self, cond: Expr, true_branch: Expr, false_branch: Expr, span: Span | None = None) -> None:
        for part, what in ((cond, "the condition"), (true_branch, "the true branch"), (false_branch, "the false branch")):
            if not isinstance(part, Expr):
                raise _no_expression(part, f"{what} of an if")
        self.cond = cond
        self.true_branch = true_branch
        self.false_branch = false_branch
        self.span = span
        self.checked_type = None


class Function(Expr):
    """`fn [A](%x: T, key=value) -> R { body }`. `attrs` keeps the order in which its keys were given.

    An external function of another module (`def @f = meta[...]`) has no body.
    """

    __slots__ = ("attrs", "body", "params", "ret_type", "type_params")
    __match_args__ = ("params", "body", "ret_type", "type_params", "attrs")

    def __init__(
        self,
        params: Sequence[Var],
        body: Expr,
        ret_type: Type | None = None,
        type_params: Sequence[TypeVar] = (),
        attrs: Mapping[str, AnyValue] | None = None,
        span: Span | None = None,
    ) -> None:
        if body is not None and not isinstance(body, Expr):
            raise _no_expression(body, "the body of a function")
        if isinstance(params, Expr):
            raise TypeError("a function's parameters are a list of Vars: [x]")
        self.params = tuple(params)
        for param in self.params:
            if not isinstance(param, Var):
                raise TypeError(f"a function's parameter is a Var, not a value of type {type(param).__name__}")
        self.body = body
        self.ret_type = ret_type
        self.type_params = tuple(type_params or ())
        self.attrs = dict(attrs) if attrs else {}
        self.span = span
        self.checked_type = None

    def with_attr(self, attr_key_or_dict: str | Mapping[str, AnyValue], attr_value: AnyValue = None) -> Function:
        """A copy with one attribute set, or those of a mapping."""
        if isinstance(attr_key_or_dict, str):
            return self.with_attrs({attr_key_or_dict: attr_value})
        return self.with_attrs(attr_key_or_dict)

    def with_attrs(self, attr_map: Mapping[str, AnyValue]) -> Function:
        """A copy with attributes set."""
        return self._with({**self.attrs, **attr_map})

    def without_attr(self, attr_key: str) -> Function:
        """A copy without an attribute."""
        return self._with({key: value for key, value in self.attrs.items() if key != attr_key})

    def _with(self, attrs: Mapping[str, AnyValue]) -> Function:
        new = copy.copy(self)
        new.attrs = dict(attrs)
        return new


class RefCreate(Expr):
    """`ref(value)`"""

    __slots__ = ("value",)
    __match_args__ = ("value",)

    def __init__(self, value: Expr, span: Span | None = None) -> None:
        self.value = value
        self.span = span
        self.checked_type = None


class RefRead(Expr):
    """`ref_read(ref)`"""

    __slots__ = ("ref",)
    __match_args__ = ("ref",)

    def __init__(self, ref: Expr, span: Span | None = None) -> None:
        self.ref = ref
        self.span = span
        self.checked_type = None


class RefWrite(Expr):
    """`ref_write(ref, value)`; its value is the empty tuple."""

    __slots__ = ("ref", "value")
    __match_args__ = ("ref", "value")

    def __init__(self, ref: Expr, value: Expr, span: Span | None = None) -> None:
        self.ref = ref
        self.value = value
        self.span = span
        self.checked_type = None


class Match(Expr):
    """`match (data) { pattern => body, ... }`; `match?` where the clauses need not cover every value."""

    __slots__ = ("clauses", "complete", "data")
    __match_args__ = ("data", "clauses", "complete")

    def __init__(self, data: Expr, clauses: Sequence[Clause], complete: bool = True, span: Span | None = None) -> None:
        self.data = data
        self.clauses = tuple(clauses)
        self.complete = complete
        self.span = span
        self.checked_type = None


class MetaRef(Expr):
    """`meta[type_key][index]` in a text whose metadata section is missing.

    `type_annotation` is the type that a comment behind it gave, if any. Such a node can be checked and printed,
    and is evaluated once somebody supplies its value.
    """

    __slots__ = ("index", "type_annotation", "type_key")
    __match_args__ = ("type_key", "index", "type_annotation")

    def __init__(self, type_key: str, index: int, type_annotation: Type | None = None, span: Span | None = None) -> None:
        self.type_key = type_key
        self.index = index
        self.type_annotation = type_annotation
        self.span = span
        self.checked_type = None

    @property
    def name_hint(self) -> str:
        """The name under which a value may be supplied."""
        return f"meta[{self.type_key}][{self.index}]"


class Constructor(Expr):
    """A constructor of a type definition. `tag` is its number in the module, which `TypeData` sets.

    The highest byte of the tag comes from the type's name, the other bytes are the place among the siblings.
    """

    __slots__ = ("belong_to", "inputs", "name_hint", "tag")
    __match_args__ = ("name_hint", "inputs", "belong_to", "tag")

    def __init__(
        self,
        name_hint: str,
        inputs: Sequence[Type],
        belong_to: GlobalTypeVar,
        tag: int = -1,
        span: Span | None = None,
    ) -> None:
        self.name_hint = name_hint
        self.inputs: tuple[Type, ...] = tuple(inputs)
        self.belong_to = belong_to
        self.tag = tag
        self.span = span
        self.checked_type = None

    def __repr__(self) -> str:
        return f"Constructor({self.name_hint})"


_MASK = (1 << 64) - 1
_MUL = 0xC6A4A7935BD1E995


@cache
def tag_base(name: str) -> int:
    """The tag of a type's first constructor: the low byte of the name's hash, as an int32's highest byte.

    The hash is that of a C++ string in GNU's library (MurmurHash64A), so the tags are TVM's.
    """
    data = name.encode("utf-8", "surrogatepass")
    value = 0xC70F6907 ^ (len(data) * _MUL & _MASK)
    for begin in range(0, len(data), 8):
        word = int.from_bytes(data[begin : begin + 8], "little")
        if len(data) - begin >= 8:
            word = word * _MUL & _MASK
            word = (word ^ word >> 47) * _MUL & _MASK
        value = (value ^ word) * _MUL & _MASK
    value = (value ^ value >> 47) * _MUL & _MASK
    byte = (value ^ value >> 47) & 0xFF
    return (byte << 24) - (1 << 32 if byte >= 128 else 0)


class TypeData(Flat):
    """`type header[type_vars] { constructors }`; an `extern type` has none."""

    __slots__ = ("constructors", "extern", "header", "span", "type_vars")
    __match_args__ = ("header", "type_vars", "constructors")

    def __init__(
        self,
        header: GlobalTypeVar,
        type_vars: Sequence[TypeVar],
        constructors: Sequence[Constructor],
        extern: bool = False,
        span: Span | None = None,
    ) -> None:
        self.header = header
        self.type_vars = tuple(type_vars)
        self.constructors = tuple(constructors)
        for number, constructor in enumerate(self.constructors):
            constructor.tag = tag_base(header.name_hint) + number
        self.extern = extern
        self.span = span


class Pattern(Flat):
    """The left side of a match clause."""

    __slots__ = ("span",)
    __match_args__: tuple[str, ...] = ()
    span: Span | None


class PatternWildcard(Pattern):
    """`_`"""

    __slots__ = ()

    def __init__(self, span: Span | None = None) -> None:
        self.span = span


class PatternVar(Pattern):
    """`%x`, which matches any value and binds it."""

    __slots__ = ("var",)
    __match_args__ = ("var",)

    def __init__(self, var: Var, span: Span | None = None) -> None:
        self.var = var
        self.span = span


class PatternConstructor(Pattern):
    """`Cons(p, q)`"""

    __slots__ = ("constructor", "patterns")
    __match_args__ = ("constructor", "patterns")

    def __init__(self, constructor: Constructor, patterns: Sequence[Pattern] = (), span: Span | None = None) -> None:
        self.constructor = constructor
        self.patterns: tuple[Pattern, ...] = tuple(patterns)
        self.span = span


class PatternTuple(Pattern):
    """`(p, q)`"""

    __slots__ = ("patterns",)
    __match_args__ = ("patterns",)

    def __init__(self, patterns: Sequence[Pattern], span: Span | None = None) -> None:
        self.patterns: tuple[Pattern, ...] = tuple(patterns)
        self.span = span


class Clause(Flat):
    """One arm of a match: the pattern `lhs` and the expression `rhs`."""

    __slots__ = ("lhs", "rhs", "span")
    __match_args__ = ("lhs", "rhs")

    def __init__(self, lhs: Pattern, rhs: Expr, span: Span | None = None) -> None:
        self.lhs = lhs
        self.rhs = rhs
        self.span = span


def pattern_vars(pattern: Pattern) -> list[Var]:
    """The variables that a pattern binds, from left to right."""
    variables: list[Var] = []
    stack = [pattern]
    while stack:
        match stack.pop():
            case PatternVar(var):
                variables.append(var)
            case PatternConstructor(_, patterns) | PatternTuple(patterns):
                stack.extend(reversed(patterns))
    return variables


def const(value: AnyValue, dtype: str | None = None, span: Span | None = None) -> Constant:
    """A constant from a Python number, a list or an array.

    Without a `dtype`, 64-bit numbers of Python and numpy become float32 or int32, as in tvm.relay. Integers beyond 32 bits
    stay int64. `Constant(array)` keeps the array as it is.
    """
    array = np.asarray(value)
    if dtype is not None:
        array = array.astype(np.dtype(dtype_name(dtype)))
    elif array.dtype.name == "float64":
        array = array.astype("float32")
    elif array.dtype.name == "int64" and (not array.size or -(1 << 31) <= array.min() <= array.max() < 1 << 31):
        array = array.astype("int32")
    return Constant(array, span)


def var(
    name_hint: str,
    type_annotation: AnyValue = None,
    shape: Sequence[AnyValue] | None = None,
    dtype: str = "float32",
    span: Span | None = None,
) -> Var:
    """Make a local variable.

    `type_annotation` is a type, or the dtype of a scalar; `shape` and `dtype` give a tensor type instead.
    Raises ValueError for an annotation together with a shape.
    """
    match type_annotation, shape:
        case str(scalar), None:
            return Var(name_hint, TensorType((), scalar), span)
        case annotation, None:
            return Var(name_hint, annotation, span)
        case None, dims:
            return Var(name_hint, TensorType(dims, dtype), span)
    raise ValueError("give either type_annotation or shape")


def parameter_names(params: Sequence[Var]) -> list[str]:
    """The names by which arguments are given: x, x_2, x_3 where several parameters are %x."""
    taken = {p.name_hint for p in params}
    seen: dict[str, int] = {}
    names = []
    for param in params:
        name = own = param.name_hint
        seen[own] = seen.get(own, 0) + 1
        if seen[own] > 1:
            while f"{own}_{seen[own]}" in taken:
                seen[own] += 1
            name = f"{own}_{seen[own]}"
            taken.add(name)
        names.append(name)
    return names


def is_incomplete(ty: Type | None) -> bool:
    """Whether a type is missing or left open at its top."""
    return ty is None or isinstance(ty, IncompleteType)
