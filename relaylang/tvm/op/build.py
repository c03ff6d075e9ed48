"""TVM's functions that make calls of operators, from the operators' records and TVM's signatures.

A function's parameters that are attributes of the record become attributes; the others are the arguments, in their
order. What TVM's functions do besides that stands in tables here, and the few that make more than one call in
`composed`.
"""

from __future__ import annotations

import ast
import inspect
import numbers
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from relaylang.ir import Call, Constant, Expr, Tuple, TupleGetItem, const
from relaylang.ops import OPS, Op, make_attrs
from relaylang.ops.record import AttrError
from relaylang.tvm.op.signatures import GIVEN, PLAIN

#: What may stand for an operator's argument: an expression, a list of them, a number, an array.
Argument = Any

#: Functions whose operator has another name.
OTHER_NAME = {
    "reverse_reshape": "contrib_reverse_reshape",
    "nn.contrib_conv2d_nchwc": "nn.contrib_conv2d_NCHWc",
    "nn.contrib_depthwise_conv2d_nchwc": "nn.contrib_depthwise_conv2d_NCHWc",
}

#: Parameters that are attributes of another name.
RENAMED: dict[str, dict[str, str]] = {
    "unique": {"is_sorted": "sorted"},
    "device_copy": {"src_device": "src_virtual_device", "dst_device": "dst_virtual_device"},
    "random.threefry_generate": {"shape": "out_shape"},
    "random.uniform": {"shape": "out_shape", "dtype": "out_dtype"},
    "random.normal": {"shape": "out_shape", "dtype": "out_dtype"},
    "nn.conv2d_backward_weight": {
        "grad_layout": "data_layout",
        "data_layout": "kernel_layout",
        "kernel_layout": "out_layout",
    },
    "qnn.op.contrib_dense_pack": {"kernel_layout": "weight_layout"},
}

#: Parameters that are arguments though the record has an attribute of that name.
OPERANDS = {
    "arange": {"start", "stop", "step"},
    "dyn.strided_slice": {"strides"},
    "vision.get_valid_counts": {"score_threshold"},
    "qnn.op.simulated_dequantize": {"in_dtype"},
    "qnn.op.simulated_quantize": {"out_dtype"},
}

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

#: Functions over so many spatial axes: one number for an attribute stands for all of them, and with True the padding
#: is written out for each side.
SPATIAL: dict[str, tuple[int, bool]] = {
    **{f"nn.conv{n}d": (n, True) for n in (1, 2, 3)},
    **{f"nn.conv{n}d_transpose": (n, n > 1) for n in (1, 2, 3)},
    **{f"nn.{kind}_pool{n}d": (n, True) for n in (1, 2, 3) for kind in ("max", "avg")},
    **{f"nn.adaptive_{kind}_pool{n}d": (n, False) for n in (1, 2, 3) for kind in ("max", "avg")},
    "nn.contrib_conv2d_winograd_without_weight_transform": (2, True),
    "nn.contrib_conv3d_winograd_without_weight_transform": (3, True),
    "nn.contrib_conv2d_gemm_without_weight_transform": (2, True),
    "nn.contrib_conv2d_nchwc": (2, True),
    "nn.contrib_depthwise_conv2d_nchwc": (2, True),
    "nn.conv2d_backward_weight": (2, True),
    "nn.deformable_conv2d": (2, True),
    "image.dilation2d": (2, False),
    "qnn.op.conv2d": (2, True),
    "qnn.op.conv2d_transpose": (2, True),
    "nn.correlation": (2, False),
    **{f"image.resize{n}d": (n, False) for n in (1, 2, 3)},
}
_WINDOW = ("strides", "dilation", "dilations", "kernel_size", "pool_size", "output_padding", "output_size")

#: Where a parameter is an expression, the operator that takes it as an argument, and those parameters in its order.
DYNAMIC: dict[str, tuple[str, ...]] = {
    "reshape": ("dyn.reshape", "newshape"),
    "broadcast_to": ("dyn.broadcast_to", "shape"),
    "tile": ("dyn.tile", "reps"),
    "zeros": ("dyn.zeros", "shape"),
    "ones": ("dyn.ones", "shape"),
    "full": ("dyn.full", "shape"),
    "topk": ("dyn.topk", "k"),
    "one_hot": ("dyn.one_hot", "depth"),
    "expand_dims": ("dyn.expand_dims", "axis"),
    "squeeze": ("dyn.squeeze", "axis"),
    "nn.pad": ("dyn.nn.pad", "pad_width"),
    "nn.upsampling": ("dyn.nn.upsampling", "scale_h", "scale_w"),
    "nn.upsampling3d": ("dyn.nn.upsampling3d", "scale_d", "scale_h", "scale_w"),
    "image.resize2d": ("dyn.image.resize2d", "size", "roi"),
    "sparse_to_dense": ("dyn.sparse_to_dense", "output_shape"),
}

