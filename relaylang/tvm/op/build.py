"""TVM's functions that make calls of operators, from the operators' records.

Parameters with the names of the record's attributes become attributes. The others are the arguments, in their order.
`Op.python` lists the differences between parameters and record. Tables here have further behaviour of TVM's functions.
`composed` has the few functions that make several calls.
"""

from __future__ import annotations

import ast
import inspect
import numbers
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from relaylang.ir import Call, Constant, Expr, Tuple, TupleGetItem, const
from relaylang.ops import FAMILIES, OPS, Op, make_attrs
from relaylang.ops.record import AttrError, AttrField
from relaylang.ops.traits import Trait

#: Parameters that are arguments, and attributes too where their values are known.
BOTH = {"collapse_sum_to": {"shape"}}

#: Attributes that are the same in every call that a function makes.
PRESET: dict[str, dict[str, Any]] = {
    "op.vm.shape_of": {"dtype": "int64"},
    "qnn.op.batch_matmul": {"transpose_a": False, "transpose_b": True},
    "nn.max_pool2d_grad": {"dilation": ()},
    "nn.avg_pool2d_grad": {"dilation": ()},
    "nn.space_to_depth": {"mode": ""},
    "dyn.reshape": {"newshape": ()},
    "dyn.tile": {"reps": ()},
    "dyn.squeeze": {"axis": ()},
    "dyn.one_hot": {"depth": 0},
}

#: The element type of a number that is given for an argument (None: that of the number).
NUMBERS: dict[tuple[str, str], str] = {
    ("vision.get_valid_counts", "score_threshold"): "float32",
    ("vision.non_max_suppression", "max_output_size"): "int32",
    ("vision.non_max_suppression", "iou_threshold"): "float32",
    ("vision.all_class_non_max_suppression", "max_output_boxes_per_class"): "int32",
    ("vision.all_class_non_max_suppression", "iou_threshold"): "float32",
    ("vision.all_class_non_max_suppression", "score_threshold"): "float32",
}

#: Functions over so many spatial axes, beside convolutions and pools. One number for an attribute stands for all axes.
#: With True the padding is written out for each side.
_SPATIAL: dict[str, tuple[int, bool]] = {
    "nn.conv1d_transpose": (1, False),
    "nn.contrib_conv2d_winograd_without_weight_transform": (2, True),
    "nn.contrib_conv3d_winograd_without_weight_transform": (3, True),
    "nn.contrib_conv2d_gemm_without_weight_transform": (2, True),
    "nn.conv2d_backward_weight": (2, True),
    "nn.deformable_conv2d": (2, True),
    "image.dilation2d": (2, False),
    "nn.correlation": (2, False),
    **{f"image.resize{n}d": (n, False) for n in (1, 2, 3)},
    "qnn.op.avg_pool2d": (0, False),  # its windows stay as they are given
}
_WINDOWED = frozenset({Trait.CONV, Trait.CONV_TRANSPOSE, Trait.POOL, Trait.ADAPTIVE_POOL})
_WINDOW = ("strides", "dilation", "dilations", "kernel_size", "pool_size", "output_padding", "output_size")

#: The forms of operators with arguments in place of attributes, and where an argument has another name there.
DYNAMIC_FORMS: dict[str, Op] = {op.of: op for op in OPS.values() if Trait.DYNAMIC in op.traits}
_ARGUMENTS = {"axes": "axis"}
#: The element types of numbers that are given beside expressions.
_MOVED = {"roi": "float32", "size": "int64", "scale_h": "float64", "scale_w": "float64", "scale_d": "float64"}

#: Parameters that may be constants besides, where no operator takes them as arguments.
CONSTANTS = {f"image.resize{n}d": ("size", "roi") for n in (1, 3)}


class TupleWrapper:
    """A call with several results: they are taken out by number, or all of them in a loop."""

    def __init__(self, tuple_value: Expr, size: int) -> None:
        self.tuple_value = tuple_value
        self.size = size

    def astuple(self) -> Expr:
        """The call itself, whose value is a tuple."""
        return self.tuple_value

    def astext(self, show_meta_data: bool = True) -> str:
        """The text of the call."""
        return self.tuple_value.astext(show_meta_data)

    def __getitem__(self, index: int) -> TupleGetItem:
        if not -self.size <= index < self.size:
            raise IndexError(f"there are {self.size} results, not {index + 1}")
        return TupleGetItem(self.tuple_value, index % self.size)

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[TupleGetItem]:
        return (self[i] for i in range(self.size))

    def __repr__(self) -> str:
        return f"TupleWrapper({self.tuple_value!r}, {self.size})"


#: An operator's argument: an expression, a list of them, a number, or an array.
Argument = Expr | TupleWrapper | float | np.ndarray | np.generic | list[Any] | tuple[Any, ...]


