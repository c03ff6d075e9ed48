"""Records of operators: name, arguments, attributes, type relation, fusion kind, traits, summary and example.

    @attrs_class("relay.attrs.SoftmaxAttrs")
    class SoftmaxAttrs:
        axis: int = -1

    softmax = Op("nn.softmax", ("data",), SoftmaxAttrs, identity, OPAQUE, level=1)

The attribute class's fields, in order, are the attributes of a call: the reader accepts them, and editors complete
them. The printer writes those that differ from their default, and builders take them all. A field's annotation says how
a value of the text is taken:

| annotation | value in Python | in the text |
|---|---|---|
| `int` `float` `bool` `str` | the same | a number, `True`, a string |
| `Ints` | tuple of int | `[1, 1]`, or one number for a list of one |
| `Bounds` | tuple of int and None | `[1, None]` |
| `NestedInts` | tuple of tuples | `[[0, 0], [1, 1]]` |
| `Floats` | tuple of float | `[1f, 2f]` |
| `X | None` | None or X | also `None` |
| `AnyAttr` | anything but a computed expression, which becomes None | anything |
| `Integer` `FloatImm` `Bool` `String` | as `int` `float` `bool` `str` | the same |

TVM keeps the values of the last row as objects, and those of the first row in place. The text of a call is the same for
both. In the JSON of a metadata section an object is the number of its node. Therefore the annotation says how a section
is read and written. Lists and `AnyAttr` are objects always.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING, dataclass
from enum import IntEnum
from types import UnionType
from typing import Any as AnyValue
from typing import Protocol
from typing import TypeVar as _T

import numpy as np

from relaylang.ir.expr import Constant, Expr
from relaylang.ir.flat import Flat
from relaylang.ir.types import ANY, Dim, GlobalTypeVar, TensorType, Type, TypeVar, dtype_name, extent
from relaylang.ops.takes import Word, words
from relaylang.ops.traits import Fact, Trait

Ints = tuple[int, ...]
Bounds = tuple[int | None, ...]
NestedInts = tuple[tuple[int, ...], ...]
Floats = tuple[float, ...]
AnyAttr = AnyValue
Integer = int
FloatImm = float
Bool = bool
String = str


class OpPattern(IntEnum):
    """How an operator may be fused with its neighbours (TVM's `TOpPattern`)."""

    ELEMWISE = 0
    BROADCAST = 1
    INJECTIVE = 2
    COMM_REDUCE = 3
    OUT_ELEMWISE_FUSABLE = 4
    TUPLE = 7
    OPAQUE = 8


#: The kinds of values that TVM keeps in place, and the kinds of the objects that hold such values.
_IN_PLACE = ("int", "float", "bool", "str")
_OBJECTS = {"Integer": "int", "FloatImm": "float", "Bool": "bool", "String": "str", "Bounds": "Ints"}


class AttrField:
    """One attribute: its name, annotation (a text such as "Ints | None"), default and whether it must be given.

    `is_object`: TVM keeps the value as an object, which is a node of its own in a metadata section. `gaps`: a list may
    have None among its numbers.
    """

    __slots__ = ("default", "gaps", "is_object", "kind", "name", "optional", "required")

    def __init__(self, name: str, annotation: str, default: AnyValue) -> None:
        kinds = [k.strip() for k in annotation.split("|")]
        kind = next((k for k in kinds if k != "None"), "AnyAttr")
        self.name = name
        self.optional = "None" in kinds
        self.is_object = kind not in _IN_PLACE
        self.gaps = kind == "Bounds"
        self.kind = _OBJECTS.get(kind, kind)
        self.required = default is MISSING
        self.default = None if default is MISSING else default


class AttrError(ValueError):
    """An attribute's value does not fit. `name` is the attribute; the message says which values fit."""

    def __init__(self, name: str, message: str) -> None:
        self.name = name
        super().__init__(message)


#: Lists of extents, in which `?` and type variables may stand. Other lists of whole numbers have none.
_EXTENTS = {
    "shape",
    "newshape",
    "out_shape",
    "output_shape",
    "target_shape",
    "size",
    "output_size",
    "pooled_size",
    "crop_size",
    "kernel_size",
}
_DTYPE = re.compile(r"(?:None|bool|handle|custom\[.*\]\d+|(?:int|uint|float|bfloat)\d*(?:_?\w+)?(?:x\d+)?)?")
_WANTED = {
    "int": "a whole number",
    "float": "a number",
    "bool": "True or False",
    "str": "a string",
    "Ints": "a list of whole numbers",
    "NestedInts": "a list of lists of whole numbers",
    "Floats": "a list of numbers",
}


def _whole(value: AnyValue) -> int:
    """A whole number in an object's form: it keeps a type other than int32."""
    if isinstance(value, int):
        return int(value) if isinstance(value, bool) else value
    if hasattr(value, "__index__"):
        return extent(value.__index__(), getattr(getattr(value, "dtype", None), "name", "int32"))
    raise TypeError("int")


def _fits(kind: str, value: AnyValue) -> AnyValue:
    """The value as a field of this kind holds it; TypeError where it does not fit."""
    if kind == "int":
        return _whole(value).__index__()
    elif kind == "float":
        if isinstance(value, (int, float)) or hasattr(value, "__float__"):
            return float(value)
    elif kind == "bool":
        if isinstance(value, bool) or (isinstance(value, int) and value in (0, 1)):
            return bool(value)
        if type(value).__name__ in ("bool_", "bool"):
            return bool(value)
    elif kind == "str":
        if isinstance(value, str):
            return value
    elif isinstance(value, np.ndarray) and kind in ("Ints", "Extents", "NestedInts", "Floats"):
        return _fits(kind, tuple(value))
    elif kind == "Ints":
        return tuple(map(_whole, value)) if isinstance(value, (list, tuple)) else (_whole(value),)
    elif kind == "Extents":
        if isinstance(value, (list, tuple)):
            return tuple([v if v is ANY or isinstance(v, TypeVar) else _whole(v) for v in value])
        return (_whole(value),)
    elif kind == "NestedInts":
        if isinstance(value, (list, tuple)):
            return tuple([_fits("Ints", v) if isinstance(v, (list, tuple, np.ndarray)) else _fits("int", v) for v in value])
    elif kind == "Floats":
        if isinstance(value, (list, tuple)):
            return tuple([_fits("float", v) for v in value])
        return (_fits("float", value),)
    else:
        return tuple(map(_kept, value)) if isinstance(value, (list, tuple)) else _kept(value)
    raise TypeError(kind)


def _kept(value: AnyValue) -> AnyValue:
    """A value of any kind; numpy's whole numbers keep their type as extents do."""
    return _whole(value) if isinstance(value, np.integer) else value


def coerce(field: AttrField, value: AnyValue) -> AnyValue:
    """A value from a text or a caller as the attribute holds it. Raises `AttrError`."""
    if value is None:
        if field.optional or field.kind == "AnyAttr":
            return None
        raise AttrError(field.name, f"must be {_WANTED.get(field.kind, field.kind)}, not None")
    if isinstance(value, Expr) and not isinstance(value, Constant) and field.kind == "AnyAttr":
        return None  # a computed operand is an argument; no text can hold it in an attribute
    if field.optional and field.kind == "str" and isinstance(value, str) and value in ("", "void"):
        return None  # an element type that is not given, as old texts write it
    if field.kind == "str" and field.name.endswith("dtype"):
        if isinstance(value, str) and not _DTYPE.fullmatch(value):
            raise AttrError(field.name, f"must be an element type such as float32, not {value[:60]!r}")
        value = dtype_name(value) if isinstance(value, (str, type, np.dtype)) else value
    try:
        if field.gaps and isinstance(value, (list, tuple)):
            return tuple([None if v is None else _whole(v) for v in value])
        if field.is_object and field.kind == "int":
            return _whole(value)
        return _fits("Extents" if field.kind == "Ints" and field.name in _EXTENTS else field.kind, value)
    except TypeError:
        shape = getattr(value, "shape", None)
        shown = repr(list(value) if isinstance(value, tuple) else value)
        if isinstance(shape, tuple) and shape:
            shown = f"a tensor of the shape {shape}"
        shown = shown if len(shown) <= 60 else shown[:57] + "..."
        raise AttrError(field.name, f"must be {_WANTED.get(field.kind, field.kind)}, not {shown}") from None


_C = _T("_C")


class _Fields:
    """`__dataclass_fields__` of an attribute class and its values, made on first use."""

    def __get__(self, attrs: AnyValue, cls: type) -> AnyValue:
        return _complete(cls).__dataclass_fields__  # type: ignore[attr-defined]


class Attributes(Flat):
    """The base of all attribute classes: each becomes a dataclass when it is first used.

    There are some two hundred of them, and a program uses a few. Making one takes longer than checking a small program.
    """

    __slots__ = ()
    __dataclass_fields__ = _Fields()
    __match_args__ = ()

    def __init__(self, **values: AnyValue) -> None:
        _complete(type(self)).__init__(self, **values)  # type: ignore[misc]

    def keys(self) -> list[str]:
        """The names of the attributes, so that `dict(attrs)` and `**attrs` hold them all."""
        return list(type(self).schema)  # type: ignore[attr-defined]

    def __getitem__(self, name: str) -> AnyValue:
        if name not in type(self).schema:  # type: ignore[attr-defined]
            raise KeyError(name)
        return getattr(self, name)

    def get_int(self, name: str) -> int | None:
        """An attribute that is a whole number."""
        return None if self[name] is None else int(self[name])

    def get_int_tuple(self, name: str) -> tuple[int, ...]:
        """An attribute that is a list of whole numbers."""
        return tuple([int(n) for n in self[name]])

    def get_str(self, name: str) -> AnyValue:
        """An attribute's value; a text, in most uses."""
        return self[name]

    def __repr__(self) -> str:
        _complete(type(self))
        return repr(self)

    def __eq__(self, other: object) -> bool:
        _complete(type(self))
        return bool(self == other) if type(other) is type(self) else NotImplemented

    __hash__ = None  # type: ignore[assignment]


def _complete(cls: type) -> type:
    """Give an attribute class the methods that `dataclass` makes of its fields. Returns the class."""
    if not issubclass(cls, Attributes) or cls is Attributes:
        raise AttributeError("__dataclass_fields__")
    body: dict[str, AnyValue] = {name: vars(cls)[name] for name in ("__annotations__", "__module__", "__doc__")}
    for field in cls.schema.values():  # type: ignore[attr-defined]
        if not field.required:
            body[field.name] = field.default
    generated: type = dataclass(kw_only=True)(type(cls.__name__, (), body))
    for name in ("__init__", "__repr__", "__eq__", "__replace__", "__dataclass_params__", "__dataclass_fields__"):
        if name in vars(generated):  # `copy.replace` came with Python 3.13
            setattr(cls, name, vars(generated)[name])
    return cls


def attrs_class(type_key: str, in_metadata: bool = False) -> Callable[[type[_C]], type[_C]]:
    """Make a class an operator's attributes: a dataclass with slots, `type_key` and `schema` (name -> AttrField).

    Instances are made with keywords only, so that a field without a default may stand behind one that has it.

    A class may extend another one: it has that one's attributes before its own, under a `type_key` of its own.

    `type_key` is TVM's name for the class; two operators with equal attributes may share one class. `in_metadata` says
    that TVM prints a call's attributes as one object of the metadata section. TVM does not tie such attributes to the
    operator.
    """

    def wrap(cls: type[_C]) -> type[_C]:
        own = inspect.get_annotations(cls)
        base = cls.__base__ if issubclass(cls, Attributes) else None
        annotations = {**(inspect.get_annotations(base) if base is not None else {}), **own}
        body = {name: value for name, value in vars(cls).items() if name not in own and name not in _OF_A_CLASS}
        body["__slots__"] = tuple(annotations)
        body["__annotations__"] = annotations
        body["__doc__"] = cls.__doc__ or cls.__name__
        body["type_key"] = type_key
        fields = {name: AttrField(name, _annotation(kind), cls.__dict__.get(name, MISSING)) for name, kind in own.items()}
        body["schema"] = {**getattr(base, "schema", {}), **fields}
        body["in_metadata"] = in_metadata
        return type(cls.__name__, (Attributes,), body)  # type: ignore[return-value]

    return wrap


def _annotation(kind: AnyValue) -> str:
    """An annotation as a text, which it is under `from __future__ import annotations` alone."""
    if isinstance(kind, str):
        return kind
    if isinstance(kind, UnionType):
        return " | ".join(map(_annotation, kind.__args__))
    aliases = {"Ints": Ints, "Bounds": Bounds, "NestedInts": NestedInts, "Floats": Floats, "AnyAttr": AnyAttr, "None": type(None)}
    return next((name for name, alias in aliases.items() if kind == alias), getattr(kind, "__name__", "AnyAttr"))


#: The parts that every class gets of its own: a class that is made anew does not copy them.
_OF_A_CLASS = ("__dict__", "__weakref__", "__annotations__", "__doc__")


def make_attrs(cls: type, values: dict[str, AnyValue]) -> AnyValue:
    """An instance of an attribute class from given values, each coerced.

    Raises `AttrError` for a value that does not fit. A field without a default is required, unless it may be None; a
    missing one is then None.
    """
    schema = cls.schema  # type: ignore[attr-defined]
    coerced = {}
    for name, value in values.items():
        field = schema.get(name)
        if field is None:
            raise AttrError(name, f"is not an attribute here; there are {', '.join(schema) or 'none'}")
        coerced[name] = coerce(field, value)
    for field in schema.values():
        if field.required and field.name not in coerced:
            if not field.optional:
                raise AttrError(field.name, "must be given")
            coerced[field.name] = None
    return cls(**coerced)


class RelationError(Exception):
    """A relation does not hold. `arg` is the number of the argument to point at, or None for the whole call.

    `notes` are further sentences.
    """

    def __init__(self, message: str, arg: int | None = None, notes: Sequence[str] = ()) -> None:
        self.message = message
        self.arg = arg
        self.notes = tuple(notes)
        super().__init__(message)


class RelationContext(Protocol):
    """The questions that a type relation may ask the checker.

    Every method raises `RelationError` where something disagrees.
    """

    def unify(self, arg: int, expected: Type, repairs: Callable[[], Sequence[str]] | None = None) -> Type:
        """Argument `arg` has the type `expected`; dimensions `?` yield to known ones. Returns the agreed type.

        `repairs` makes the notes of the error.
        """

    def unify_dims(self, left: Dim, right: Dim, what: str, arg: int | None = None) -> Dim:
        """Two extents are the same; `what` names them in the error ("the input channels")."""

    def dtype_hint(self, arg: int) -> str | None:
        """The element type that the call which makes an unknown argument names (`out_dtype="int8"`), if any."""

    def type_definition(self, name: str) -> GlobalTypeVar | None:
        """The type that the module defines under a name, if it does."""

    def fail(self, message: str, arg: int | None = None, notes: Sequence[str] = ()) -> AnyValue:
        """The call is wrong; a message that begins with an attribute (`axis=5 is ...`) points there. Never returns."""


#: `rel(types, attrs, ctx) -> result type`. `types` are the arguments' types, resolved as far as they are known; those
#: in `Op.needs` are complete. The result may hold an `IncompleteType` where it is not known. The relation returns None
#: while it needs more of the arguments.
Relation = Callable[[Sequence[Type], AnyValue, RelationContext], "Type | None"]

#: `back(result, types, attrs, ctx)` unifies unknown arguments with the types that follow from a known result.
BackRelation = Callable[[Type, Sequence[Type], AnyValue, RelationContext], None]


#: How many results a call has: a number, or a function of the call's arguments and attributes.
Results = int | Callable[[Sequence[AnyValue], AnyValue], int]


class Op(Expr):
    """An operator. The record is itself an expression, the callee of its calls, and is never changed.

    | field | meaning |
    |---|---|
    | `name` | as the text has it |
    | `args` | the arguments' names; a `variadic` operator takes any number of them |
    | `attrs` | the class of the attributes, or None |
    | `rel` | gives the result's type |
    | `needs` | the arguments that `rel` must know; None: all |
    | `back` | gives arguments' types from the result's |
    | `pattern` | how a call is fused with its neighbours |
    | `level` | TVM's support level |
    | `doc` | one sentence for hovers, `:doc` and the reference |
    | `takes` | what each argument must be, in the words of `relaylang.ops.takes`: "tensor integer[n]" |
    | `traits` | facts that passes ask for (`Trait`) |
    | `of` | the operator of which this one is a form; a trait says which |
    | `symbol` | the sign between its arguments, as in `%x + %y` |
    | `results` | how many results the Python function gives one by one, or a function of the call; 0: the call itself |
    | `python` | how TVM's Python function differs from the record (see below) |
    | `example` | a function or module with a call, where trying types finds none |

    TVM's Python function takes the arguments, then the attributes. `python` is "" for such a function, None for none.
    "(..., axis, dtype=None)" changes defaults: here, `axis` has none. "(data, size: shape = 1)" gives all parameters:
    `size` is the attribute `shape`. A parameter `k: argument` is an argument though an attribute has the same name. A
    path in front of the parenthesis is the function's own.
    """

    __slots__ = (
        "args",
        "attrs",
        "back",
        "doc",
        "example",
        "level",
        "name",
        "needs",
        "of",
        "pattern",
        "python",
        "rel",
        "results",
        "symbol",
        "takes",
        "traits",
        "variadic",
    )
    __match_args__ = ("name",)
    is_record = True
    name: str
    args: tuple[str, ...]
    attrs: type | None
    rel: Relation
    pattern: OpPattern
    level: int
    needs: tuple[int, ...] | None
    back: BackRelation | None
    variadic: bool
    doc: str
    takes: tuple[Word, ...]
    traits: frozenset[Fact]
    of: str
    symbol: str
    results: Results
    python: str | None
    example: str

    def __init__(
        self,
        name: str,
        args: Sequence[str],
        attrs: type | None,
        rel: Relation,
        pattern: OpPattern = OpPattern.OPAQUE,
        level: int = 10,
        *,
        needs: Sequence[int] | None = None,
        back: BackRelation | None = None,
        variadic: bool = False,
        doc: str = "",
        takes: str = "",
        traits: Iterable[Fact] = (),
        of: str = "",
        symbol: str = "",
        results: Results = 0,
        python: str | None = "",
        example: str = "",
    ) -> None:
        put = object.__setattr__
        put(self, "name", name)
        put(self, "args", tuple(args))
        put(self, "attrs", attrs)
        put(self, "rel", rel)
        put(self, "pattern", OpPattern(pattern))
        put(self, "level", level)
        put(self, "needs", None if needs is None else tuple(needs))
        put(self, "back", back)
        put(self, "variadic", variadic)
        put(self, "doc", doc)
        put(self, "takes", words(takes))
        put(self, "traits", frozenset(traits))
        put(self, "of", of)
        put(self, "symbol", symbol)
        put(self, "results", results)
        put(self, "python", python)
        put(self, "example", example)
        put(self, "span", None)
        put(self, "checked_type", None)

    def __setattr__(self, name: str, value: AnyValue) -> None:
        raise AttributeError(f"operator {self.name} is a frozen record")

    @property
    def stateful(self) -> bool:
        """A call has an effect beside its value."""
        return Trait.STATEFUL in self.traits

    @property
    def schema(self) -> dict[str, AttrField]:
        return self.attrs.schema if self.attrs is not None else {}  # type: ignore[attr-defined]

    def signature(self) -> str:
        """`nn.softmax(data, axis=-1)`, as documentation shows it."""
        parts = list(self.args) if not self.variadic else [f"*{a}" for a in self.args[-1:]]
        for field in self.schema.values():
            parts.append(field.name if field.required else f"{field.name}={field.default!r}")
        return f"{self.name}({', '.join(parts)})"

    def __repr__(self) -> str:
        return f"Op({self.name})"

    def __copy__(self) -> Op:
        return self

    def __deepcopy__(self, memo: AnyValue) -> Op:
        return self


def tensor(types: Sequence[Type], arg: int, ctx: RelationContext) -> TensorType:
    """Argument `arg` as a tensor type. Another type is an error that names it."""
    ty = types[arg]
    if not isinstance(ty, TensorType):
        ctx.fail(f"must be a tensor, not `{ty!r}`", arg)
    assert isinstance(ty, TensorType)
    return ty
