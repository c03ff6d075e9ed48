"""Types: as keys, and what they are made of."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.ir import ANY, Extent, FuncType, GlobalTypeVar, TensorType, TupleType, Type, TypeVar
from relaylang.typing.kinds import TypeKind, check_kind


def pair() -> TupleType:
    return TupleType([TensorType((), "int32"), TensorType((2, 3))])


def test_sharing_does_not_change_the_hash() -> None:
    one = pair()
    shared, apart = FuncType([one], one), FuncType([pair()], pair())
    assert shared == apart
    assert hash(shared) == hash(apart)


def test_a_type_that_is_shared_again_and_again_has_a_hash() -> None:
    ty: Type = pair()
    for _ in range(200):
        ty = TupleType([ty, ty])
    assert hash(ty) == hash(ty)


@pytest.mark.parametrize("extent", [np.int32(3), np.int64(3), np.uint8(3), np.prod((3, 1))])
def test_extents_that_are_numpys_are_pythons(extent: Any) -> None:
    own = 3 if extent.dtype == np.int32 else Extent(3, extent.dtype.name)
    assert TensorType((extent, ANY)) == TensorType((own, ANY))
    x = relay.var("x", shape=(extent, extent))
    assert x.type_annotation.shape == (3, 3) and all(isinstance(n, int) for n in x.type_annotation.shape)
    made = relay.reshape(relay.var("x", shape=(9,)), (extent, -1))
    checked = relay.transform.InferType()(relay.IRModule.from_expr(made))["main"].body.checked_type
    assert checked.concrete_shape == (3, 3)


@pytest.mark.parametrize(
    ("name", "full"),
    [
        *(("int", "int32"), ("uint", "uint32"), ("float", "float32"), ("uint1", "bool")),
        *((np.int8, "int8"), (np.dtype("float64"), "float64")),
    ],
)
def test_element_types_have_other_names(name: Any, full: str) -> None:
    x = relay.var("x", shape=(3,))
    assert TensorType((3,), name) == TensorType((3,), full)
    assert relay.const(1, name).data.dtype == np.dtype(full)
    cast = relay.transform.InferType()(relay.IRModule.from_expr(relay.cast(x, name)))["main"].body
    assert cast.attrs.dtype == full and cast.checked_type == TensorType((3,), full)
    if isinstance(name, str):
        text = f'#[version = "0.0.5"]\ndef @main(%x: Tensor[(3), {name}]) {{ cast(%x, dtype="{name}") }}\n'
        main = relay.parse(text)["main"]
        assert main.params[0].type_annotation == TensorType((3,), full) and main.body.attrs.dtype == full


def test_kinds_are_names_and_numbers() -> None:
    n = TypeVar("n", TypeKind.ShapeVar)
    assert n.kind == "ShapeVar" and n.kind == TypeKind.ShapeVar and n.kind != TypeKind.Type
    assert TensorType((n,)) == TensorType((n,))
    assert [check_kind(GlobalTypeVar("g", k)) for k in (TypeKind.Type, "AdtHandle")] == [0, 5]