#: Parameters that may be constants besides, where no operator takes them as arguments.
CONSTANTS = {f"image.resize{n}d": ("size", "roi") for n in (1, 3)}

#: How many results a call has, where TVM hands out a tuple of them.
RESULTS: dict[str, int | Callable[[Mapping[str, Any]], int]] = {
    "nn.batch_norm": 3,
    "nn.dropout": 2,
    "split": lambda a: (
        a["indices_or_sections"] if isinstance(a["indices_or_sections"], int) else len(a["indices_or_sections"]) + 1
    ),
    "meshgrid": lambda a: len(_fields(a["data"])),
    "topk": lambda a: 2 if a["ret_type"] == "both" else 0,
    "unique": lambda a: 5 if a["return_counts"] else 4,
    "dft": 2,
    "sparse_reshape": 2,
    "sparse_fill_empty_rows": 3,
    "vision.get_valid_counts": 3,
    "vision.non_max_suppression": lambda a: 2 if a["return_indices"] else 0,
    "vision.all_class_non_max_suppression": lambda a: 2 if a["output_format"] == "onnx" else 3,
    "vision.regular_non_max_suppression": 4,
    "vision.multibox_transform_loc": 2,
}


class TupleWrapper:
    """A call with several results: they are taken out by number, or all of them in a loop."""

    def __init__(self, tuple_value: Expr, size: int) -> None:
        self.tuple_value = tuple_value
        self.size = size

    def astuple(self) -> Expr:
        """The call itself, whose value is a tuple."""
        return self.tuple_value

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


def _fields(value: Any) -> Sequence[Any]:
    if isinstance(value, TupleWrapper):
        return list(value)
    return value.fields if isinstance(value, Tuple) else list(value)


def operand(value: Any, dtype: str | None = None) -> Expr:
    """An argument: an expression as it is, a list of them as a tuple, a number or an array as a constant."""
    if isinstance(value, Expr):
        return value
    if isinstance(value, TupleWrapper):
        return value.tuple_value
    if isinstance(value, (list, tuple)) and any(isinstance(v, (Expr, TupleWrapper)) for v in value):
        return Tuple([operand(v) for v in value])
    if isinstance(value, (numbers.Number, np.ndarray, list, tuple)):
        return const(value, dtype)
    raise TypeError(f"an argument must be an expression, not {value!r}")


@cache
def signatures() -> dict[str, inspect.Signature]:
    """Every function's parameters, by its path below `relaylang`."""
    found: dict[str, inspect.Signature] = {}
    for text in re.split(r"\n(?=\S)", GIVEN.strip()):
        path, inside = re.sub(r"\s+", " ", text)[:-1].split("(", 1)
        arguments = ast.parse(f"def f({inside}): pass").body[0].args  # type: ignore[attr-defined]
        defaults = [inspect.Parameter.empty] * (len(arguments.args) - len(arguments.defaults))
        defaults += [ast.literal_eval(d) for d in arguments.defaults]
        found[path] = _signature([a.arg for a in arguments.args], defaults)
    for path in PLAIN:
        op = operator_of(path)
        assert op is not None
        names = [*op.args, *op.schema]
        own = [inspect.Parameter.empty if f.required else f.default for f in op.schema.values()]
        found[path] = _signature(names, [*[inspect.Parameter.empty] * len(op.args), *own])
    return found


def _signature(names: Sequence[str], defaults: Sequence[Any]) -> inspect.Signature:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature([inspect.Parameter(n, kind, default=d) for n, d in zip(names, defaults)])


def operator_of(path: str) -> Op | None:
    """The operator that a function calls, by the function's path."""
    name = OTHER_NAME.get(path, path).replace("qnn.op.", "qnn.")
    return OPS.get(re.sub(r"^op\.", "", name))


def spatial(path: str, op: Op, values: dict[str, Any]) -> None:
    """Attributes of windows written out for each axis, in place."""
    count, sides = SPATIAL[path]
    for name in (*_WINDOW, "size", "padding"):
        if isinstance(values.get(name), int) and op.schema[name].kind == "Ints":
            values[name] = (values[name],) * count
    if sides:
        pads = tuple(values["padding"])
        pads = pads * count if len(pads) == 1 and count > 1 else pads
        values["padding"] = pads * 2 if len(pads) == count else pads


