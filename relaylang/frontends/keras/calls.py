"""The calls of layers in a functional model, in the forms of Keras 2 and Keras 3."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from relaylang.frontends.common.files import damaged
from relaylang.frontends.keras.spec import Spec

#: Arguments are nested at most this deep.
_DEEPEST = 64
#: Keras 2's name in the place of a layer for an argument that is no tensor.
_CONSTANT = "_CONSTANT_VALUE"


@dataclass(frozen=True)
class Ref:
    """A tensor: a result of a call of a layer."""

    layer: str
    call: int
    result: int
    shape: tuple[Any, ...] | None = None
    dtype: str = ""


@dataclass
class Call:
    """A call of a layer; `args` and `kwargs` hold `Ref` in the places of tensors."""

    args: list[Any]
    kwargs: dict[str, Any]

    def refs(self) -> Iterator[Ref]:
        """All tensors of the arguments."""
        yield from found([self.args, self.kwargs])


def found(value: Any) -> Iterator[Ref]:
    """The tensors in nested arguments, in their order."""
    stack = [value]
    while stack:
        part = stack.pop()
        if isinstance(part, Ref):
            yield part
        elif isinstance(part, (list, tuple)):
            stack += reversed(part)
        elif isinstance(part, dict):
            stack += reversed(list(part.values()))


def is_ref(value: Any) -> bool:
    """Whether a value of JSON names a result: `["dense", 0, 0]`, with more in Keras 2."""
    return (
        isinstance(value, (list, tuple))
        and len(value) >= 3
        and isinstance(value[0], str)
        and all(isinstance(v, int) and not isinstance(v, bool) for v in value[1:3])
    )


def calls_of(spec: Spec) -> list[Call]:
    """The calls of a layer in its model. Raises `RelayError` (R0802)."""
    try:
        return [_call(entry, spec) for entry in spec.inbound]
    except (KeyError, TypeError, ValueError, IndexError, OverflowError):
        raise damaged(spec.file, f"the calls of the layer {spec.name[:60]!r} cannot be read") from None


def _call(entry: Any, spec: Spec) -> Call:
    if isinstance(entry, Mapping) and "args" in entry:
        args, named = entry["args"], entry.get("kwargs") or {}
        if not isinstance(args, list) or not isinstance(named, Mapping):
            raise ValueError("no arguments")
        return Call([_decoded(a, spec, 0) for a in args], {str(k): _decoded(v, spec, 0) for k, v in named.items()})
    if isinstance(entry, Mapping):  # A dictionary of tensors.
        return Call([{str(k): _old(v, spec) for k, v in entry.items()}], {})
    if is_ref(entry) or (entry and entry[0] == _CONSTANT):
        entry = [entry]
    kwargs: dict[str, Any] = {}
    tensors = []
    for ref in entry:
        tensors.append(_old(ref, spec))
        if len(ref) > 3 and isinstance(ref[3], Mapping):
            kwargs.update({str(k): _inside(v, 0) for k, v in ref[3].items()})
    first = tensors[0] if len(tensors) == 1 else tensors
    return Call([first] if tensors else [], kwargs)


def _old(ref: Any, spec: Spec) -> Any:
    """A tensor or a constant of Keras 2."""
    if isinstance(ref, list) and len(ref) >= 3 and ref[0] == _CONSTANT:
        return ref[2]
    if not is_ref(ref):
        if isinstance(ref, list) and ref and all(map(is_ref, ref)):
            return [_old(r, spec) for r in ref]
        raise ValueError(ref)
    return Ref(ref[0], int(ref[1]), int(ref[2]))


def _inside(value: Any, depth: int) -> Any:
    """Another argument of Keras 2: lists such as `["dense", 0, 0]` are tensors."""
    if depth > _DEEPEST:
        raise ValueError("too deep")
    if is_ref(value) and len(value) == 3:
        return Ref(value[0], int(value[1]), int(value[2])) if value[0] != _CONSTANT else value[2]
    if isinstance(value, list):
        if len(value) == 3 and value[0] == _CONSTANT:
            return value[2]
        return [_inside(v, depth + 1) for v in value]
    if isinstance(value, Mapping):
        if value.get("class_name") == "__ellipsis__":
            return Ellipsis
        if "start" in value and "stop" in value and "step" in value:
            return slice(*[_inside(value[k], depth + 1) for k in ("start", "stop", "step")])
        return {str(k): _inside(v, depth + 1) for k, v in value.items()}
    return value


def _reference(config: Mapping[str, Any]) -> Ref:
    """The result of a layer's call that an argument is."""
    layer, call, result = config["keras_history"]
    if not isinstance(layer, str):
        raise ValueError(layer)
    shape, dtype = config.get("shape"), config.get("dtype")
    extents = tuple(shape) if isinstance(shape, list) else None
    return Ref(layer, int(call), int(result), extents, dtype if isinstance(dtype, str) else "")


def _decoded(value: Any, spec: Spec, depth: int) -> Any:
    """An argument of Keras 3."""
    if depth > _DEEPEST:
        raise ValueError("too deep")
    if isinstance(value, list):
        return [_decoded(v, spec, depth + 1) for v in value]
    if not isinstance(value, Mapping):
        return value
    kind, config = value.get("class_name"), value.get("config")
    if kind == "__keras_tensor__" and isinstance(config, Mapping):
        return _reference(config)
    if kind == "__slice__" and isinstance(config, Mapping):
        return slice(*[_decoded(config.get(k), spec, depth + 1) for k in ("start", "stop", "step")])
    if kind == "__tuple__":
        items = value.get("items", config.get("items") if isinstance(config, Mapping) else config)
        return [_decoded(v, spec, depth + 1) for v in items]
    if kind in ("__numpy__", "__tensor__") and isinstance(config, Mapping):
        return np.array(config["value"], dtype=config.get("dtype"))
    if kind == "__ellipsis__":
        return Ellipsis
    if isinstance(kind, str) and isinstance(config, Mapping) and kind.startswith("DType"):
        return config.get("name")
    return {str(k): _decoded(v, spec, depth + 1) for k, v in value.items()}


def outputs_of(value: Any, file: str) -> Any:
    """The tensors that `input_layers` or `output_layers` names, in nested lists or dictionaries."""

    def read(part: Any, depth: int) -> Any:
        if depth > _DEEPEST:
            raise damaged(file, "its inputs or outputs are nested too deep")
        if is_ref(part):
            return Ref(part[0], int(part[1]), int(part[2]))
        if isinstance(part, list):
            return [read(p, depth + 1) for p in part]
        if isinstance(part, Mapping):
            return {str(k): read(part[k], depth + 1) for k in sorted(part, key=str)}
        raise damaged(file, f"{repr(part)[:60]} names no input or output")

    return read(value, 0)


__all__ = ["Call", "Ref", "calls_of", "found", "is_ref", "outputs_of"]
