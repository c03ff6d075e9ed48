"""The names of `relaylang.tvm.qnn.op`, made by scripts/make_stubs.py."""

# ruff: noqa

from relaylang.tvm.qnn.op import *
