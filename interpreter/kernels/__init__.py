"""The operators in numpy: `KERNELS[name](attrs, *inputs)`; a file per family, as in `relaylang.ops`."""

from relaylang.interpreter.kernels import (
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
    nn_sparse,
    nn_bitserial,
    nn_contrib,
    nn_norm,
    nn_space,
    qnn,
    algorithm,
    image,
    vision,
    random,
    scatter,
    dyn,
    annotation,
    device,
)

#: Operators without a meaning as a function of values, and why.
NO_VALUE = {
    "call_lowered": "calls a compiled function, which the program does not hold",
    "vm.invoke_tvm_op": "calls a compiled function that writes into memory",
    "memory.alloc_storage": "allocates memory, which is no value",
    "memory.alloc_tensor": "makes an empty tensor for vm.invoke_tvm_op",
    "nn.contrib_conv2d_winograd_nnpack_weight_transform": "the result has a form that is private to the library NNPACK",
}

#: name -> kernel, of every family
KERNELS: dict[str, Kernel] = {name: kernel for family in FAMILIES for name, kernel in family.KERNELS.items()}

__all__ = ["FAMILIES", "KERNELS", "NO_VALUE", "Kernel", "KernelError"]
