"""Types of the Relay language.

Types are values: two types that say the same thing compare equal. Variables (`TypeVar`, `GlobalTypeVar`,
`IncompleteType`) are what they are by identity. `ANY` is the unknown dimension, written `?`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any as AnyValue
from typing import Protocol, TypeGuard
from weakref import WeakValueDictionary

from relaylang.diagnostics import RelayError, error
from relaylang.diagnostics.source import Span
from relaylang.ir.flat import Flat


class _Any:
    """The dimension `?`: some extent that is known only when the program runs."""

    __slots__ = ()
    _only: _Any | None = None

    def __new__(cls) -> _Any:
        if cls._only is None:
            cls._only = super().__new__(cls)
        return cls._only

    def __repr__(self) -> str:
        return "?"

    def __reduce__(self) -> tuple[type[_Any], tuple[()]]:
        return (_Any, ())


Any = _Any
ANY = _Any()


class Extent(int):
    """An extent whose number is not an int32: `10i64`. It equals its value, and arithmetic keeps its width.

    Types that differ only in an extent's element type are different types. The checker treats their extents as equal.
    """

    dtype: str

    def __new__(cls, value: int, dtype: str = "int64") -> Extent:
        size = super().__new__(cls, value)
        size.dtype = dtype
        return size

    def __reduce__(self) -> tuple[type[Extent], tuple[int, str]]:
        return (Extent, (int(self), self.dtype))

    def _wide(self, value: int, other: object) -> Extent:
        if value is NotImplemented:
            return value
        return Extent(value, "int64" if getattr(other, "dtype", None) == "int64" else self.dtype)

    def __add__(self, other: int) -> Extent:
        return self._wide(int.__add__(self, other), other)

    def __sub__(self, other: int) -> Extent:
        return self._wide(int.__sub__(self, other), other)

    def __rsub__(self, other: int) -> Extent:
        return self._wide(int.__rsub__(self, other), other)

    def __mul__(self, other: int) -> Extent:  # type: ignore[override]
        return self._wide(int.__mul__(self, other), other)

    def __floordiv__(self, other: int) -> Extent:
        return self._wide(int.__floordiv__(self, other), other)

    __radd__, __rmul__ = __add__, __mul__


def extent(value: int, dtype: str = "int32") -> int:
    """An extent of an integer type. An int32 is a plain number, and so is any value outside int32's range."""
    if type(value) is not int and isinstance(value, int) and not isinstance(value, Extent):
        return value  # an extent with a meaning of its own
    if dtype == "int32" or not -(1 << 31) <= value < 1 << 31:
        return int(value)
    return Extent(value, dtype)


def extent_dtype(dim: object) -> str:
    """The element type of an extent."""
    return dim.dtype if isinstance(dim, (Extent, SymbolicDim)) else "int32"


#: Other names of element types: short ones, and those that TVM 0.16 prints.
_OTHER_DTYPES = {
    "int": "int32",
    "uint": "uint32",
    "float": "float32",
    "uint1": "bool",
    "e4m3_float8": "float8_e4m3fn",
    "e5m2_float8": "float8_e5m2",
}


def dtype_name(dtype: object) -> str:
    """Relay's name of an element type: of a name, of numpy's `np.float32`, of `np.dtype("float32")`, of a tensor type.

    Raises `TypeError` for a value without a name.
    """
    if not isinstance(dtype, str):
        named = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or getattr(dtype, "dtype", None)
        if not isinstance(named, str):
            raise TypeError(f'an element type is a name such as "float32", not {dtype!r}')
        dtype = named
    return _OTHER_DTYPES.get(dtype, dtype)


#: The kinds of types with TVM's numbers.
KINDS = {"Type": 0, "ShapeVar": 1, "BaseType": 2, "Constraint": 4, "AdtHandle": 5, "TypeData": 6}


class Kind(Protocol):
    """A kind of types as an object with a name: `TypeKind.ShapeVar`."""

    @property
    def name(self) -> str: ...


def kind_name(kind: str | int | Kind) -> str:
    """The name of a kind, which may be given by TVM's number. Raises `ValueError` for another number."""
    if isinstance(kind, str):
        return kind
    if not isinstance(kind, int) or hasattr(kind, "name"):
        return kind.name
    for name, number in KINDS.items():
        if number == kind:
            return name
    raise ValueError(f"{kind} is the number of no kind of types")


