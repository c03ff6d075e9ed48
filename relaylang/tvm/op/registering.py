"""Operators that a script registers step by step: `relay.op.register(name)`, `relay.op.get(name).add_type_rel(...)`.

Each step puts another record in the place of the one before. `register_compute` gives it a kernel, as a text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from relaylang.diagnostics import RelayError, error
from relaylang.ir import Type
from relaylang.ops import OPS
from relaylang.ops.extensions import EXTENSIONS, Extension, find
from relaylang.ops.extensions import register as register_record
from relaylang.ops.record import Op, OpPattern, Relation
from relaylang.ops.traits import Trait
from relaylang.tvm.ir.attributes import DictAttrs

#: TVM's relations, each with one of our operators that has it.
_RELATIONS = {"Identity": "nn.relu", "Broadcast": "add", "BroadcastComp": "less"}


def _open(types: Sequence[Type], attrs: Any, ctx: Any) -> Type:
    """The result's type is not known."""
    ctx.fail("has no type relation yet: add_type_rel gives it one")
    raise AssertionError


def register(op_name: str | Op | Extension, describe: str = "", **parts: Any) -> Op:
    """Add an operator of a name, described by `describe`; or a record, as `relaylang.register_op` does.

    Raises `RelayError` (R0219) for a name that is taken.
    """
    if not isinstance(op_name, str):
        return register_record(op_name, **parts)
    if find(op_name) is not None:
        raise RelayError(error("R0219", f"the operator {op_name} is registered already"))
    return register_record(Op(op_name, (), None, _open, doc=describe))


def _changed(op: Op, **changes: Any) -> None:
    if op.name not in EXTENSIONS:
        raise RelayError(error("R0219", f"{op.name} is an operator of the language, which stays as it is"))
    extension = EXTENSIONS[op.name]
    if extension.kernel is not None and changes.keys() & {"args", "rel"}:
        raise RelayError(error("R0219", f"{op.name} has a kernel already: register_compute comes after add_argument and add_type_rel"))
    names = ("args", "attrs", "rel", "pattern", "level", "doc", "traits")
    fields = {name: getattr(OPS[op.name], name) for name in names}
    register_record(replace(extension, op=Op(op.name, **{**fields, **changes})))


def add_argument(op: Op, name: str, type_info: str, description: str) -> None:
    """Add an argument."""
    _changed(op, args=(*OPS[op.name].args, name))


def add_type_rel(op: Op, rel_name: str, type_rel_func: Callable[[list[Type], Any], Type | None] | None = None) -> None:
    """Give an operator a type relation: TVM's of this name, or a function of the arguments' types and the attributes.

    The function returns the result's type. Raises `ValueError` for a name that is not known.
    """
    if type_rel_func is None:
        if rel_name not in _RELATIONS:
            raise ValueError(f"there is no type relation {rel_name}: {', '.join(_RELATIONS)} are there, or give a function")
        _changed(op, rel=OPS[_RELATIONS[rel_name]].rel)
        return
    function = type_rel_func

    def rel(types: Sequence[Type], attrs: Any, ctx: Any) -> Type | None:
        """The result has the type that a script's function gives."""
        return function(list(types), DictAttrs() if attrs is None else attrs)

    relation: Relation = rel
    _changed(op, rel=relation)


def register_pattern(op_name: str, pattern: int, level: int = 10) -> None:
    """Say how an added operator can be fused."""
    _changed(OPS[op_name], pattern=OpPattern(pattern))


def register_stateful(op_name: str, stateful: bool, level: int = 10) -> None:
    """Say whether calls of an added operator have an effect beside their value."""
    traits = OPS[op_name].traits - {Trait.STATEFUL}
    _changed(OPS[op_name], traits=traits | {Trait.STATEFUL} if stateful else traits)


def register_compute(op_name: str, compute: Any = None, level: int = 10) -> Any:
    """Give an added operator its kernel: a text in the language of kernels, or the path of one (docs/kernels.md).

    Without `compute` this is a function of the kernel. Raises `RelayError`: R0219 for a function of TE or TIR, which nothing
    here compiles, and R0644 for a wrong text.
    """

    def add(kernel: Any) -> Any:
        op = find(op_name)
        if op is None or op_name not in EXTENSIONS:
            why = "is no operator" if op is None else "is an operator of the language, which has its kernel"
            raise RelayError(error("R0219", f"{op_name} {why}", notes=["`relay.op.register` adds an operator"]))
        if not isinstance(kernel, (str, Path)):
            args = "".join(f"  in {name}: T[S...]\n" for name in op.args)
            reads = " + ".join(f"{name}[i]" for name in op.args) or "0"
            form = f"operator {op_name}\n  type T: float\n{args}  out y: T[S...]\n  for i in 0 .. S\n    y[i] = {reads}"
            said = f"the kernel of {op_name} is a function of TE or TIR; here a kernel is a text in the language of docs/kernels.md"
            raise RelayError(error("R0219", said, notes=["register_compute takes a text of this form:", *form.split("\n")]))
        register_record(Extension(op, kernel, EXTENSIONS[op_name].lower, EXTENSIONS[op_name].export))
        return kernel

    return add if compute is None else add(compute)


def register_schedule(op_name: str, level: int = 10) -> None:
    """Say that an operator has TVM's default schedule. It has no effect: kernels have those of the CPU backend.

    Raises `RelayError` (R0219) for a name that is not known.
    """
    if find(op_name) is None and op_name not in OPS:
        raise RelayError(error("R0219", f"there is no operator {op_name} that could have a schedule"))


#: TVM's default schedules by the kind of operator: all of them are the backend's here.
register_injective_schedule = register_broadcast_schedule = register_reduce_schedule = register_schedule


#: The methods of operators that scripts register. The number of inputs follows from the arguments.
METHODS: dict[str, Callable[..., None]] = {
    "add_argument": add_argument,
    "add_type_rel": add_type_rel,
    "set_support_level": lambda op, level: _changed(op, level=level),
    "set_num_inputs": lambda op, n: None,
    "set_attrs_type_key": lambda op, key: None,
}

__all__ = [
    "METHODS",
    "register",
    "register_compute",
    "register_broadcast_schedule",
    "register_injective_schedule",
    "register_pattern",
    "register_reduce_schedule",
    "register_schedule",
    "register_stateful",
]
