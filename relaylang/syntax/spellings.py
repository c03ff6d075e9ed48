"""Old spellings of calls, of TVM 0.6 to 0.15: one row each.

A row recognises its calls by one of four traits:

- an operator's name that no longer exists
- the number of arguments
- attributes that today's operator lacks
- missing required attributes

Some calls changed their meaning and kept their text (`nn.batch_matmul`, layouts of transposed convolutions). Their rows
need a text of known age. TVM 0.6 and older wrote `v0.0.4`, and a metadata section names its writer's version.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any as AnyValue

import numpy as np

from relaylang.ir.expr import Call, Constant, Expr, Tuple
from relaylang.ops import OPS
from relaylang.ops.create import InitOpAttrs
from relaylang.ops.image import METHODS
from relaylang.ops.record import make_attrs
from relaylang.syntax.metadata_nodes import MetaNode, device_node

Version = tuple[int, int]
#: The versions of a row for calls as the operator's builder takes them.
_BUILDER = ((0, 0), (0, 0))


@dataclass(frozen=True)
class Operand:
    """An argument of today that was an attribute. `default` is the old attribute's default."""

    name: str
    dtype: str
    default: AnyValue = None

    def expr(self, value: AnyValue) -> Expr:
        """The argument. Raises `ValueError` where the value is no number of the element type, or list of such."""
        if isinstance(value, (tuple, list)):
            return Tuple([self.expr(v) for v in value])
        if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
            raise ValueError("number")
        if self.dtype == "int32" and not (-(2**31) <= value < 2**31 and int(value) == value):
            raise ValueError("int32")
        return Constant(np.array(value, self.dtype))


@dataclass(frozen=True, eq=False)
class Spelling:
    """A call as TVM `first` to `last` wrote it, and its translation to today's call.

    - `args`: the number of arguments, where that identifies the spelling
    - `lacks`: attributes that identify the spelling by their absence
    - `given`: values of attributes that today's operator requires, or for which it has another default
    - `renamed`: today's names of attributes; `words` then gives today's words for some values
    - `gone`: attributes without a meaning where they have the given value (`...`: any)
    - `more`: builds further arguments
    - `makes`: builds all arguments, from the old ones and the attributes `taken`
    """

    name: str
    first: Version
    last: Version
    now: str
    says: str
    args: int | None = None
    operands: tuple[Operand, ...] = ()
    given: Mapping[str, AnyValue] = field(default_factory=dict)
    lacks: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, Mapping[AnyValue, AnyValue] | Callable[[AnyValue], AnyValue]] = field(default_factory=dict)
    gone: Mapping[str, AnyValue] = field(default_factory=dict)
    more: tuple[Callable[[], Expr], ...] = ()
    taken: tuple[str, ...] = ()
    makes: Callable[[Sequence[Expr], dict[str, AnyValue]], tuple[list[Expr], dict[str, AnyValue]]] | None = None

    @property
    def versions(self) -> str:
        """`TVM 0.6 to 0.7`; `Python` for the call of a builder, which no TVM wrote."""
        if (self.first, self.last) == _BUILDER:
            return "Python"
        first, last = (f"{major}.{minor}" for major, minor in (self.first, self.last))
        return f"TVM {first}" if first == last else f"TVM {first} to {last}"

    @property
    def reading(self) -> str:
        """How such a call is read, for messages: `TVM 0.6 wrote it`."""
        return "its builder in Python takes it" if self.versions == "Python" else f"{self.versions} wrote it"

    @cached_property
    def known(self) -> set[str]:
        """The attributes that calls of this spelling may have."""
        today = set(OPS[self.now].schema) - set(self.renamed.values())
        return today | {o.name for o in self.operands} | {*self.renamed, *self.gone, *self.given, *self.taken}

    def fits(self, count: int, values: Mapping[str, AnyValue], version: Version | None) -> bool:
        """Whether a call with so many arguments and these attributes is of this spelling, in a text of a version."""
        names = values.keys()
        if not names <= self.known or (self.args is not None and count != self.args):
            return False
        if any(value is not ... and values.get(name, value) != value for name, value in self.gone.items()):
            return False
        if self.name not in OPS or self.args is not None:
            return True
        schema = OPS[self.name].schema
        if any(n not in schema for n in names):
            return True
        if any(isinstance(words, Mapping) and _word(words, values.get(name)) for name, words in self.words.items()):
            return True
        if version is not None and self.first <= version <= self.last:
            return True
        return any(n not in names and (n in self.lacks or schema[n].required) for n in self.given if n in schema)

    def partly(self, count: int, values: Mapping[str, AnyValue]) -> bool:
        """Whether a call that is of no spelling has an attribute that only this one knows."""
        old = {o.name for o in self.operands} | {*self.renamed, *self.gone, *self.taken}
        return (self.args is None or self.args == count) and not old.isdisjoint(values)

    def read(self, args: Sequence[Expr], values: Mapping[str, AnyValue]) -> tuple[list[Expr], dict[str, AnyValue]]:
        """Today's arguments and attributes.

        Raises `KeyError` with the name of a missing required attribute. Raises `ValueError` with the name of an attribute
        whose value does not fit.
        """
        old = {**{k: v for k, v in self.given.items() if k not in values}, **values}
        for name in self.gone:
            old.pop(name, None)
        makes = self.makes
        if makes is not None:
            return makes(args, old)
        operands = list(args)
        for operand in self.operands:
            value = old.pop(operand.name, operand.default)
            if value is None:
                raise KeyError(operand.name)
            try:
                operands.append(operand.expr(value))
            except ValueError:
                raise ValueError(operand.name) from None
        operands += [build() for build in self.more]
        new = {self.renamed.get(name, name): value for name, value in old.items()}
        for name, words in self.words.items():
            if name in new:
                value = new[name]
                new[name] = words(value) if callable(words) else words[value] if _word(words, value) else value
        return operands, new


