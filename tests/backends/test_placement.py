"""Programs that name devices: CPUs are taken, others are refused, by the VM and by the CPU backend."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from relaylang.backends import compile_module
from relaylang.backends.vm import compile_vm
from relaylang.diagnostics import RelayError
from relaylang.ir import Expr, Function, If, IRModule, RefCreate, RefRead, TensorType, Tuple, TupleGetItem, Var, const
from relaylang.ops.build import op_call
from relaylang.passes.devices.plan_devices import PlanDevices
from relaylang.tvm.op.composed import device_copy, on_device
from relaylang.typing import check

DATA = np.arange(6, dtype="float32").reshape(2, 3)
BODIES: dict[str, Callable[[Expr, str], Expr]] = {
    "a marked value": lambda x, device: op_call("add", [on_device(op_call("add", [x, x]), device), x]),
    "a copy": lambda x, device: op_call("negative", [device_copy(x, "cpu", device)]),
    "a branch": lambda x, device: If(const(True), on_device(x, device), x),
    "a reference": lambda x, device: RefRead(on_device(RefCreate(x), device)),
    "a tuple": lambda x, device: TupleGetItem(on_device(Tuple([x, x]), device), 1),
}


def module(name: str, device: str) -> IRModule:
    x = Var("x", TensorType((2, 3), "float32"))
    mod = IRModule.from_expr(Function([x], BODIES[name](x, device)))
    check(mod)
    return mod


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", BODIES)
def test_the_vm_takes_cpus(name: str) -> None:
    mod = module(name, "cpu")
    planned = PlanDevices(["llvm"])(mod)
    check(planned)
    wanted = {"a marked value": 3 * DATA, "a copy": -DATA}.get(name, DATA)
    for made in (mod, planned):
        assert np.array_equal(compile_vm(made).run(DATA), wanted)


@pytest.mark.parametrize("name", BODIES)
def test_the_vm_refuses_others(name: str) -> None:
    with pytest.raises(RelayError, match=r"cuda.*, and compiled code runs on the CPU") as failed:
        compile_vm(module(name, "cuda"))
    assert failed.value.diagnostics[0].code == "R0608"


@pytest.mark.parametrize("name", ["a marked value", "a copy"])
def test_the_cpu_backend_does_so_too(name: str) -> None:
    assert compile_module(module(name, "cpu"), "c").run(DATA).shape == (2, 3)
    with pytest.raises(RelayError, match=r"cuda.*, and compiled code runs on the CPU"):
        compile_module(module(name, "cuda"), "c")
