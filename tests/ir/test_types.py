"""Types as keys."""

from __future__ import annotations

from relaylang.ir import FuncType, TensorType, TupleType, Type


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
