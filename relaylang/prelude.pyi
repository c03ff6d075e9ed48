"""The names of `relaylang.tvm.prelude`, made by scripts/make_stubs.py."""

# ruff: noqa

from relaylang.tvm.prelude import Prelude as Prelude
from relaylang.tvm.prelude import StaticTensorArrayOps as StaticTensorArrayOps
from relaylang.tvm.prelude import TensorArrayOps as TensorArrayOps
from relaylang.tvm.prelude import get_tensor_array_shape as get_tensor_array_shape
from relaylang.tvm.prelude import import_from_std as import_from_std
from relaylang.tvm.prelude import static_name as static_name
