"""The conventions of TVM that nodes, types and passes follow once `relaylang.tvm.install` is imported.

Each is given to a class from here; the classes know nothing of it.

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
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError
from relaylang.diagnostics.source import Span
from relaylang.interpreter.values import ConstructorValue
from relaylang.ir import (
    ANY,
    Call,
    Constant,
    Expr,
    Function,
    FuncType,
    GlobalVar,
    IRModule,
    Let,
    TensorType,
    Type,
    Var,
    is_incomplete,
    post_order,
)
from relaylang.ir.typed import forget_stale_types
from relaylang.ir.typed import typed as with_type
from relaylang.ir.types import Extent, SymbolicDim, type_text
from relaylang.ir.visit import rewrite
from relaylang.ops.extensions import find, unknown
from relaylang.ops.extensions import names as operator_names
from relaylang.ops.record import Op
from relaylang.passes.devices.virtual_device import VirtualDevice
from relaylang.passes.manager import Pass
from relaylang.services import service
from relaylang.tvm.arrays import Data
from relaylang.tvm.ir import attributes, diagnostics
from relaylang.tvm.ir.attributes import DictAttrs
from relaylang.tvm.ir.spans import source_name
from relaylang.tvm.op.registering import METHODS
from relaylang.tvm.tir import SIGNS, boxed, compute
from relaylang.typing import infer


def _slot(cls: type, name: str, shown: Callable[[Any], Any]) -> None:
    """Let a slot hold the value that TVM shows. The first read makes it, so that it keeps its identity."""
    slot = cls.__dict__[name]

    def read(self: Any) -> Any:
        value = slot.__get__(self)
        other = shown(value)
        if other is not value:
            slot.__set__(self, other)
        return other

    setattr(cls, name, property(read, slot.__set__))


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
    found = find(op_name)
    if found is None:
        raise ValueError(unknown(op_name))
    return found


def _give(cls: type, **names: Any) -> None:
    """Set attributes of a class."""
    for name, value in names.items():
        setattr(cls, name, value)


def _arithmetic() -> dict[str, Any]:
    """The methods behind Python's signs between extents."""
    made: dict[str, Any] = {"__neg__": lambda self: compute("tir.Mul", self, -1)}
    for sign, key in SIGNS.items():
        made[f"__{sign}__"] = lambda self, other, key=key: compute(key, self, other)
        made[f"__r{sign}__"] = lambda self, other, key=key: compute(key, other, self)
    return made


_OUTER = threading.local()


def _call(original: Callable[[Pass, IRModule], IRModule]) -> Callable[[Pass, IRModule], IRModule]:
    """A pass of ours that a script calls finds the types of its result. A script's own passes, and what a pass calls, do not."""

    def call(self: Pass, mod: IRModule) -> IRModule:
        if getattr(_OUTER, "busy", False):
            return original(self, mod)
        _OUTER.busy = True
        try:
            made = original(self, mod)
            if self.info.name == "ToANormalForm":
                return _without_types_of_lets(made, mod)
            return typed(made) if self.info.builtin or self.info.sequence else made
        except RelayError as wrong:
            diagnostics.show(wrong)
            raise
        finally:
            _OUTER.busy = False

    return call


def typed(mod: IRModule) -> IRModule:
    """A well-typed module with types at its nodes and its variables, and results of functions. Another module stays as it is."""
    if any(d.severity == "error" for d in infer(mod)):
        return mod
    new = {gv: annotated(f) for gv, f in mod.functions.items()}
    if all(new[gv] is f for gv, f in mod.functions.items()):
        return mod
    made = mod.with_functions(new)
    made.library = mod.library
    infer(made)
    return made


def annotated(func: Function) -> Function:
    """A function whose parameters, let variables and results say their types, where these are known."""
    lacking = [v for v in _variables(func) if _lacks(v.type_annotation, v)]
    variables = {v: with_type(Var(v.name_hint, v.checked_type, v.span, v.virtual_device), v.checked_type) for v in lacking}

    def say(old: Expr, new: Expr) -> Expr:
        match new:
            case Var():
                return variables.get(new, new)
            case Let() if new.variable in variables:
                return Let(variables[new.variable], new.value, new.body, new.span)
            case Function() if new.body is not None:
                lacks = _lacks(new.ret_type, old)
                if not lacks and variables.keys().isdisjoint(new.params):
                    return new
                ty = old.checked_type
                result = ty.ret_type if lacks and isinstance(ty, FuncType) else new.ret_type
                params = [variables.get(p, p) for p in new.params]
                return with_type(Function(params, new.body, result, new.type_params, new.attrs, new.span), ty)
        return new

    made = rewrite(func, say)
    assert isinstance(made, Function)
    return made if made is func else forget_stale_types(made)  # type: ignore[return-value]