def _plain(dim: Dim) -> Dim:
    """The extent of a numpy integer: numpy's int64 becomes `3i64`, as in TVM. Raises `TypeError` for other numbers."""
    if isinstance(dim, int) or not hasattr(dim, "__index__"):
        if not isinstance(dim, int) and hasattr(dim, "is_integer"):
            raise TypeError(f"an extent of a shape is a whole number, `?` or a name, not the number {dim}")
        return dim
    return extent(operator.index(dim), getattr(getattr(dim, "dtype", None), "name", "int32"))


class NoShapeError(RelayError, TypeError):
    """A value that is no shape (R0730): Python's error, and TVM's."""

    def __str__(self) -> str:
        return self.diagnostics[0].title


def _extents(shape: object) -> tuple[Dim, ...]:
    """The extents in a list of them. Raises `NoShapeError` for a text, a map, a tensor and other values that are no list."""
    rank = getattr(shape, "ndim", 1)
    if rank == 1 and not isinstance(shape, (str, Mapping)):
        try:
            return tuple(shape)  # type: ignore[arg-type]
        except TypeError:
            pass
    what = f"a tensor of {rank} axes" if rank != 1 else f"a {type(shape).__name__}"
    raise NoShapeError(error("R0730", f"a shape is a list of extents such as (1, 3), not {what}"))


class Type(Flat):
    """The type of an expression."""

    __slots__ = ("span",)
    __match_args__: tuple[str, ...] = ()
    span: Span | None

    def _key(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in self.__match_args__)

    def same_as(self, other: object) -> bool:
        """Whether this is the same type, not one that is equal to it."""
        return self is other

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Type):
            return NotImplemented
        return types_equal(self, other)

    def __hash__(self) -> int:
        return type_hash(self)

    def __repr__(self) -> str:
        return type_text(self)


class TensorType(Type):
    """A tensor: `shape` is a tuple of extents (an int, `ANY`, or a `TypeVar` of kind "ShapeVar"), `dtype` a name.

    An extent that is not an int32 is an `Extent`. A named extent that no function binds is a `SymbolicDim`.

    `span` places it in a text. Scalars have the shape ().
    """

    __slots__ = ("dtype", "shape")
    __match_args__ = ("shape", "dtype")

    def __init__(self, shape: Sequence[Dim] = (), dtype: str = "float32", span: Span | None = None) -> None:
        self.shape: tuple[Dim, ...] = shape if type(shape) is tuple else _extents(shape)
        for dim in self.shape:
            if type(dim) is not int and not isinstance(dim, int) and (hasattr(dim, "__index__") or hasattr(dim, "is_integer")):
                self.shape = tuple([_plain(d) for d in self.shape])
                break
        self.dtype = dtype_name(dtype)
        self.span = span

    @property
    def concrete_shape(self) -> tuple[int, ...]:
        """The shape, where every extent is a number. Raises `TypeError` where one is not."""
        for dim in self.shape:
            if not isinstance(dim, int):
                raise TypeError(f"the extent {dim!r} of {self!r} is no number")
        return self.shape  # type: ignore[return-value]


class TupleType(Type):
    """A tuple of `fields`."""

    __slots__ = ("fields",)
    __match_args__ = ("fields",)

    def __init__(self, fields: Sequence[Type], span: Span | None = None) -> None:
        self.fields: tuple[Type, ...] = tuple(fields)
        self.span = span


class FuncType(Type):
    """A function from `arg_types` to `ret_type`, polymorphic in `type_params`."""

    __slots__ = ("arg_types", "ret_type", "type_constraints", "type_params")
    __match_args__ = ("arg_types", "ret_type", "type_params")

    def __init__(
        self,
        arg_types: Sequence[Type],
        ret_type: Type,
        type_params: Sequence[TypeVar] = (),
        type_constraints: Sequence[object] = (),
        span: Span | None = None,
    ) -> None:
        self.arg_types: tuple[Type, ...] = tuple(arg_types)
        self.ret_type = ret_type
        self.type_params: tuple[TypeVar, ...] = tuple(type_params)
        self.type_constraints = tuple(type_constraints)
        self.span = span


