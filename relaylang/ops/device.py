"""Operators for devices, memory, calls of compiled code and the virtual machine's instructions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as AnyValue

from relaylang.ir.expr import Constant
from relaylang.ir.types import Dim, FuncType, GlobalTypeVar, TensorType, TupleType, Type, TypeCall
from relaylang.ops.create import ShapeOfAttrs, shape_of
from relaylang.ops.record import AnyAttr, Ints, Op, OpPattern, RelationContext, attrs_class, tensor
from relaylang.ops.relations import identity
from relaylang.ops.shapes import need_scalar
from relaylang.ops.traits import Trait

OPAQUE = OpPattern.OPAQUE
UNIT = TupleType(())
STORAGE = "Storage"


@attrs_class("relay.attrs.OnDeviceAttrs")
class OnDeviceAttrs:
    virtual_device: AnyAttr = None
    constrain_result: bool = False
    constrain_body: bool = True


@attrs_class("relay.attrs.DeviceCopyAttrs")
class DeviceCopyAttrs:
    src_virtual_device: AnyAttr = None
    dst_virtual_device: AnyAttr = None


@attrs_class("relay.attrs.AllocStorageAttrs")
class AllocStorageAttrs:
    dtype: str = "float32"
    virtual_device: AnyAttr = None


@attrs_class("relay.attrs.AllocTensorAttrs")
class AllocTensorAttrs:
    dtype: str = "float32"
    const_shape: AnyAttr = None
    assert_shape: Ints | None = None


@attrs_class("DictAttrs")
class InvokeAttrs:
    pass


@attrs_class("relay.attrs.ReshapeTensorAttrs")
class ReshapeTensorAttrs:
    newshape: Ints


@attrs_class("relay.attrs.CallLoweredAttrs")
class CallLoweredAttrs:
    metadata: AnyAttr = None


#: Functions by the names that `debug` calls them by. The interpreter calls them with the value.
DEBUGGERS: dict[str, Callable[[AnyValue], object]] = {}


@attrs_class("relay.attrs.DebugAttrs")
class DebugAttrs:
    debug_func: AnyAttr = None


def alloc_storage(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes size and alignment scalars of int64, shape a tensor; the result is the module's type `Storage[]`."""
    need_scalar(types, 0, "int64", ctx)
    tensor(types, 1, ctx)
    need_scalar(types, 2, "int64", ctx)
    storage = ctx.type_definition(STORAGE)
    if storage is None:
        ctx.fail(f"the module must define the type {STORAGE}: `type {STORAGE} {{}}`")
    assert storage is not None
    return TypeCall(storage, ())