def _word(words: Mapping[AnyValue, AnyValue], value: AnyValue) -> bool:
    """Whether a value is one of those that have another word today."""
    return isinstance(value, (str, bool)) and value in words


_ROI = (0.0,) * 4
_SCALE, _ZERO = "float32", "int32"
_CORNERS = {True: "align_corners", False: "asymmetric"}
_SWAPPED = str.maketrans("OIoi", "IOio")
_OUT = "`out_dtype` was float32"


def _layout(value: AnyValue) -> AnyValue:
    """A kernel's layout whose letters O and I stood for each other."""
    return value.translate(_SWAPPED) if isinstance(value, str) else value


def _zeros(*shape: int) -> Expr:
    return Call(OPS["zeros"], [], make_attrs(InitOpAttrs, {"shape": shape, "dtype": "float32"}))


def _no_region() -> Expr:
    return _zeros(4)


def _scatter_sum(args: Sequence[Expr], old: dict[str, AnyValue]) -> tuple[list[Expr], dict[str, AnyValue]]:
    """Sums of updates at their places in a tensor of zeros, which has the updates' element type."""
    updates, indices = args
    shape = old["out_shape"]
    if not isinstance(shape, tuple) or not all(isinstance(n, int) for n in shape):
        raise ValueError("out_shape")
    return [Call(OPS["cast_like"], [_zeros(*shape), updates]), indices, updates], {"mode": "add"}


def _device(old: Mapping[str, AnyValue], name: str) -> MetaNode:
    """The device of an attribute that is a number of DLPack's, as today's metadata section holds it."""
    kind = old[name]
    if not isinstance(kind, int) or isinstance(kind, bool):
        raise ValueError(name)
    return device_node(kind, 0)


def _on_device(args: Sequence[Expr], old: dict[str, AnyValue]) -> tuple[list[Expr], dict[str, AnyValue]]:
    new = {name: value for name, value in old.items() if name not in ("device_type", "is_fixed")}
    fixed = {"constrain_result": True} if old.get("is_fixed", False) else {}
    return list(args), {**new, "virtual_device": _device(old, "device_type"), **fixed}


