"""The operators: `OPS` by name, put together from the families' tuples."""

from __future__ import annotations

import copyreg
from collections.abc import Collection

from relaylang.ops import (
    algorithm,
    annotation,
    create,
    device,
    dyn,
    image,
    indexing,
    join,
    nn_bitserial,
    nn_contrib,
    nn_conv,
    nn_dense,
    nn_norm,
    nn_pool,
    nn_space,
    nn_sparse,
    qnn,
    random,
    reduce,
    scatter,
    tensor,
    transform,
    vision,
)
from relaylang.ops.record import Op, OpPattern, make_attrs
from relaylang.ops.traits import Fact, Trait

#: The operators of each family. A family is a file of this folder; its kernels and its lowering have the same name
#: elsewhere.
FAMILIES: dict[str, tuple[Op, ...]] = {
    "tensor": tensor.OPS,
    "transform": transform.OPS,
    "create": create.OPS,
    "join": join.OPS,
    "indexing": indexing.OPS,
    "reduce": reduce.OPS,
    "nn_conv": nn_conv.OPS,
    "nn_pool": nn_pool.OPS,
    "nn_dense": nn_dense.OPS,
    "nn_sparse": nn_sparse.OPS,
    "nn_bitserial": nn_bitserial.OPS,
    "nn_contrib": nn_contrib.OPS,
    "nn_norm": nn_norm.OPS,
    "nn_space": nn_space.OPS,
    "qnn": qnn.OPS,
    "algorithm": algorithm.OPS,
    "image": image.OPS,
    "vision": vision.OPS,
    "dyn": dyn.OPS,
    "random": random.OPS,
    "scatter": scatter.OPS,
    "annotation": annotation.OPS,
    "device": device.OPS,
}

OPS: dict[str, Op] = {op.name: op for family in FAMILIES.values() for op in family}


def get(name: str) -> Op:
    """The operator of a name. Raises `KeyError`."""
    return OPS[name]


copyreg.pickle(Op, lambda op: (get, (op.name,)))


def having(*traits: Fact, without: Collection[Fact] = ()) -> tuple[str, ...]:
    """The names of the operators that have all of some traits, and none of others."""
    wanted, unwanted = frozenset(traits), frozenset(without)
    return tuple([op.name for op in OPS.values() if wanted <= op.traits and not unwanted & op.traits])


#: The operators that expressions write with a symbol.
SYMBOLS: dict[str, str] = {op.symbol: op.name for op in OPS.values() if op.symbol}


def forms(form: Fact, *traits: Fact) -> tuple[str, ...]:
    """The names of one kind of forms (`Trait.QUANTISED`, ...) of the operators that have all of some traits."""
    originals = frozenset(having(*traits))
    return tuple([op.name for op in OPS.values() if form in op.traits and op.of in originals])


__all__ = ["FAMILIES", "OPS", "SYMBOLS", "Op", "OpPattern", "Trait", "forms", "get", "having", "make_attrs"]