def operand(value: Any, dtype: str | None = None) -> Expr:
    """An argument: an expression itself, a list as a tuple, a number or an array as a constant."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, TupleWrapper):
        return value.tuple_value
    if isinstance(value, (list, tuple)) and any(isinstance(v, (Expr, TupleWrapper)) for v in value):
        return Tuple([operand(v) for v in value])
    if isinstance(value, (numbers.Number, np.ndarray, list, tuple)):
        return const(value, dtype)
    raise TypeError(f"an argument must be an expression, not {value!r}")


@dataclass(frozen=True)
class Signature:
    """A function's parameters. `attributes` says which attribute a parameter gives where the names differ.

    `arguments` are the parameters that are arguments though the record has an attribute of the same name.
    """

    op: Op | None
    parameters: inspect.Signature
    attributes: Mapping[str, str] = field(default_factory=dict)
    arguments: frozenset[str] = frozenset()

    def attribute(self, name: str) -> AttrField | None:
        """The attribute that a parameter gives; None for an argument."""
        if self.op is None or name in self.arguments:
            return None
        return self.op.schema.get(self.attributes.get(name, name))


#: The modules of functions whose operators have other names.
_PREFIXES = {"qnn.": "qnn.op.", "vm.": "op.vm."}
_EMPTY = inspect.Parameter.empty


@cache
def functions() -> dict[str, Signature]:
    """Every function of an operator, by its path below `relaylang`."""
    signatures = {}
    for family in FAMILIES.values():
        for op in family:
            if op.python is None:
                continue
            path, _, inside = op.python.partition("(")
            if not path:
                path = next((new + op.name[len(old) :] for old, new in _PREFIXES.items() if op.name.startswith(old)), op.name)
            signatures[path] = _signature(op, inside[:-1])
    return signatures


def _signature(op: Op, text: str) -> Signature:
    """The signature that `Op.python` gives: the record's parameters, with other defaults, or all of them."""
    named, defaults = _written(text[4:].strip() if text.startswith("...") else text)
    known_defaults = {a.arg: d for a, d in zip(named, defaults)}
    if text and not text.startswith("..."):
        said = {a.arg: ast.unparse(a.annotation) for a in named if a.annotation is not None}
        free = frozenset(name for name, what in said.items() if what == "argument")
        renamed = {name: what for name, what in said.items() if name not in free}
        return Signature(op, _parameters(known_defaults), renamed, free)
    own: dict[str, Any] = dict.fromkeys(op.args, _EMPTY)
    own |= {name: _EMPTY if f.required else f.default for name, f in op.schema.items()}
    return Signature(op, _parameters(own | known_defaults))


def _written(text: str) -> tuple[list[ast.arg], list[Any]]:
    """The parameters of a text such as "a, size: shape = 1", and their defaults."""
    arguments = ast.parse(f"def f({'*, ' if text else ''}{text}): pass").body[0].args  # type: ignore[attr-defined]
    return arguments.kwonlyargs, [_EMPTY if d is None else ast.literal_eval(d) for d in arguments.kw_defaults]


def _parameters(parameters: Mapping[str, Any]) -> inspect.Signature:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature([inspect.Parameter(name, kind, default=d) for name, d in parameters.items()])


def dynamic(path: str) -> tuple[Op, list[str]] | None:
    """The operator that takes parameters as arguments where they are expressions, and these parameters."""
    op = functions()[path].op
    form = None if op is None else DYNAMIC_FORMS.get(op.name)
    if op is None or form is None:
        return None
    names = [_ARGUMENTS.get(a, a) for a in form.args]
    return form, [a for a in names if a in functions()[path].parameters.parameters and a not in op.args]


@cache
def spatial_axes(path: str) -> tuple[int, bool]:
    """Over how many spatial axes a function goes, and whether its padding is written out for each side."""
    op = functions()[path].op
    if path in _SPATIAL or op is None or op.traits.isdisjoint(_WINDOWED):
        return _SPATIAL.get(path, (0, False))
    layout = op.schema["data_layout" if "data_layout" in op.schema else "layout"].default
    return len(set("DHW") & set(str(layout))), Trait.ADAPTIVE_POOL not in op.traits


def spatial(path: str, op: Op, values: dict[str, Any]) -> None:
    """Attributes of windows written out for each axis, in place."""
    count, sides = spatial_axes(path)
    for name in (*_WINDOW, "size", "padding"):
        if isinstance(values.get(name), int) and op.schema[name].kind == "Ints":
            values[name] = (values[name],) * count
    if sides:
        pads = tuple(values["padding"])
        pads = pads * count if len(pads) == 1 and count > 1 else pads
        values["padding"] = pads * 2 if len(pads) == count else pads


def plain(path: str, name: str, value: Any) -> Any:
    """A parameter's value as an attribute's: a constant's data, a numpy number as Python's."""
    field = functions()[path].attribute(name)
    if field is None or name in BOTH.get(path, ()):
        return value
    form = dynamic(path)
    if isinstance(value, Constant) and name in (*(form[1] if form is not None else ()), *CONSTANTS.get(path, ())):
        value = value.data.item() if value.data.size == 1 and field.kind in ("int", "float", "bool") else value.data.tolist()
    return value.item() if isinstance(value, np.generic) else value


