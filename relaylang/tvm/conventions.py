"""The conventions of TVM that nodes, types and passes follow once `relaylang.tvm.install` is imported.

`_table` has them, and `adopt` gives them to the classes, which know nothing of them. Subclasses would not do: a script gets
nodes from the reader, the importers and the passes.

| convention | class |
|---|---|
| `str(x)` is Relay text | expressions, types |
| `shape[0].value` | `TensorType.shape` has numbers with a `value` |
| `const.data.numpy()`, `"float" in const.data.dtype` | `Constant.data` is an array that answers to TVM's names |
| `call.type_args[0].shape` | `Call.type_args` of an operator |
| `f.attrs.Compiler` | `Function.attrs`, `IRModule.attrs` |
| `x.virtual_device_ = tvm.cpu()` | `Var`, `Function` |
| `n + 1`, `n // 2` | named extents |
| `Op.get(name)`, `op.get_attr(key)` | operators |
| `len(value)`, `value[0]` | constructed values |
| `span.source_name` | places |
| `var.vid.name_hint` | variables |
| a pass returns a typed module whose variables and results say their types | passes that a script calls |
| `call.args = values` can be read again, and leaves the node as it is | calls |
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from relaylang.diagnostics.source import Span
from relaylang.interpreter.values import ConstructorValue
from relaylang.ir import ANY, Call, Constant, Expr, Function, GlobalVar, IRModule, TensorType, Var
from relaylang.ir.types import Extent, SymbolicDim
from relaylang.ops import extensions
from relaylang.ops.record import Op
from relaylang.passes.devices.virtual_device import VirtualDevice
from relaylang.passes.manager import Pass
from relaylang.services import service
from relaylang.tvm.arrays import Data
from relaylang.tvm.ir import attributes
from relaylang.tvm.ir.attributes import DictAttrs
from relaylang.tvm.ir.spans import source_name
from relaylang.tvm.op.registering import METHODS
from relaylang.tvm.tir import SIGNS, boxed, compute
from relaylang.tvm.typed_results import with_types


def _slot(cls: type, name: str, shown: Callable[[Any], Any]) -> property:
    """Let a slot hold the value that TVM shows. The first read makes it, so that it keeps its identity."""
    slot = cls.__dict__[name]

    def read(self: Any) -> Any:
        value = slot.__get__(self)
        other = shown(value)
        if other is not value:
            slot.__set__(self, other)
        return other

    return property(read, slot.__set__)


def _array(data: Any) -> Any:
    return data.view(Data) if type(data) is np.ndarray else data


def _shape(shape: Any) -> Any:
    if any([type(d) is int for d in shape]):
        return tuple([boxed(d) for d in shape])
    return shape


def _operator_types() -> property:
    """The types of an operator's arguments, as the checker found them; those that are written beside it say no more."""
    slot = Call.__dict__["type_args"]

    def read(self: Call) -> Any:
        if not isinstance(self.op, Op):
            return slot.__get__(self)
        types = tuple([a.checked_type for a in self.args])
        return () if None in types else types

    return property(read, slot.__set__)


def _arguments() -> property:
    """A call's arguments. A script reads the value that it assigned; the node and its text do not change, as in TVM."""
    slot = Call.__dict__["args"]
    assigned: dict[int, tuple[Call, Any]] = {}

    def read(self: Call) -> Any:
        if assigned and id(self) in assigned and not sys._getframe(1).f_globals["__name__"].startswith("relaylang."):
            return assigned[id(self)][1]
        return slot.__get__(self)

    def write(self: Call, value: Any) -> None:
        try:
            slot.__get__(self)
        except AttributeError:
            slot.__set__(self, value)
        else:
            assigned[id(self)] = self, value

    return property(read, write)


def _dict_attrs(attrs: Any) -> Any:
    return DictAttrs(attrs) if type(attrs) is dict else attrs


def _op_get(op_name: str) -> Op:
    """The operator of a name. Raises `ValueError`."""
    op = extensions.find(op_name)
    if op is None:
        raise ValueError(extensions.unknown(op_name))
    return op


def _arithmetic() -> dict[str, Any]:
    """The methods behind Python's signs between extents."""
    methods: dict[str, Any] = {"__neg__": lambda self: compute("tir.Mul", self, -1)}
    for sign, key in SIGNS.items():
        methods[f"__{sign}__"] = lambda self, other, key=key: compute(key, self, other)
        methods[f"__r{sign}__"] = lambda self, other, key=key: compute(key, other, self)
    return methods


def _shown(self: Expr | IRModule) -> str:
    """Relay text without its first line, the version."""
    text: str = service("text")(self, show_meta_data=False)
    return text.partition("\n")[2] if text.startswith("#[version") else text


def _place_variable(self: Var, device: Any) -> None:
    self.virtual_device = VirtualDevice(device)


def _place_function(self: Function, device: Any) -> None:
    self.attrs = {**self.attrs, "virtual_device": VirtualDevice(device)}


def _table() -> dict[type, dict[str, Any]]:
    """What each class gets, by name."""
    return {
        Expr: {"__str__": _shown, "virtual_device_": None},
        IRModule: {"__str__": _shown},
        GlobalVar: {"__str__": lambda self: f"@{self.name_hint}"},
        Var: {"vid": property(lambda self: self), "virtual_device_": property(lambda self: self.virtual_device, _place_variable)},
        Constant: {"data": _slot(Constant, "data", _array)},
        Call: {"type_args": _operator_types(), "args": _arguments()},
        Function: {
            "attrs": _slot(Function, "attrs", _dict_attrs),
            "virtual_device_": property(lambda self: self.attrs.get("virtual_device"), _place_function),
        },
        TensorType: {"shape": _slot(TensorType, "shape", _shape)},
        Extent: {"value": property(int)},
        SymbolicDim: {"name": property(lambda self: self.name_hint), **_arithmetic()},
        type(ANY): _arithmetic(),
        Span: {"source_name": property(source_name), "same_as": lambda self, other: self is other},
        Op: {
            "get": staticmethod(_op_get),
            "list_op_names": staticmethod(lambda: sorted(extensions.names())),
            "get_attr": attributes.get_attr,
            "has_attr": attributes.has_attr,
            "set_attr": attributes.set_attr,
            "reset_attr": attributes.reset_attr,
            "num_inputs": property(lambda self: -1 if self.variadic else len(self.args)),
            "support_level": property(lambda self: self.level),
            "attrs_type_key": property(lambda self: getattr(self.attrs, "type_key", "")),
            "description": property(lambda self: self.doc),
            **METHODS,
        },
        # A value without fields is a value as any other.
        ConstructorValue: {
            "__len__": lambda self: len(self.fields),
            "__getitem__": lambda self, index: self.fields[index],
            "__bool__": lambda self: True,
        },
        VirtualDevice: {"device_type_int": property(lambda self: self.device_type)},
        Pass: {"__call__": with_types(Pass.__call__)},
    }


def adopt() -> None:
    """Give the conventions to the classes; a second call does nothing."""
    if not isinstance(Constant.__dict__["data"], property):
        for cls, names in _table().items():
            for name, value in names.items():
                setattr(cls, name, value)
