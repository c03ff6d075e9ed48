"""Attributes: of functions as TVM's `DictAttrs`, of operators as `op.get_attr` and `register_op_attr` know them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from relaylang.ops.extensions import find
from relaylang.ops.record import Attributes, Op
from relaylang.ops.traits import Trait
from relaylang.tvm.op.attributes import register_op_attr as register_known
from relaylang.tvm.tir import boxed


class DictAttrs(dict[str, Any]):
    """A function's attributes: `f.attrs["Compiler"]` and `f.attrs.Compiler`. Numbers have a `value`."""

    __slots__ = ()

    def __getitem__(self, key: str) -> Any:
        return boxed(super().__getitem__(key))

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(f"there is no attribute {name}", name=name, obj=self)

    def __iter__(self) -> Iterator[str]:
        return super().__iter__()

    def get(self, key: str, default: Any = None) -> Any:
        """The value of an attribute, or `default`."""
        return self[key] if key in self else default

    def get_str(self, key: str) -> Any:
        """An attribute's value; a text, in most uses."""
        return self[key]

    def get_int(self, key: str) -> int:
        """An attribute that is a number."""
        return int(self[key])


#: Attributes of operators that no pass here looks at: operator -> key -> (level, value).
_OTHER: dict[str, dict[str, tuple[int, Any]]] = {}

#: Attributes that an operator's record gives.
_OF_RECORDS = {
    "TOpPattern": lambda op: int(op.pattern),
    "TOpIsStateful": lambda op: op.stateful,
    "TNonComputational": lambda op: Trait.NON_COMPUTATIONAL in op.traits if hasattr(Trait, "NON_COMPUTATIONAL") else None,
}


def register_op_attr(op_name: str, attr_key: str, value: Any = None, level: int = 10) -> Any:
    """Set an attribute of an operator; without `value` a decorator.

    What passes here look at reaches them: see `relaylang.register_op_attr`. Any other key is kept for `op.get_attr`. Of
    two registrations, the one of the higher level counts. Raises `RelayError` for an unknown operator.
    """

    def add(attribute: Any) -> Any:
        kept = _OTHER.setdefault(op_name, {})
        if attr_key in kept and kept[attr_key][0] == level and find(op_name) is not None and not callable(attribute):
            raise ValueError(f"{attr_key} of {op_name} is registered already with level {level}")
        if attr_key not in kept or kept[attr_key][0] <= level:
            kept[attr_key] = (level, attribute)
        if is_known(attr_key):
            register_known(op_name, attr_key, attribute, level)
        return attribute

    return add(value) if value is not None else add


_KNOWN = (
    "FTVMAlterOpLayout",
    "FTVMConvertOpLayout",
    "FInferCorrectLayout",
    "FTVMFakeQuantizationToInteger",
    "FTVMOptionalFakeQuantizationToInteger",
)


def is_known(attr_key: str) -> bool:
    """Whether passes here look at an attribute."""
    return attr_key.startswith("target.") or attr_key in _KNOWN or attr_key.endswith("Legalize")


def get_attr(op: Op, attr_name: str) -> Any:
    """An operator's attribute: one that was registered, or one of its record. None where there is none."""
    kept = _OTHER.get(op.name, {}).get(attr_name)
    if kept is not None:
        return kept[1]
    known = _OF_RECORDS.get(attr_name)
    return None if known is None else known(op)


def has_attr(op: Op, attr_name: str) -> bool:
    """Whether `get_attr` finds something."""
    return get_attr(op, attr_name) is not None


def set_attr(op: Op, attr_name: str, value: Any, plevel: int = 10) -> None:
    """Set an attribute of an operator; of a lower level than the present one, it has no effect."""
    register_op_attr(op.name, attr_name, value, plevel)


def reset_attr(op: Op, attr_name: str) -> None:
    """Forget a registered attribute."""
    _OTHER.get(op.name, {}).pop(attr_name, None)


class _Attrs(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, (Attributes, DictAttrs))


class Attrs(metaclass=_Attrs):
    """The class of all attributes, for `isinstance`."""


__all__ = ["Attrs", "DictAttrs", "get_attr", "has_attr", "register_op_attr", "reset_attr", "set_attr"]