def _device_copy(args: Sequence[Expr], old: dict[str, AnyValue]) -> tuple[list[Expr], dict[str, AnyValue]]:
    return list(args), {f"{end}_virtual_device": _device(old, f"{end}_dev_type") for end in ("src", "dst")}


def _range(args: Sequence[Expr], old: dict[str, AnyValue]) -> tuple[list[Expr], dict[str, AnyValue]]:
    """The attributes of a range that repeat its arguments."""
    repeated = {name: arg for name, arg in zip(("start", "stop", "step"), args) if old.get(name) is None}
    return list(args), {**old, **repeated}


def _quantised(name: str, count: int, *order: str) -> Spelling:
    operands = tuple(Operand(n, _SCALE if "scale" in n else _ZERO) for n in order)
    fixed = {"out_dtype": "float32"} if name == "qnn.dequantize" else {}
    says = "scales and zero points were attributes"
    return Spelling(name, (0, 6), (0, 6), name, says, args=count, operands=operands, given=fixed)


def _binary(name: str) -> Spelling:
    order = [f"{side}_{what}" for side in ("lhs", "rhs", "output") for what in ("scale", "zero_point")]
    return _quantised(name, 2, *order)


#: All spellings; of several that have one operator's name, the first that fits a call counts.
SPELLINGS: tuple[Spelling, ...] = (
    # resizing
    Spelling(
        "image.resize", (0, 7), (0, 7), "image.resize2d", "another name; methods have other names",
        given={"roi": _ROI, "rounding_method": ""}, words={"method": METHODS},
        renamed={"bicubic_alpha": "cubic_alpha", "bicubic_exclude": "cubic_exclude"},
    ),
    Spelling(
        "image.resize", (0, 6), (0, 6), "image.resize2d", "another name; `align_corners` was the mode, and on where it is not given",
        given={"align_corners": True, "roi": _ROI, "rounding_method": ""},
        renamed={"align_corners": "coordinate_transformation_mode"},
        words={"method": METHODS, "coordinate_transformation_mode": _CORNERS},
    ),
    Spelling(
        "dyn.image.resize", (0, 7), (0, 7), "dyn.image.resize2d", "another name; there was no region",
        args=2, given={"rounding_method": ""}, words={"method": METHODS}, more=(_no_region,),
    ),
    Spelling("dyn.image.resize2d", (0, 8), (0, 8), "dyn.image.resize2d", "there was no region", args=2, more=(_no_region,)),
    Spelling(
        "image.resize3d", (0, 7), (0, 7), "image.resize3d", "`trilinear` is `linear` today",
        given={"roi": (*_ROI, 0.0, 0.0), "rounding_method": ""}, words={"method": METHODS},
    ),
    *(
        Spelling(
            f"image.resize{rank}d", (0, 8), (0, 8), f"image.resize{rank}d", "there was no `roi`",
            given={"roi": (0.0,) * 2 * rank}, lacks=("roi",),
        )
        for rank in (1, 2, 3)
    ),
    # names
    Spelling("contrib.adaptive_avg_pool2d", (0, 6), (0, 6), "nn.adaptive_avg_pool2d", "another name"),
    Spelling("contrib.adaptive_max_pool2d", (0, 6), (0, 6), "nn.adaptive_max_pool2d", "another name"),
    Spelling("contrib.ndarray_size", (0, 6), (0, 6), "ndarray_size", "another name"),
    Spelling("_contrib_reverse_reshape", (0, 6), (0, 6), "contrib_reverse_reshape", "another name", gone={"reverse": True}),
    Spelling("nn.contrib_conv2d_NCHWc_int8", (0, 6), (0, 6), "nn.contrib_conv2d_NCHWc", "another name"),
    Spelling("scatter", (0, 7), (0, 11), "scatter_elements", "another name"),
    Spelling("scatter_add", (0, 7), (0, 11), "scatter_elements", 'another name; `reduction="add"`', given={"reduction": "add"}),
    # attributes that are arguments today
    Spelling(
        "nn.pad", (0, 6), (0, 7), "nn.pad", "`pad_value` was an attribute, 0 where it is not given",
        args=1, operands=(Operand("pad_value", "float32", 0.0),),
    ),
    Spelling("dyn.nn.pad", (0, 7), (0, 7), "dyn.nn.pad", "`pad_value` was an attribute, too", gone={"pad_value": 0.0}),
    Spelling(
        "vision.get_valid_counts", (0, 6), (0, 7), "vision.get_valid_counts",
        "`score_threshold` was an attribute, 0 where it is not given",
        args=1, operands=(Operand("score_threshold", "float32", 0.0),),
    ),
    Spelling(
        "vision.non_max_suppression", (0, 7), (0, 7), "vision.non_max_suppression",
        "`iou_threshold` was an attribute, 0.5 where it is not given",
        args=4, operands=(Operand("iou_threshold", "float32", 0.5),), gone={"max_output_size": ...},
    ),
    Spelling(
        "vision.non_max_suppression", (0, 7), (0, 7), "vision.non_max_suppression",
        "`max_output_size` and `iou_threshold` were attributes",
        args=3, operands=(Operand("max_output_size", "int32", -1), Operand("iou_threshold", "float32", 0.5)),
    ),
    Spelling(
        "scatter_nd", (0, 8), (0, 8), "scatter_nd", "updates were added to zeros of `out_shape`",
        args=2, taken=("out_shape",), makes=_scatter_sum,
    ),
    _quantised("qnn.quantize", 1, "output_scale", "output_zero_point"),
    _quantised("qnn.dequantize", 1, "input_scale", "input_zero_point"),
    _quantised("qnn.requantize", 1, "input_scale", "input_zero_point", "output_scale", "output_zero_point"),
    _quantised("qnn.conv2d", 2, "input_zero_point", "kernel_zero_point", "input_scale", "kernel_scale"),
    _quantised("qnn.dense", 2, "input_zero_point", "kernel_zero_point", "input_scale", "kernel_scale"),
    _quantised("qnn.concatenate", 1, "input_scales", "input_zero_points", "output_scale", "output_zero_point"),
    Spelling(
        "qnn.leaky_relu", (0, 9), (0, 9), "qnn.leaky_relu", "the result had the data's scale and zero point",
        args=3, makes=lambda args, old: ([*args, *args[1:]], old),
    ),
    _binary("qnn.add"),
    _binary("qnn.mul"),
    # attributes that are required today
    Spelling("qnn.dequantize", (0, 7), (0, 13), "qnn.dequantize", _OUT, given={"out_dtype": "float32"}),
    Spelling("qnn.simulated_dequantize", (0, 8), (0, 13), "qnn.simulated_dequantize", _OUT, given={"out_dtype": "float32"}),
    Spelling(
        "strided_slice", (0, 6), (0, 7), "strided_slice", "there were no `axes`, and `strides` could be left out",
        given={"strides": (1,), "axes": None},
    ),
    Spelling("dyn.strided_slice", (0, 7), (0, 7), "dyn.strided_slice", "there were no `axes`", given={"axes": None}),
    Spelling("topk", (0, 6), (0, 6), "topk", "`k` was 1 where it is not given", given={"k": 1}),
    Spelling("nn.dense", (0, 6), (0, 6), "nn.dense", "`units` could be left out", given={"units": None}),
    *(
        Spelling(name, *_BUILDER, name, "`units` are the weight's where they are not given", given={"units": None})
        for name in ("nn.matmul", "nn.bitserial_dense", "qnn.dense", "qnn.contrib_dense_pack")
    ),
    Spelling("transpose", *_BUILDER, "transpose", "`axes` are reversed where they are not given", given={"axes": None}),
    Spelling(
        "arange", *_BUILDER, "arange", "`start`, `stop` and `step` repeat the arguments",
        given={"start": None, "stop": None, "step": None}, makes=_range,
    ),
    Spelling(
        "nn.contrib_conv2d_gemm_weight_transform", (0, 7), (0, 14), "nn.contrib_conv2d_gemm_weight_transform",
        "other names of attributes", renamed={"tile_rows": "tile_N", "tile_cols": "tile_K"},
    ),
    Spelling(
        "on_device", (0, 6), (0, 8), "on_device", "`device_type` was a number", taken=("device_type", "is_fixed"), makes=_on_device,
    ),
    Spelling(
        "device_copy", (0, 6), (0, 8), "device_copy", "devices were numbers",
        taken=("src_dev_type", "dst_dev_type"), makes=_device_copy,
    ),
    # attributes that are no more
    Spelling("reshape", (0, 6), (0, 7), "reshape", "`reverse` was an attribute, and off", gone={"reverse": False}),
    Spelling("reshape", (0, 6), (0, 7), "contrib_reverse_reshape", "`reverse` was an attribute, and on", gone={"reverse": True}),
    Spelling(
        "contrib_reverse_reshape", (0, 7), (0, 7), "contrib_reverse_reshape", "`reverse` was an attribute", gone={"reverse": True}
    ),
    Spelling("dyn.reshape", (0, 7), (0, 7), "dyn.reshape", "`reverse` was an attribute", gone={"reverse": False}),
    # defaults and words that changed their meaning
    Spelling(
        "nn.batch_matmul", (0, 6), (0, 7), "nn.batch_matmul", "the second argument was transposed always", given={"transpose_b": True}
    ),
    *(
        Spelling(
            f"nn.conv{rank}d_transpose", (0, 6 if rank == 2 else 7), (0, 11), f"nn.conv{rank}d_transpose",
            f"`kernel_layout` was {layout} and meant {_layout(layout)}",
            given={"kernel_layout": layout}, words={"kernel_layout": _layout},
        )
        for rank, layout in ((1, "OIW"), (2, "OIHW"), (3, "OIDHW"))
    ),
)  # fmt: skip

