"""`tvm.nd`: see `relaylang.tvm.runtime.ndarray`."""

from relaylang.tvm.runtime.ndarray import *  # noqa: F403
