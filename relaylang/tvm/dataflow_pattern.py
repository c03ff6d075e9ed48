"""Dataflow patterns under the name that they have in TVM: `from relaylang.tvm.dataflow_pattern import is_op, wildcard`."""

from relaylang.patterns import *  # noqa: F403
from relaylang.patterns import __all__ as __all__