def _variables(func: Function) -> Iterator[Var]:
    """The parameters and the let variables of a function, and of those in it."""
    for node in post_order(func):
        if isinstance(node, Function):
            yield from node.params
        elif isinstance(node, Let):
            yield node.variable


def _lacks(annotation: Type | None, node: Expr) -> bool:
    """Whether a known type is not written."""
    return (annotation is None or is_incomplete(annotation)) and node.checked_type is not None and not is_incomplete(node.checked_type)


def _without_types_of_lets(new: IRModule, old: IRModule) -> IRModule:
    """A module whose let variables that another one lacks have no types, as TVM's ToANormalForm leaves them."""
    kept = {v for f in old.functions.values() for v in _variables(f)}

    def bare(func: Function) -> Function:
        lets = [node.variable for node in post_order(func) if isinstance(node, Let) and node.variable not in kept]
        variables = {v: Var(v.name_hint, None, v.span, v.virtual_device) for v in lets}

        def untyped(_: Expr, node: Expr) -> Expr:
            if isinstance(node, Let) and node.variable in variables:
                return Let(variables[node.variable], node.value, node.body, node.span)
            return variables.get(node, node) if isinstance(node, Var) else node

        made = rewrite(func, untyped)
        assert isinstance(made, Function)
        return made

    return new.with_functions({gv: bare(f) for gv, f in new.functions.items()})


def _shown(self: Expr | IRModule) -> str:
    """Relay text without its first line, the version."""
    text: str = service("text")(self, show_meta_data=False)
    return text.partition("\n")[2] if text.startswith("#[version") else text


def _place_variable(self: Var, device: Any) -> None:
    self.virtual_device = VirtualDevice(device)


def _place_function(self: Function, device: Any) -> None:
    self.attrs = {**self.attrs, "virtual_device": VirtualDevice(device)}


def adopt() -> None:
    """Give the conventions to the classes; a second call does nothing."""
    if isinstance(Constant.__dict__["data"], property):
        return
    for shown in (Expr, IRModule):
        _give(shown, __str__=_shown)
    _give(Type, __str__=type_text)
    _give(Call, type_args=_operator_types(), args=_arguments())
    _give(GlobalVar, __str__=lambda self: f"@{self.name_hint}")
    _slot(Constant, "data", _array)
    _slot(TensorType, "shape", _shape)
    _slot(Function, "attrs", _dict_attrs)
    _give(Extent, value=property(int))
    _give(Span, source_name=property(source_name), same_as=lambda self, other: self is other)
    _give(Expr, virtual_device_=None)
    _give(SymbolicDim, name=property(lambda self: self.name_hint), **_arithmetic())
    _give(type(ANY), **_arithmetic())
    _give(
        Op,
        get=staticmethod(_op_get),
        list_op_names=staticmethod(lambda: sorted(operator_names())),
        get_attr=attributes.get_attr,
        has_attr=attributes.has_attr,
        set_attr=attributes.set_attr,
        reset_attr=attributes.reset_attr,
        num_inputs=property(lambda self: -1 if self.variadic else len(self.args)),
        support_level=property(lambda self: self.level),
        attrs_type_key=property(lambda self: getattr(self.attrs, "type_key", "")),
        description=property(lambda self: self.doc),
        **METHODS,
    )
    # A value without fields is a value as any other.
    _give(
        ConstructorValue,
        __len__=lambda self: len(self.fields),
        __getitem__=lambda self, index: self.fields[index],
        __bool__=lambda self: True,
    )
    _give(Var, vid=property(lambda self: self), virtual_device_=property(lambda self: self.virtual_device, _place_variable))
    _give(Function, virtual_device_=property(lambda self: self.attrs.get("virtual_device"), _place_function))
    _give(VirtualDevice, device_type_int=property(lambda self: self.device_type))
    _give(Pass, __call__=_call(Pass.__call__))