def plain(path: str, op: Op, name: str, value: Any) -> Any:
    """What a parameter's value is to an attribute: a constant is its data, numpy's number Python's."""
    field = op.schema.get(RENAMED.get(path, {}).get(name, name))
    if field is None or name in OPERANDS.get(path, ()) or name in BOTH.get(path, ()):
        return value
    if isinstance(value, Constant) and name in (*DYNAMIC.get(path, ()), *CONSTANTS.get(path, ())):
        value = value.data.item() if value.data.size == 1 and field.kind in ("int", "float", "bool") else value.data.tolist()
    return value.item() if isinstance(value, np.generic) else value


def call(path: str, op: Op, given: Mapping[str, Any]) -> Any:
    """The call that a function of this path makes for its parameters' values."""
    values = {name: plain(path, op, name, value) for name, value in given.items()}
    if path in DYNAMIC and any(isinstance(values[name], Expr) for name in DYNAMIC[path][1:]):
        op = OPS[DYNAMIC[path][0]]
        moved = DYNAMIC[path][1:]
        kinds = {"roi": "float32", "size": "int64", "scale_h": "float64", "scale_w": "float64", "scale_d": "float64"}
        extra = [operand(values.pop(name), kinds.get(name)) for name in moved]
    else:
        extra = []
        if path in SPATIAL:
            spatial(path, op, values)
    renamed, free = RENAMED.get(path, {}), OPERANDS.get(path, set())
    attrs = dict(PRESET.get(op.name if extra else path, {}))
    args = []
    for name, value in values.items():
        target = renamed.get(name, name)
        if name in BOTH.get(path, ()):
            args.append(operand(value, "int32" if isinstance(value, (list, tuple)) else None))
            value = args[-1].data.tolist() if isinstance(args[-1], Constant) else None
        if target in op.schema and name not in free:
            field = op.schema[target]
            known = signatures()[path].parameters.get(name)
            if value is not None or field.optional or known is None or known.default is not None:
                attrs[target] = value
        else:
            args.append(operand(value, NUMBERS.get((path, name))))
    if path == "sparse_to_dense" and extra:
        args.insert(3, extra.pop())
    if path == "nn.pad" and extra:
        args.insert(1, extra.pop())
    args = args[:1] + extra + args[1:] if extra and path not in ("one_hot", "full") else args + extra
    try:
        made = Call(op, args, make_attrs(op.attrs, attrs) if op.attrs is not None else None)
    except AttrError as problem:
        raise ValueError(f"{path}: {problem.name} {problem}") from None
    number = RESULTS.get(path, 0)
    number = number(given) if callable(number) else number
    return TupleWrapper(made, number) if number else made


#: What an attribute's value may be, in words.
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
    """What a function says of itself: the call it makes, arguments, attributes, and where its meaning stands."""
    op = operator_of(path)
    if op is None:
        return f"`{path}{signatures()[path]}`: made of other functions."
    renamed, free = RENAMED.get(path, {}), OPERANDS.get(path, set())
    takes, attributes = [], []
    for name, parameter in signatures()[path].parameters.items():
        field = op.schema.get(renamed.get(name, name)) if name not in free else None
        if field is None:
            takes.append(name)
            continue
        given = parameter.default is not inspect.Parameter.empty
        optional = " or None" if field.optional else ""
        attributes.append(
            f"  {name}: {_KINDS[field.kind]}{optional}, {f'default {parameter.default!r}' if given else 'must be given'}"
        )
    lines = [op.doc or f"A call of the operator `{op.name}`.", ""]
    lines += [f"Arguments, which are expressions: {', '.join(takes) or 'none'}.", *attributes]
    if path in DYNAMIC:
        other, *moved = DYNAMIC[path]
        may = " and ".join(moved)
        lines.append(f"Where {may} {'is an expression' if len(moved) == 1 else 'are expressions'}, it is a call of `{other}`.")
    family = inspect.getmodule(op.rel)
    where = (family.__name__ if family is not None else "relaylang.ops").rsplit(".", 1)[1]
    said = [
        " ".join((op.rel.__doc__ or "").split()),
        "Raises ValueError for an attribute's value that does not fit, and TypeError for a parameter that there is not. "
        "Arguments whose types disagree are told by the type checker: error R0301 names the argument and the extent.",
        f"The types are defined in relaylang/ops/{where}.py, the values by the kernel `{op.name}` in "
        "relaylang/interpreter/kernels. Name, parameters and defaults are those of TVM 0.16's tvm.relay.",
    ]
    for text in said:
        lines += ["", textwrap.fill(text, 110)]
    return "\n".join(lines)


def function(path: str) -> Callable[..., Any]:
    """TVM's function of a path, such as "nn.conv2d". Raises `KeyError`."""
    signature = signatures()[path]
    op = operator_of(path)
    if op is None:
        raise KeyError(path)

    def build(*args: Any, **named: Any) -> Any:
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
