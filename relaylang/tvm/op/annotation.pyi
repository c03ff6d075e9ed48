"""Made by scripts/make_stubs.py from the operators' records and TVM's signatures."""

# ruff: noqa

from relaylang.ir import Call
from relaylang.tvm.op.build import Argument

def checkpoint(data: Argument) -> Call: ...
def compiler_begin(data: Argument, compiler: str) -> Call: ...
def compiler_end(data: Argument, compiler: str) -> Call: ...
def on_device(
    body: Argument,
    device: Argument,
    constrain_result: bool = False,
    constrain_body: bool = True,
) -> Call: ...
def stop_fusion(data: Argument) -> Call: ...
