"""Calls of PyTorch's operators on tensors: their conversions come from the tables of `families/`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from relaylang.frontends.common import Builder, Table, Unsupported
from relaylang.frontends.common.complexes import Complex
from relaylang.frontends.torch.families.complex_numbers import chosen
from relaylang.frontends.torch.memory import KEPT, OTHERS, PERHAPS, SWAPS
from relaylang.frontends.torch.node import Node
from relaylang.frontends.torch.pt2 import Node as Call
from relaylang.frontends.torch.torchscript.node import ScriptNode
from relaylang.frontends.torch.torchscript.quantized import SCALED, quantised, scaled
from relaylang.frontends.torch.torchscript.schemas import Schema, overload_of
from relaylang.frontends.torch.torchscript.values import Tensor, Undefined
from relaylang.frontends.torch.torchscript.views import note_views
from relaylang.ir import Expr

#: Operators that give their operand itself where there is nothing to do.
_SAME = frozenset("contiguous to dropout feature_dropout detach alias reshape type_as expand_as flatten squeeze view".split())
#: Operators whose result may be a view.
VIEWS = KEPT | PERHAPS | SWAPS | OTHERS


def plain(value: Any) -> Any:
    """An argument as conversions take it: expressions in the place of tensors."""
    if isinstance(value, Tensor):
        return value.read()
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


def wrapped(value: Any) -> Any:
    """A result as the program holds it: tensors in the place of expressions."""
    if isinstance(value, (Expr, Complex)):
        return Tensor(value)
    if isinstance(value, (list, tuple)):
        return [wrapped(v) for v in value]
    return value


def _note_views(result: Any, target: Tensor) -> None:
    """Note that the tensors of a result see the memory of an operand."""
    for part in result if isinstance(result, list) else [result]:
        if isinstance(part, Tensor) and part is not target:
            part.view_of(target, None, None)


def convert(b: Builder, rules: Table, name: str, args: Sequence[Any], named: dict[str, Any]) -> Any:
    """The result of `aten.name`. Raises `Unsupported`."""
    if name in SCALED:
        return scaled(b, name, args, named)
    rule, inplace = rules.find(f"aten.{name}"), False
    if rule is None and name.endswith("_") and not name.endswith("__"):
        rule, inplace, name = rules.find(f"aten.{name[:-1]}"), True, name[:-1]
    elif name.endswith("_") and not name.startswith("__"):
        inplace = True
    if rule is None:
        raise Unsupported
    other = name.rstrip("_") if name.endswith("_") else f"{name}_"
    overload = overload_of(name, args, named) or overload_of(other, args, named)
    if overload is None:
        raise Unsupported("its arguments fit none of the overloads that are known")
    schema, bound = overload
    special = quantised(b, rule.convert, schema, bound)
    converted = special if special is not None else _apply(b, rule.convert, schema, bound)
    target = next(iter(bound.values()), None)
    if special is not None and schema.operator in VIEWS and isinstance(target, Tensor):
        _note_views(special, target)
    if inplace and isinstance(target, Tensor) and isinstance(converted, Tensor):
        target.write(_like(b, converted.value, target))
        return target
    return converted


#: Arguments of the operators of other libraries by position; those of `aten` are in schemas.txt.
_REGIONS = "input rois spatial_scale pooled_height pooled_width"
_ARGUMENTS = {
    "torchvision.deform_conv2d": "input weight offset mask bias stride_h stride_w pad_h pad_w dilation_h dilation_w groups"
    " offset_groups use_mask",
    "torchvision.nms": "dets scores iou_threshold",
    "torchvision.ps_roi_align": f"{_REGIONS} sampling_ratio",
    "torchvision.ps_roi_pool": _REGIONS,
    "torchvision.roi_align": f"{_REGIONS} sampling_ratio aligned",
    "torchvision.roi_pool": _REGIONS,
}


def called(b: Builder, rules: Table, name: str, args: Sequence[Any], named: dict[str, Any]) -> Any:
    """The result of an operator of another library. Raises `Unsupported`."""
    rule = rules.find(name)
    if rule is None or name not in _ARGUMENTS:
        raise Unsupported
    bound = {**dict(zip(_ARGUMENTS[name].split(), args)), **named}
    return wrapped(rule.convert(ScriptNode(b, Call(f"{name}.default", {n: plain(v) for n, v in bound.items()}, ()))))


def _like(b: Builder, value: Any, target: Tensor) -> Any:
    """A value with the element type of the tensor that takes it."""
    have = target.value
    if isinstance(value, Complex) or isinstance(have, Complex):
        if target.base is not None or not isinstance(value, Complex) or not isinstance(have, Complex):
            raise Unsupported("it writes complex numbers into a view, or beside real ones")
        return value.each(lambda part: b.cast(part, b.dtype(have.real)))
    return b.cast(value, b.dtype(target.value))


def _apply(b: Builder, rule: Callable[[Node], Any], schema: Schema, bound: dict[str, Any]) -> Any:
    args = {n: plain(v) for n, v in bound.items()}
    if any(isinstance(v, Tensor) and not v.number for v in bound.values()):
        args |= {n: b.need(v.read(), "a number").item() for n, v in bound.items() if isinstance(v, Tensor) and v.number}
    results = wrapped(_results(b, rule, schema, args))
    key = next(iter(bound), "")
    first = bound.get(key)
    if not isinstance(first, Tensor):
        return results
    if schema.operator in _SAME and isinstance(results, Tensor) and results.value is first.value:
        return first
    others = [v for v in bound.values() if isinstance(v, Tensor)]
    for tensor in results if isinstance(results, list) else [results]:
        if isinstance(tensor, Tensor):
            tensor.ordered = True if all(t.ordered for t in others) else None
    if schema.operator in VIEWS:
        note_views(b, schema.operator, first, results, args, lambda x: _results(b, rule, schema, {**args, key: x}))
    return results


def _results(b: Builder, rule: Callable[[Node], Any], schema: Schema, args: dict[str, Any]) -> Any:
    """The results of a conversion: one, or a list."""
    result = chosen(rule, ScriptNode(b, Call(f"aten.{schema.operator}.{schema.overload}", args, ())), schema.operator)
    if schema.results == "1":
        return result[0] if isinstance(result, (list, tuple)) else result
    if schema.results.isdigit() and isinstance(result, (list, tuple)):
        absent = range(len(result), int(schema.results))
        return [*result, *(Undefined(f"the result {i} of aten.{schema.operator} is not computed") for i in absent)]
    return result


__all__ = ["called", "convert", "plain", "wrapped"]