#: The spellings by the operator's name.
BY_NAME: dict[str, tuple[Spelling, ...]] = {}
for _row in SPELLINGS:
    BY_NAME[_row.name] = (*BY_NAME.get(_row.name, ()), _row)


class OldOp(Expr):
    """The name of an operator that TVM had once, as the callee of a call that is being read."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


_NAMED = re.compile(r'"tvm_version"\s*:\s*"(\d{1,3})\.(\d{1,3})')
_OLD_HEADER = re.compile(r'\ufeff?(?:\s|//[^\n]*|\#(?!\[)[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)*(?:v|\#\[\s*version\s*=\s*")0\.0\.[0-4]\b')


def has_old_header(text: str) -> bool:
    """Whether a text begins as TVM 0.6 and older wrote it."""
    return "0.0." in text[:100_000] and _OLD_HEADER.match(text) is not None


def version_of(text: str, section: int) -> Version | None:
    """The version of TVM that wrote a text, or the newest possible one. None where the text has no version.

    `section` is where the metadata section begins.
    """
    if has_old_header(text):
        return (0, 6)
    named = _NAMED.search(text, max(section, len(text) - 1000))
    return (int(named[1]), int(named[2])) if named else None


def dated(section: str, version: str) -> str:
    """A metadata section that names another version as its writer."""
    return re.sub(r'("tvm_version"\s*:\s*")[^"\\]*"(?=\s*\}\s*\}\s*\Z)', lambda m: f'{m[1]}{version}"', section)


def spelling_of(name: str, count: int, values: Mapping[str, AnyValue], version: Version | None) -> Spelling | None:
    """The row of the table that a call is of, if any."""
    rows = [row for row in BY_NAME[name] if row.fits(count, values, version)]
    if version is not None:
        rows = [row for row in rows if row.first <= version <= row.last] or rows
    return rows[0] if rows else next((row for row in BY_NAME[name] if row.partly(count, values)), None)
