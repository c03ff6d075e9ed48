"""`tvm.testing.utils`: the same names as `tvm.testing`."""

from __future__ import annotations

from relaylang.tvm.testing import IS_IN_CI, __getattr__, assert_allclose, check_numerical_grads

__all__ = ["IS_IN_CI", "__getattr__", "assert_allclose", "check_numerical_grads"]