class RefType(Type):
    """A reference to a mutable cell that holds a `value`."""

    __slots__ = ("value",)
    __match_args__ = ("value",)

    def __init__(self, value: Type, span: Span | None = None) -> None:
        self.value = value
        self.span = span


RelayRefType = RefType


class TypeVar(Type):
    """A named type (kind "Type") or extent (kind "ShapeVar"), bound by a function or a type definition."""

    __slots__ = ("kind", "name_hint")
    __match_args__ = ("name_hint", "kind")

    def __init__(self, name_hint: str, kind: str | int | Kind = "Type", span: Span | None = None) -> None:
        self.name_hint = name_hint
        self.kind = kind_name(kind)
        self.span = span


class SymbolicDim(TypeVar):
    """An extent with a name for a whole program, which nothing binds: TVM's `tir.Var` and `tir.SizeVar`."""

    __slots__ = ("dtype", "type_key")

    def __init__(self, name_hint: str, dtype: str = "int32", type_key: str = "tir.Var", span: Span | None = None) -> None:
        super().__init__(name_hint, "ShapeVar", span)
        self.dtype = dtype
        self.type_key = type_key


#: How operators on extents are written between their operands, and how tightly they bind. A quotient is rounded down.
SIGNS = {"tir.Add": ("+", 1), "tir.Sub": ("-", 1), "tir.Mul": ("*", 2), "tir.FloorDiv": ("/", 2)}


class ComputedDim(SymbolicDim):
    """An extent that is computed from others: `n + 1`, TVM's `tir.Add`. Made by `computed_dim`, once for equal operands.

    Its operands are numbers, names that hold for a whole program, and names that a function binds. `terms` are its sum of
    products, once `relaylang.ir.extents` has found it.
    """

    __slots__ = ("__weakref__", "depth", "operands", "size", "terms")

    def __init__(self, type_key: str, operands: Sequence[Dim], dtype: str) -> None:
        shown = computed_text(type_key, operands, dim_text)
        super().__init__(shown if len(shown) < 60 else "...", dtype, type_key)
        self.operands = tuple(operands)
        self.terms: Mapping[tuple[TypeVar, ...], int] | None = None
        #: How many computations stand inside one another.
        self.depth: int = 1 + max([o.depth for o in operands if isinstance(o, ComputedDim)], default=0)
        #: How many computations its text has.
        self.size: int = 1 + sum([o.size for o in operands if isinstance(o, ComputedDim)])


def computed_text(type_key: str, operands: Sequence[Dim], text: Callable[[Dim], str]) -> str:
    """A computation of extents as text: `2 * n + 1`, `(n + 1) / 2`, `min(n, 4)`. `text` gives the operands' texts."""
    sign, binds = SIGNS.get(type_key, ("", 0))
    if not sign:
        return f"{type_key.removeprefix('tir.').lower()}({', '.join(map(text, operands))})"
    if type_key == "tir.Mul" and isinstance(operands[1], int):
        operands = operands[::-1]
    texts = []
    for place, operand in enumerate(operands):
        inner = SIGNS.get(operand.type_key, ("", 3))[1] if isinstance(operand, ComputedDim) else 3
        alone = text(operand)
        same = sign in "+*" and isinstance(operand, ComputedDim) and operand.type_key == type_key
        texts.append(f"({alone})" if inner < binds + (place > 0 and not same) else alone)
    return f" {sign} ".join(texts)


_COMPUTED: WeakValueDictionary[tuple[AnyValue, ...], ComputedDim] = WeakValueDictionary()


def computed_dim(type_key: str, operands: Sequence[Dim], dtype: str = "int32") -> ComputedDim:
    """The extent that TVM's operator of this type key makes of others; the same object for the same operands."""
    parts = [(extent_dtype(o), int(o)) if isinstance(o, int) else id(o) for o in operands]
    key = type_key, dtype, *parts
    known = _COMPUTED.get(key)
    if known is None:
        known = _COMPUTED[key] = ComputedDim(type_key, operands, dtype)
    return known


