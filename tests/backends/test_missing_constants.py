"""A constant without a value is refused at every door, with its name: no program runs it as zeros."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from relaylang.backends import compile_module
from relaylang.backends.aot import compile_aot
from relaylang.backends.bare_metal import compile_bare_metal
from relaylang.backends.vm import compile_vm
from relaylang.diagnostics import RelayError
from relaylang.export import FORMATS, export
from relaylang.interpreter import evaluate
from relaylang.ir import IRModule
from relaylang.quantize.quantize import qconfig, quantize
from relaylang.syntax import parse
from relaylang.tvm.build_module import build, create_executor
from relaylang.tvm.relay.backend import Executor, Runtime
from relaylang.tvm.runtime import cpu
from relaylang.tvm.vm import compile as compile_tvm_vm
from relaylang.typing import check

HEAD = '#[version = "0.0.5"]\n'
FLOATS = """def @main(%p: Tensor[(1, 4, 8, 8), float32]) {
  nn.conv2d(%p, meta[relay.Constant][0] /* ty=Tensor[(4, 4, 3, 3), float32] */, padding=[1, 1, 1, 1], channels=4, kernel_size=[3, 3])
}"""
INTEGERS = """def @main(%p: Tensor[(1, 8, 8, 4), int8]) {
  %0 = qnn.conv2d(%p, meta[relay.Constant][0] /* ty=Tensor[(3, 3, 4, 4), int8] */, 0, 0, 0.5f, 0.5f, padding=[1, 1, 1, 1],
                  channels=4, kernel_size=[3, 3], data_layout="NHWC", kernel_layout="HWIO", out_dtype="int32");
  qnn.requantize(%0, 0.25f, 0, 1f, 0, axis=3, out_dtype="int8")
}"""
X, Q = np.ones((1, 4, 8, 8), "float32"), np.ones((1, 8, 8, 4), "int8")
CRT = {"executor": Executor("aot"), "runtime": Runtime("crt")}


def _quantized(m: IRModule, **settings: Any) -> IRModule:
    with qconfig(skip_conv_layers=[], **settings):
        return quantize(m, dataset=[{"p": X}])


DOORS: dict[str, Callable[[IRModule], Any]] = {
    "interpreter": lambda m: evaluate(m, X),
    "cpu": lambda m: compile_module(m, "c -cflags=-O0").run(p=X),
    "vm": lambda m: compile_vm(m),
    "vm, portable": lambda m: compile_vm(m, native=False),
    "aot": compile_aot,
    "bare metal": compile_bare_metal,
    "quantize": _quantized,
    "quantize by divergence": lambda m: _quantized(m, calibrate_mode="kl_divergence", weight_scale="max"),
    "tvm build": lambda m: build(m, "llvm"),
    "tvm build for crt": lambda m: build(m, "c", **CRT),
    "tvm vm": lambda m: compile_tvm_vm(m, "llvm"),
    **{f"export {name}": lambda m, name=name: export(m, name) for name in FORMATS},
    **{
        f"tvm {kind}": lambda m, kind=kind: create_executor(kind, m, cpu(), "llvm").evaluate()(X)
        for kind in ("graph", "vm", "debug", "aot")
    },
}
#: Doors for whole numbers.
INTEGER_DOORS: dict[str, Callable[[IRModule], Any]] = {
    "cpu": lambda m: compile_module(m, "c -cflags=-O0").run(p=Q),
    "ethos-u": lambda m: compile_module(m, "ethos-u"),
    "ethos-u, c": lambda m: compile_module(m, "ethos-u, c"),
    "cmsis-nn, c": lambda m: compile_bare_metal(m, "cmsis-nn, c"),
    "bare metal with ethos-u": lambda m: compile_bare_metal(m, "ethos-u, c"),
}
CASES = [*[(FLOATS, name, door) for name, door in DOORS.items()], *[(INTEGERS, name, door) for name, door in INTEGER_DOORS.items()]]


@pytest.mark.sample(3)
@pytest.mark.parametrize(("text", "name", "door"), CASES, ids=[f"{'float' if t is FLOATS else 'int'}-{n}" for t, n, _ in CASES])
def test_a_constant_without_a_value_is_refused(text: str, name: str, door: Callable[[IRModule], Any]) -> None:
    if "ethos-u" in name:
        pytest.importorskip("ethosu.regor", reason="needs relaylang[ethosu]")
    mod = parse(HEAD + text).module
    check(mod)
    with pytest.raises(RelayError) as refused:
        door(mod)
    said = refused.value.diagnostics[0]
    # A library of the C backend, which the graph executor runs, takes the constant as an input.
    assert said.code == ("R0640" if name in ("cpu", "tvm graph") else "R0403") and "meta[relay.Constant][0]" in said.title
