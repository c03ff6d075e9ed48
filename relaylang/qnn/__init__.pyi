"""The names of `relaylang.tvm.qnn`, made by scripts/make_stubs.py."""

# ruff: noqa

from relaylang.tvm.qnn import *
