"""What each operator computes, in numpy: `KERNELS[name](attrs, *inputs)`; a file per family, as in `relaylang.ops`."""

from relaylang.interpreter.kernels import (
    algorithm,
    annotation,
    create,
    dyn,
    indexing,
    join,
    nn_conv,
    nn_dense,
    nn_norm,
    nn_pool,
    qnn,
    reduce,
    scatter,
    tensor,
    transform,
)
from relaylang.interpreter.kernels.common import Kernel, KernelError

FAMILIES = (
    tensor,
    transform,
    create,
    join,
    indexing,
    reduce,
    nn_conv,
    nn_pool,
    nn_dense,
    nn_norm,
    qnn,
    algorithm,
    scatter,
    dyn,
    annotation,
)

#: name -> kernel, of every family
KERNELS: dict[str, Kernel] = {name: kernel for family in FAMILIES for name, kernel in family.KERNELS.items()}

__all__ = ["FAMILIES", "KERNELS", "Kernel", "KernelError"]
