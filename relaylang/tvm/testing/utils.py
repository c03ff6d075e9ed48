"""`tvm.testing.utils`: the same names as `tvm.testing`."""

from __future__ import annotations

from relaylang.tvm.testing import IS_IN_CI, __getattr__, assert_allclose, check_numerical_grads


def install_request_hook(depth: int) -> None:
    """Does nothing: in TVM's own builds it lets downloads of tutorials go to a mirror."""


__all__ = ["IS_IN_CI", "__getattr__", "assert_allclose", "check_numerical_grads", "install_request_hook"]