def call(path: str, op: Op, given: Mapping[str, Any]) -> Any:
    """The call that a function of this path makes for its parameters' values."""
    signature, form = functions()[path], dynamic(path)
    values = {name: plain(path, name, value) for name, value in given.items()}
    moved = {}
    if form is not None and any(isinstance(values[name], Expr) for name in form[1]):
        moved = {name: operand(values.pop(name), _MOVED.get(name)) for name in form[1]}
        op = form[0]
    elif spatial_axes(path)[0]:
        spatial(path, op, values)
    attrs = dict(PRESET.get(op.name if moved else path, {}))
    args = []
    for name, value in values.items():
        if name in BOTH.get(path, ()):
            args.append(operand(value, "int32" if isinstance(value, (list, tuple)) else None))
            value = args[-1].data.tolist() if isinstance(args[-1], Constant) else None
        target = signature.attributes.get(name, name)
        if target in op.schema and name not in signature.arguments:
            field = op.schema[target]
            known = signature.parameters.parameters.get(name)
            if value is not None or field.optional or known is None or known.default is not None:
                attrs[target] = value
        else:
            args.append(operand(value, NUMBERS.get((path, name))))
    if moved:
        others = iter(args)
        args = [moved[a] if a in moved else next(others) for a in (_ARGUMENTS.get(a, a) for a in op.args)]
    try:
        built = Call(op, args, make_attrs(op.attrs, attrs) if op.attrs is not None else None)
    except AttrError as problem:
        raise ValueError(f"{path}: {problem.name} {problem}") from None
    number = signature.op.results if signature.op is not None else 0
    number = number(built.args, built.attrs) if callable(number) else number
    return TupleWrapper(built, number) if number else built


#: The kinds of attribute values in words.
_KINDS = {
    "int": "whole number",
    "float": "number",
    "bool": "bool",
    "str": "str",
    "Ints": "whole numbers",
    "NestedInts": "lists of whole numbers",
    "Floats": "numbers",
    "AnyAttr": "any",
}


def documentation(path: str) -> str:
    """A function's docstring: the call it makes, its arguments and attributes, and a pointer to its meaning."""
    signature = functions()[path]
    op = signature.op
    assert op is not None
    takes, attributes = [], []
    for name, parameter in signature.parameters.parameters.items():
        field = signature.attribute(name)
        if field is None:
            takes.append(name)
            continue
        has_default = parameter.default is not inspect.Parameter.empty
        optional = " or None" if field.optional else ""
        attributes.append(
            f"  {name}: {_KINDS[field.kind]}{optional}, {f'default {parameter.default!r}' if has_default else 'must be given'}"
        )
    lines = [op.doc or f"A call of the operator `{op.name}`.", ""]
    lines += [f"Arguments, which are expressions: {', '.join(takes) or 'none'}.", *attributes]
    form = dynamic(path)
    if form is not None:
        other, moved = form
        may = " and ".join(moved)
        lines.append(f"Where {may} {'is an expression' if len(moved) == 1 else 'are expressions'}, it is a call of `{other.name}`.")
    family = inspect.getmodule(op.rel)
    where = (family.__name__ if family is not None else "relaylang.ops").rsplit(".", 1)[1]
    said = [
        " ".join((op.rel.__doc__ or "").split()),
        "Raises ValueError for an attribute's value that does not fit, and TypeError for an unknown parameter. "
        "The type checker reports arguments whose types disagree: error R0301 names the argument and the extent.",
        f"The types are defined in relaylang/ops/{where}.py, the values by the kernel `{op.name}` in "
        "relaylang/interpreter/kernels. Name, parameters and defaults are those of TVM 0.16's tvm.relay.",
    ]
    for text in said:
        lines += ["", textwrap.fill(text, 110)]
    return "\n".join(lines)


def function(path: str) -> Callable[..., Any]:
    """TVM's function of a path, such as "nn.conv2d". Raises `KeyError`."""
    op = functions()[path].op
    signature = functions()[path].parameters
    assert op is not None
    # a call that has arguments alone needs no binding: expressions of thousands of signs are made this way
    count = len(signature.parameters) if op.attrs is None and not op.results and dynamic(path) is None else -1

    def build(*args: Any, **named: Any) -> Any:
        if len(args) == count and not named:
            return Call(op, [a if isinstance(a, Expr) else operand(a) for a in args])
        try:
            bound = signature.bind(*args, **named)
        except TypeError as problem:
            raise TypeError(f"{path}: {problem}") from None
        bound.apply_defaults()
        return call(path, op, bound.arguments)

    build.__signature__ = signature  # type: ignore[attr-defined]
    build.__name__ = build.__qualname__ = path.rsplit(".", 1)[-1]
    build.__doc__ = documentation(path)
    return build
