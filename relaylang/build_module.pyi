"""The names of `relaylang.tvm.build_module`, made by scripts/make_stubs.py."""

# ruff: noqa

from relaylang.tvm.build_module import bind as bind
from relaylang.tvm.build_module import bind_params_by_name as bind_params_by_name
from relaylang.tvm.build_module import build as build
from relaylang.tvm.build_module import create_executor as create_executor
