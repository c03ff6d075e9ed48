"""`tvm.runtime.vm`: constants that come later, what programs say of themselves, arguments that stay, and times."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.tvm import rpc
from relaylang.tvm.driver.tvmc import TVMCPackage
from relaylang.tvm.runtime.ndarray import array, cpu
from relaylang.tvm.runtime.profiler_vm import VirtualMachineProfiler, enabled
from relaylang.tvm.runtime.vm import Executable, VirtualMachine

TEXT = """
def @main(%x: Tensor[(16, 16), float32], %w: Tensor[(16, 16), float32], %c: bool) {
  let %y = nn.dense(%x, %w, units=None);
  if (%c) { add(%y, 1f) } else { %w }
}
"""
X = np.arange(256, dtype="float32").reshape(16, 16) / 64
W = (np.arange(256, dtype="float32").reshape(16, 16) % 7) - 3


def program() -> Executable:
    return relay.vm.compile(relay.parse(TEXT), "llvm", params={"w": W})


def test_constants_that_come_later(tmp_path: Path) -> None:
    exe = program()
    machine = VirtualMachine(exe, cpu())
    before = [machine.invoke("main", X, c).numpy() for c in (True, False)]
    size = len(exe.save()[0].rstrip(b"\0"))  # archives end in blocks of zeros
    exe.move_late_bound_consts(tmp_path / "consts", 256)
    code, lib = exe.save()
    assert len(code.rstrip(b"\0")) < size
    with pytest.raises(RelayError, match="once its constants have values") as failed:
        machine.invoke("main", X, True)
    assert failed.value.diagnostics[0].code == "R0403" and "const_" in failed.value.diagnostics[0].notes[0]
    for loaded in (exe, Executable.load_exec(code, lib)):
        loaded.load_late_bound_consts(tmp_path / "consts")
        again = [VirtualMachine(loaded, cpu()).invoke("main", X, c).numpy() for c in (True, False)]
        assert all(np.array_equal(a, b) for a, b in zip(before, again))


def test_values_of_late_constants_are_checked(tmp_path: Path) -> None:
    exe = program()
    taken = exe.get_late_bound_consts(256)
    assert taken and not exe.get_late_bound_consts(256)
    with pytest.raises(RelayError, match=r"const_.* has no value"):
        exe.load_late_bound_consts_from_map({})
    with pytest.raises(RelayError, match=r"float32\[3\] instead of"):
        exe.load_late_bound_consts_from_map({**taken, next(iter(taken)): array(np.zeros(3, "float32"))})
    with pytest.raises(RelayError):
        exe.load_late_bound_consts(tmp_path / "nowhere")
    exe.load_late_bound_consts_from_map({name: value.numpy() * 0 for name, value in taken.items()})
    assert (VirtualMachine(exe, cpu()).invoke("main", X, True).numpy() == 1).all()
    # What cannot be written stays in the program.
    with pytest.raises(RelayError):
        exe.move_late_bound_consts(tmp_path / "no" / "folder", 1)
    assert (VirtualMachine(exe, cpu()).invoke("main", X, True).numpy() == 1).all()


def test_a_library_is_a_file_for_a_session(tmp_path: Path) -> None:
    exe = program()
    exe.move_late_bound_consts(tmp_path / "consts", 256)
    exe.mod.export_library(tmp_path / "net.so")
    server = rpc.Server("127.0.0.1")
    remote = rpc.connect("localhost", server.port)
    remote.upload(str(tmp_path / "net.so"))
    library = remote.load_module("net.so")
    library["load_late_bound_consts"](tmp_path / "consts")
    out = array(np.zeros_like(W))
    assert Executable(library).globals == ["main"]
    machine = VirtualMachine(library, remote.cpu())
    machine.invoke_with_outputs("main", {"x": X, "c": False}, [out])
    assert out.numpy().tolist() == W.tolist()
    with pytest.raises(RelayError, match="is a program of the VM"):
        TVMCPackage(str(tmp_path / "net.so"))
    server.terminate()
    with pytest.raises(RelayError, match="other machines"):
        rpc.connect("localhost", server.port)


def test_the_passes_of_a_compiler() -> None:
    mod, params = relay.vm.VMCompiler().optimize(relay.parse(TEXT), "llvm", params={"w": W})
    assert [p.name_hint for p in mod["main"].params] == ["x", "c"] and params == {}


def test_what_a_program_says() -> None:
    exe = relay.vm.compile(relay.parse("def @main(%x: int64, %c: bool) { if (%c) { (1e3f64, %x) } else { (2f64, %x) } }"), "llvm")
    assert "VirtualDevice[0]: device type 1" in exe.virtual_devices
    assert exe.constants.startswith("VM Const[0]: NDArray[(),float64,(1,0)]=[") and exe.primitives == "" == "".join(exe.primitive_ops)
    assert '("main", 0)' in exe.stats and "scalar, scalar" in exe.stats and exe.globals == ["main"]
    assert "PackedFunc[0]: k0" in program().primitives


def test_arguments_stay() -> None:
    machine = VirtualMachine(program(), cpu())
    first = machine.invoke("main", X, True).numpy()
    assert np.array_equal(machine.run().numpy(), first)
    machine.set_input("main", x=X, c=True, unused=3)
    out = array(np.zeros((16, 16), "float32"))
    machine.invoke_with_outputs("main", None, [out])
    assert np.array_equal(out.numpy(), first)
    machine.set_one_input("main", "c", False)
    machine.invoke_stateful("main")
    assert np.array_equal(machine.get_outputs()[0].numpy(), W)


def test_times() -> None:
    machine = VirtualMachineProfiler(program(), cpu())
    report = machine.profile(X, True)
    assert enabled() and report.calls and {row["calls"] for row in report.calls} == {1}
    assert sum(row["seconds"] for row in report.calls) <= report.device_metrics["cpu0"]["Duration (us)"] / 1e6
    assert "compiled code" in str(report) and report.configuration["Executor"] == "VM"
    assert report.json().startswith("{") and len(report.csv().splitlines()) == 1 + len(report.calls)
