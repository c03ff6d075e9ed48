"""The names of `relaylang.stdlib`, made by scripts/make_stubs.py."""

# ruff: noqa

from relaylang.stdlib import Prelude as Prelude
from relaylang.stdlib import StaticTensorArrayOps as StaticTensorArrayOps
from relaylang.stdlib import TensorArrayOps as TensorArrayOps
from relaylang.stdlib import get_tensor_array_shape as get_tensor_array_shape
from relaylang.stdlib import import_from_std as import_from_std
