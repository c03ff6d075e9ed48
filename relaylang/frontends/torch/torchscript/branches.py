"""Conditionals on values that are not known: what both branches change becomes the fields of one `if`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Unsupported
from relaylang.frontends.torch.torchscript.plain_values import known, number
from relaylang.frontends.torch.torchscript.values import MISSING, Quant, Record, Tensor, Undefined
from relaylang.ir import Expr

#: Builds a merged value from the fields of the `if`.
Make = Callable[[list[Expr]], Any]


@dataclass
class Journal:
    """What a branch has changed outside of its own names: fields of records and tensors, with their values before."""

    fields: dict[tuple[int, str], tuple[Record, str, Any]] = field(default_factory=dict)
    tensors: dict[int, tuple[Tensor, Expr, int]] = field(default_factory=dict)
    #: Lists that the branch itself makes; it may change them.
    own: dict[int, Any] = field(default_factory=dict)

    def keep(self, values: Any) -> Any:
        """Note a list that the branch makes."""
        self.own[id(values)] = values
        return values

    def note_field(self, record: Record, name: str) -> None:
        """Note a field that is about to change."""
        self.fields.setdefault((id(record), name), (record, name, record.fields.get(name, MISSING)))

    def note_tensor(self, tensor: Tensor) -> None:
        """Note a tensor that is about to be written, and its bases."""
        at: Tensor | None = tensor
        while at is not None:
            self.tensors.setdefault(id(at), (at, at.value, at.version))
            at = at.base

    def undo(self) -> Effects:
        """Put the values before back; returns the new ones."""
        fields = {key: (r, n, r.fields[n]) for key, (r, n, _) in self.fields.items()}
        tensors = {key: (t, t.value) for key, (t, _, _) in self.tensors.items()}
        for record, name, old in self.fields.values():
            record.fields[name] = old
        for tensor, value, _ in self.tensors.values():
            tensor.value = value
            tensor.version += 1
        return Effects(fields, tensors)


@dataclass
class Effects:
    """The new values of fields and tensors behind a branch."""

    fields: dict[tuple[int, str], tuple[Record, str, Any]]
    tensors: dict[int, tuple[Tensor, Expr]]


def same(one: Any, other: Any) -> bool:
    """Whether two plain values are equal; expressions and tensors are never compared."""
    if one is other:
        return True
    plain = (int, float, str)
    return isinstance(one, plain) and isinstance(other, plain) and type(one) is type(other) and one == other


def same_scale(one: Quant | None, other: Quant | None) -> bool:
    """Whether two tensors have the same scale and zero point, or none."""
    if one is None or other is None:
        return one is other
    return np.array_equal(one.scale, other.scale) and np.array_equal(one.zero, other.zero)


def merged(b: Builder, one: Any, other: Any, pairs: list[tuple[Expr, Expr]]) -> Make:
    """How to build the value behind the `if` from the values of its branches; adds the fields that it needs."""
    if same(one, other):
        return lambda fields: one
    if one is MISSING or other is MISSING:
        return lambda fields: MISSING
    if isinstance(one, Undefined) or isinstance(other, Undefined):
        left = other if isinstance(one, Undefined) else one
        return lambda fields: left
    if isinstance(one, Tensor) and isinstance(other, Tensor) and same_scale(one.quant, other.quant):
        quant, at = one.quant, len(pairs)
        pairs.append((one.read(), other.read()))
        return lambda fields: Tensor(fields[at], quant)
    numbers = (int, float, Expr)
    if isinstance(one, numbers) and isinstance(other, numbers):
        values = number(b, one), number(b, other)
        if b.dtype(values[0]) == b.dtype(values[1]):
            at = len(pairs)
            pairs.append(values)
            return lambda fields: known(b, fields[at])
    if type(one) is type(other) and isinstance(one, (list, tuple)) and len(one) == len(other):
        kind, parts = type(one), [merged(b, x, y, pairs) for x, y in zip(one, other)]
        return lambda fields: kind([part(fields) for part in parts])
    return lambda fields: Undefined("its value depends on data in a way that Relay's types cannot express")


def join(b: Builder, cond: Expr, names: tuple[dict[str, Any], dict[str, Any]], effects: tuple[Effects, Effects]) -> dict[str, Any]:
    """The names behind an `if`, from those behind each branch; fields of records and tensors get their merged values."""
    pairs: list[tuple[Expr, Expr]] = []
    makes = {name: merged(b, value, names[1][name], pairs) for name, value in names[0].items() if name in names[1]}
    fields = []
    for key in {**effects[0].fields, **effects[1].fields}:
        record, name, _ = effects[0].fields.get(key) or effects[1].fields[key]
        values = [e.fields[key][2] if key in e.fields else record.fields[name] for e in effects]
        fields.append((record, name, merged(b, values[0], values[1], pairs)))
    tensors = []
    for at in {**effects[0].tensors, **effects[1].tensors}:
        tensor = (effects[0].tensors.get(at) or effects[1].tensors[at])[0]
        if tensor.base is not None:
            raise Unsupported("it writes into a part of a tensor under a condition")
        tensors.append((tensor, len(pairs)))
        pairs.append(tuple([e.tensors[at][1] if at in e.tensors else tensor.value for e in effects]))  # type: ignore[arg-type]
    merged_fields = _if(b, cond, pairs)
    for record, name, make in fields:
        record.fields[name] = make(merged_fields)
    for tensor, place in tensors:
        tensor.value = merged_fields[place]
        tensor.version += 1
    return {name: make(merged_fields) for name, make in makes.items()}


def _if(b: Builder, cond: Expr, pairs: list[tuple[Expr, Expr]]) -> list[Expr]:
    """The fields of one `if`."""
    if not pairs:
        return []
    if len(pairs) == 1:
        one, other = (b.value(x) for x in pairs[0])
        if one is not None and other is not None and one.dtype == bool and one.shape == other.shape == () and one and not other:
            return [cond]
        return [b.if_(cond, *pairs[0])]
    branch = b.if_(cond, b.tuple([p[0] for p in pairs]), b.tuple([p[1] for p in pairs]))
    return [b.field(branch, i) for i in range(len(pairs))]


__all__ = ["Effects", "Journal", "join", "same"]
