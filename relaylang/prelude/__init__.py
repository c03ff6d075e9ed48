"""TVM's `relay.prelude`: the standard definitions for a module."""

from relaylang.prelude.interface import Prelude, StaticTensorArrayOps, TensorArrayOps, get_tensor_array_shape
from relaylang.prelude.library import import_from_std

__all__ = ["Prelude", "StaticTensorArrayOps", "TensorArrayOps", "get_tensor_array_shape", "import_from_std"]