def alloc_tensor(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes a `Storage[]`, an offset, and shape (rank,). The result has the shape of the constant const_shape, or else
    assert_shape, and the attribute dtype.
    """
    storage, shape = types[0], tensor(types, 2, ctx)
    name = storage.func if isinstance(storage, TypeCall) else storage
    if not (isinstance(name, GlobalTypeVar) and name.name_hint == STORAGE):
        ctx.fail(f"must be of the type {STORAGE}, not `{storage!r}`", 0)
    tensor(types, 1, ctx)
    if attrs.const_shape is None:
        if attrs.assert_shape is None:
            ctx.fail("one of the attributes const_shape and assert_shape must be given")
        return TensorType(attrs.assert_shape, attrs.dtype)
    known = attrs.const_shape.data if isinstance(attrs.const_shape, Constant) else None
    if known is None or known.ndim != 1 or known.dtype.name not in ("int32", "int64"):
        ctx.fail("const_shape must be a constant list of int32 or int64")
    extents: list[Dim] = [int(d) for d in known]  # type: ignore[union-attr]
    rank = shape.shape[0] if shape.shape else 0
    if isinstance(rank, int) and rank != len(extents):
        ctx.fail(f"says {rank} dimensions, but const_shape={extents}", 2)
    return TensorType(extents, attrs.dtype)


def placed(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any type; the result has it. The attributes' devices are devices, not numbers."""
    for name in attrs.schema:
        device = getattr(attrs, name)
        if name.endswith("device") and isinstance(device, (int, float, tuple)):
            ctx.fail(f"{name} must be a device, not {list(device) if isinstance(device, tuple) else device}")
    return types[0]


def nothing(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes anything; the result is `()`."""
    return UNIT


def function_type(types: Sequence[Type], ctx: RelationContext) -> FuncType:
    ty = types[0]
    if not isinstance(ty, FuncType):
        ctx.fail(f"must be a function, not `{ty!r}`", 0)
    assert isinstance(ty, FuncType)
    return ty


def invoke(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes a function, a tuple of its arguments, and a tuple of its results, into which it writes. The result is `()`."""
    function = function_type(types, ctx)
    ctx.unify(1, TupleType(function.arg_types))
    result = function.ret_type
    ctx.unify(2, result if isinstance(result, TupleType) else TupleType((result,)))
    return UNIT


def call_lowered(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes a function and a tuple of its arguments' types; the result is the function's."""
    function = function_type(types, ctx)
    ctx.unify(1, TupleType(function.arg_types))
    return function.ret_type


def reshape_tensor(types: Sequence[Type], attrs: AnyValue, ctx: RelationContext) -> Type:
    """Takes data of any shape, shape a vector; the result has the attribute newshape and the data's element type."""
    return TensorType(attrs.newshape, tensor(types, 0, ctx).dtype)


OPS = (
    Op(
        "on_device",
        ("body",),
        OnDeviceAttrs,
        placed,
        OPAQUE,
        10,
        needs=(),
        doc="Says which device the value is computed on.",
        takes="any",
        traits={Trait.PLACEMENT, Trait.IDENTITY, Trait.BARRIER, Trait.NON_COMPUTATIONAL},
        python=None,
    ),
    Op(
        "device_copy",
        ("data",),
        DeviceCopyAttrs,
        placed,
        OPAQUE,
        10,
        needs=(),
        doc="The value on another device.",
        takes="any",
        traits={Trait.IDENTITY, Trait.BARRIER},
        python="(data, src_device: src_virtual_device, dst_device: dst_virtual_device)",
    ),
    Op(
        "memory.alloc_storage",
        ("size", "shape", "alignment"),
        AllocStorageAttrs,
        alloc_storage,
        OPAQUE,
        10,
        doc="A piece of memory.",
        takes="any any any",
        python=None,
        example="""\
type Storage {}
def @main(%size: int64, %shape: Tensor[(2), int64]) {
  memory.alloc_storage(%size, %shape, 64i64, dtype="float32")
}""",
    ),
    Op(
        "memory.alloc_tensor",
        ("storage", "offset", "shape"),
        AllocTensorAttrs,
        alloc_tensor,
        OPAQUE,
        10,
        doc="A tensor in a piece of memory, with nothing in it yet.",
        takes="any any any",
        python=None,
        example="""\
type Storage {}
def @main(%storage: Storage[], %shape: Tensor[(2), int64]) {
  memory.alloc_tensor(%storage, 0i64, %shape, dtype="float32", assert_shape=[2, 3])
}""",
    ),
    Op(
        "memory.kill",
        ("to_free",),
        None,
        nothing,
        OPAQUE,
        10,
        needs=(),
        doc="Ends the life of a tensor's memory.",
        takes="any",
        traits={Trait.STATEFUL},
        python=None,
    ),
    Op(
        "vm.shape_of",
        ("tensor",),
        ShapeOfAttrs,
        shape_of,
        OPAQUE,
        10,
        doc="The extents of the data.",
        traits={Trait.EXTENTS, Trait.NON_COMPUTATIONAL},
        python="(expr)",
    ),
    Op(
        "vm.reshape_tensor",
        ("data", "shape"),
        ReshapeTensorAttrs,
        reshape_tensor,
        OPAQUE,
        10,
        needs=(0,),
        doc="The same memory in another shape.",
        takes="tensor integer[_]",
        traits={Trait.NON_COMPUTATIONAL},
        python=None,
    ),
    Op(
        "vm.invoke_tvm_op",
        ("op", "ins", "outs"),
        InvokeAttrs,
        invoke,
        OPAQUE,
        10,
        needs=(0,),
        doc="Calls a function that a compiler made, which writes into memory.",
        takes="any any any",
        traits={Trait.STATEFUL},
        python=None,
        example="fn (%x: Tensor[(2, 3), float32], %out: Tensor[(2, 3), float32]) { "
        "vm.invoke_tvm_op(fn (%a: Tensor[(2, 3), float32]) { exp(%a) }, (%x,), (%out,)) }",
    ),
    Op(
        "call_lowered",
        ("func", "call_args"),
        CallLoweredAttrs,
        call_lowered,
        OPAQUE,
        10,
        needs=(0,),
        doc="Calls a function that a compiler made.",
        takes="any any",
        traits={Trait.NON_COMPUTATIONAL},
        python=None,
        example="fn (%x: Tensor[(2, 3), float32]) { call_lowered(fn (%a: Tensor[(2, 3), float32]) { exp(%a) }, (%x,)) }",
    ),
    Op(
        "debug",
        ("program",),
        DebugAttrs,
        identity,
        OPAQUE,
        1,
        needs=(),
        doc="Calls a debugger with the value, and gives it back.",
        takes="any",
        python=None,
    ),
)
