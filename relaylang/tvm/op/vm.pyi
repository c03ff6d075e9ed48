"""Made by scripts/make_stubs.py from the operators' records and TVM's signatures."""

# ruff: noqa

from relaylang.ir import Call
from relaylang.tvm.op.build import Argument

def shape_of(expr: Argument) -> Call: ...
