"""The names of `relaylang.tvm.op.random`, made by scripts/make_stubs.py."""

# ruff: noqa

from relaylang.tvm.op.random import *