class GlobalTypeVar(Type):
    """The name of a type definition."""

    __slots__ = ("kind", "name_hint")
    __match_args__ = ("name_hint", "kind")

    def __init__(self, name_hint: str, kind: str | int | Kind = "AdtHandle", span: Span | None = None) -> None:
        self.name_hint = name_hint
        self.kind = kind_name(kind)
        self.span = span

    def __call__(self, *args: Type) -> TypeCall:
        """The definition applied to types: `List(scalar_type("int32"))`."""
        return TypeCall(self, args)


class TypeCall(Type):
    """A type definition applied to type arguments: `List[A]`."""

    __slots__ = ("args", "func")
    __match_args__ = ("func", "args")

    def __init__(self, func: Type, args: Sequence[Type] = (), span: Span | None = None) -> None:
        self.func = func
        self.args: tuple[Type, ...] = tuple(args)
        self.span = span


class IncompleteType(Type):
    """A type that the text leaves out and the checker finds; printed as `_`."""

    __slots__ = ("kind",)
    __match_args__ = ("kind",)

    def __init__(self, kind: str | int | Kind = "Type", span: Span | None = None) -> None:
        self.kind = kind_name(kind)
        self.span = span


class ErrorType(IncompleteType):
    """The type of what a reported error leaves unknown: it agrees with every type."""

    __slots__ = ()


#: The only one.
POISON = ErrorType()

Dim = int | _Any | TypeVar


def is_static(dim: Dim) -> TypeGuard[int]:
    """Whether an extent is a number: neither `?` nor a name nor computed of names."""
    return isinstance(dim, int)


_BY_IDENTITY = (TypeVar, GlobalTypeVar, IncompleteType)


def type_children(ty: Type) -> tuple[Type, ...]:
    """The types that stand directly inside a type (type parameters are binders, not children)."""
    match ty:
        case TupleType(fields):
            return fields
        case FuncType(arg_types, ret_type):
            return (*arg_types, ret_type)
        case RefType(value):
            return (value,)
        case TypeCall(func, args):
            return (func, *args)
    return ()


def _computation(dim: Dim, bound: Mapping[int, Type], done: dict[int, AnyValue]) -> AnyValue:
    """What a computed extent is of its names: equal for equal computations, whatever the order of factors and terms."""
    if not isinstance(dim, ComputedDim):
        return id(bound.get(id(dim), dim)) if isinstance(dim, TypeVar) else (extent_dtype(dim), dim)
    if id(dim) not in done:
        if dim.terms is None or (dim,) in dim.terms:
            said: AnyValue = [dim.type_key, *(_computation(o, bound, done) for o in dim.operands)]
        else:
            said = [(sorted([hash(_computation(f, bound, done)) for f in factors]), c) for factors, c in dim.terms.items()]
            said.sort()
        done[id(dim)] = repr((dim.dtype, said))
    return done[id(dim)]


def _extents_equal(a: Dim, b: Dim, bound: Mapping[int, Type]) -> bool:
    if bound and isinstance(a, ComputedDim) and isinstance(b, ComputedDim):
        return a.dtype == b.dtype and _computation(a, bound, {}) == _computation(b, {}, {})
    if isinstance(a, TypeVar):
        return bound.get(id(a), a) is b
    return a == b and not isinstance(b, TypeVar) and (Extent not in (type(a), type(b)) or extent_dtype(a) == extent_dtype(b))


def types_equal(left: Type, right: Type) -> bool:
    """Whether two types are equal up to the names of their bound type parameters. No recursion on depth."""
    stack = [(left, right)]
    bound: dict[int, Type] = {}
    seen: set[tuple[int, int]] = set()
    while stack:
        a, b = stack.pop()
        if a is b and id(a) not in bound:
            continue
        if type(a) is not type(b):
            return False
        if isinstance(a, TensorType):
            assert isinstance(b, TensorType)
            if a.dtype != b.dtype or len(a.shape) != len(b.shape):
                return False
            if not all([_extents_equal(m, n, bound) for m, n in zip(a.shape, b.shape)]):
                return False
            continue
        if isinstance(a, _BY_IDENTITY):
            if bound.get(id(a), a) is not b:
                return False
            continue
        if (id(a), id(b)) in seen:
            continue
        seen.add((id(a), id(b)))
        if isinstance(a, FuncType):
            assert isinstance(b, FuncType)
            if len(a.type_params) != len(b.type_params):
                return False
            for p, q in zip(a.type_params, b.type_params):
                if p.kind != q.kind:
                    return False
                bound[id(p)] = q
        mine, theirs = type_children(a), type_children(b)
        if len(mine) != len(theirs):
            return False
        stack.extend(zip(mine, theirs))
    return True


