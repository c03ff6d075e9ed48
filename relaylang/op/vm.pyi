"""The names of `relaylang.tvm.op.vm`, made by scripts/make_stubs.py."""

# ruff: noqa

from relaylang.tvm.op.vm import *
