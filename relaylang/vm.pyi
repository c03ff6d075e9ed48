"""The names of `relaylang.tvm.vm`, made by scripts/make_stubs.py."""

# ruff: noqa

from relaylang.tvm.vm import Executable as Executable
from relaylang.tvm.vm import VMCompiler as VMCompiler
from relaylang.tvm.vm import VirtualMachine as VirtualMachine
from relaylang.tvm.vm import compile as compile
