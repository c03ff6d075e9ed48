"""TVM's `relay.prelude`: the standard definitions for a module. See `relaylang.std.prelude`."""

from relaylang.std.prelude import Prelude, StaticTensorArrayOps, TensorArrayOps, get_tensor_array_shape

__all__ = ["Prelude", "StaticTensorArrayOps", "TensorArrayOps", "get_tensor_array_shape"]
