"""Made by scripts/make_stubs.py from the operators' records and TVM's signatures."""

# ruff: noqa

from relaylang.tvm.qnn import op as op
from relaylang.tvm.qnn import transform as transform
from relaylang.tvm.qnn.op import *