_HASHED_PARTS = 200


def type_hash(ty: Type) -> int:
    """A hash that agrees with `types_equal`: of the first parts, whether or not they are shared."""
    if isinstance(ty, TensorType):
        return hash((ty.dtype, tuple("v" if isinstance(d, TypeVar) else d for d in ty.shape)))
    if isinstance(ty, _BY_IDENTITY):
        return id(ty) >> 4
    bound: set[int] = set()
    parts: list[object] = []
    stack: list[Type] = [ty]
    while stack and len(parts) < _HASHED_PARTS:
        t = stack.pop()
        parts.append(type(t).__name__)
        if isinstance(t, TensorType):
            parts.append((t.dtype, tuple("v" if isinstance(d, TypeVar) else d for d in t.shape)))
        elif isinstance(t, _BY_IDENTITY):
            parts.append("b" if id(t) in bound else id(t))
        else:
            if isinstance(t, FuncType):
                bound.update(id(p) for p in t.type_params)
            stack.extend(type_children(t))
    return hash(tuple(parts))


def dim_text(dim: Dim) -> str:
    """An extent as it stands in Relay text: `3`, `10i64`, `?`, `n`."""
    if type(dim) is Extent:
        return f"{int(dim)}{dim.dtype.replace('uint', 'u').replace('int', 'i')}"
    return dim.name_hint if isinstance(dim, TypeVar) else str(dim)


_MOST_PARTS = 20_000


#: How many parts a type has at most that is written beside a node: more than anybody reads.
READABLE = 250


def type_parts(ty: Type, most: int = READABLE) -> int:
    """How many parts the type's text has, counted to the first one beyond `most`."""
    count = 0
    stack = [ty]
    while stack and count <= most:
        count += 1
        stack.extend(type_children(stack.pop()))
    return count


def written(ty: Type | None) -> Type | None:
    """A type as an annotation. A type of too many parts is left out, for the checker to find.

    A type with shared parts can be larger than the program.
    """
    return ty if ty is not None and type_parts(ty) <= READABLE else None


def type_text(ty: Type, most: int = _MOST_PARTS) -> str:
    """The type as Relay text, for people. A text of more than `most` parts is cut, and ends with `…`.

    So a type whose parts are shared again and again has a short text, too. No recursion on depth.
    """
    out: list[str] = []
    stack: list[Type | str] = [ty]
    while stack:
        if len(out) > most:
            return "".join(out) + "…"
        t = stack.pop()
        if isinstance(t, str):
            out.append(t)
        elif isinstance(t, TensorType):
            if t.shape:
                out.append(f"Tensor[({', '.join(map(dim_text, t.shape))}), {t.dtype}]")
            else:
                out.append(t.dtype)
        elif isinstance(t, TupleType):
            parts: list[Type | str] = ["("]
            for i, item in enumerate(t.fields):
                parts += [", ", item] if i else [item]
            parts.append(",)" if len(t.fields) == 1 else ")")
            stack.extend(reversed(parts))
        elif isinstance(t, FuncType):
            parts = ["fn "]
            if t.type_params:
                parts.append(f"[{', '.join(p.name_hint for p in t.type_params)}]")
            parts.append("(")
            for i, item in enumerate(t.arg_types):
                parts += [", ", item] if i else [item]
            parts += [") -> ", t.ret_type]
            stack.extend(reversed(parts))
        elif isinstance(t, RefType):
            stack.extend([")", t.value, "ref("])
        elif isinstance(t, TypeCall):
            parts = [t.func, "["]
            for i, item in enumerate(t.args):
                parts += [", ", item] if i else [item]
            parts.append("]")
            stack.extend(reversed(parts))
        elif isinstance(t, (TypeVar, GlobalTypeVar)):
            out.append(t.name_hint)
        else:
            out.append("_")
    return "".join(out)


def scalar_type(dtype: str) -> TensorType:
    """The type of a scalar."""
    return TensorType((), dtype)
