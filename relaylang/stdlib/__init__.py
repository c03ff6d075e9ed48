"""TVM's `relay.prelude`: the standard definitions for a module."""

from relaylang.stdlib.interface import Prelude, StaticTensorArrayOps, TensorArrayOps, get_tensor_array_shape
from relaylang.stdlib.library import import_from_std

__all__ = ["Prelude", "StaticTensorArrayOps", "TensorArrayOps", "get_tensor_array_shape", "import_from_std"]
