"""The names of `relaylang.tvm.op.nn`, made by scripts/make_stubs.py."""

# ruff: noqa

from relaylang.tvm.op.nn import *
