"""Kernels as OpenCL C: a driver builds them without warnings, and they give the interpreter's numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from relaylang.backends.cpu import emit
from relaylang.backends.cpu.kernel import nbytes
from relaylang.backends.cpu.program import Copy, PackIn, Program, Run, Slot, View
from relaylang.kernels.device import Launch
from relaylang.kernels.nest import Buf
from relaylang.kernels.opencl import OPENCL, program
from tests.backends.cpu.test_ops import USED, same
from tests.backends.cpu.test_ops import program as case_program
from tests.kernels.devices import FIRST, GROUPS, expected, kernels, lowered
from tests.shared import few

try:
    import pyopencl as cl
except ImportError:
    cl = None
#: Clang's warnings, for drivers that are made of it.
WARNINGS = '#pragma clang diagnostic warning "-Wall"\n#pragma clang diagnostic warning "-Wextra"\n'
FLAGS = ["-cl-std=CL1.2", "-Werror", "-cl-fp32-correctly-rounded-divide-sqrt"]


@pytest.fixture(scope="module")
def queue() -> Any:
    pytest.importorskip("pyopencl", reason="pyopencl is not installed")
    try:
        devices = [d for p in cl.get_platforms() for d in p.get_devices() if d.double_fp_config]
    except cl.LogicError:
        devices = []
    if not devices:
        pytest.skip("there is no OpenCL device with 64-bit floats")
    return cl.CommandQueue(cl.Context(devices[:1]))


class Memory:
    """A program's memory, which kernels get copies of."""

    def __init__(self, queue: Any, found: Program, values: dict[str, np.ndarray]) -> None:
        self.queue = queue
        self.found = found
        self.values = values
        self.slots: dict[int, np.ndarray] = {}

    def of(self, place: Slot | View) -> np.ndarray:
        """The bytes of a slot, or from a view's first element on."""
        slot = place.slot if isinstance(place, View) else place
        if id(slot) not in self.slots:
            held = self.slots[id(slot)] = np.zeros(slot.bytes, np.uint8)
            if slot.kind in ("input", "param"):
                name = self.found.inputs[slot.number][0] if slot.kind == "input" else self.found.params[slot.number][0]
                value = self.found.constants.get(name) if slot.kind == "param" else self.values[name]
                assert value is not None
                data = np.frombuffer(np.ascontiguousarray(value).tobytes(), np.uint8)
                held[: data.size] = data
        start = place.start if isinstance(place, View) else 0
        return self.slots[id(slot)][start * _size(slot.dtype) :]

    def run(self, built: Any, launches: Sequence[Launch], places: dict[str, Slot | View], work: Sequence[Buf] = ()) -> None:
        """Run launches on buffers by their names."""
        before = {name: self.of(place) for name, place in places.items()}
        before |= {buf.name: np.zeros(nbytes(buf), np.uint8) for buf in work}
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        used = {name for launch in launches for name in launch.buffers}
        buffers = {name: cl.Buffer(self.queue.context, flags, hostbuf=data.copy()) for name, data in before.items() if name in used}
        for launch in launches:
            assert not launch.sizes
            # One work item more than there are units.
            cl.Kernel(built, launch.name)(self.queue, (launch.units + 1,), (1,), *(buffers[name] for name in launch.buffers))
        for name in buffers.keys() & places.keys():
            after = np.empty_like(before[name])
            cl.enqueue_copy(self.queue, after, buffers[name])
            changed = after != before[name]
            # Results may lie between each other.
            before[name][changed] = after[changed]


def _size(dtype: str) -> int:
    return nbytes(Buf("one", (64,), dtype)) // 64


def results(queue: Any, built: Any, number: int, launches: dict[int, list[Launch]]) -> Iterator[np.ndarray]:
    """The results of a case, from left to right."""
    found, values = lowered(number)
    memory = Memory(queue, found, values)
    outputs: dict[int, Slot] = {}
    for item in [*found.prepare, *found.run]:
        assert isinstance(item, (Run, PackIn, Copy))
        outputs.update({slot.number: slot for slot in item.outputs if slot.kind == "output"})
        if isinstance(item, Copy):
            source, target = memory.of(item.source), memory.of(item.outputs[0])
            size = item.source.size * _size(item.source.slot.dtype)
            target[:size] = source[:size]
        elif isinstance(item, PackIn):
            names = [buf.name for buf in item.pack.sources]
            number_of = next(n for n, pack in enumerate(item.kernel.packs) if pack is item.pack)
            places: dict[str, Slot | View] = {**dict(zip(names, item.inputs)), item.pack.target.name: item.outputs[0]}
            memory.run(built, launches[id(item.kernel)][number_of : number_of + 1], places)
        else:
            kernel = item.kernel
            bufs = [*kernel.params, *(pack.target for pack in kernel.packs), *kernel.outs]
            places = dict(zip([buf.name for buf in bufs], [*item.inputs, *item.packs, *item.results]))
            memory.run(built, launches[id(kernel)][len(kernel.packs) :], places, kernel.work)
    for n, spec in enumerate(found.outputs):
        dtype = np.dtype(spec.dtype)
        yield memory.of(outputs[n])[: math.prod(spec.shape) * dtype.itemsize].view(dtype).reshape(spec.shape)


def check(number: int, ours: Sequence[np.ndarray]) -> None:
    stack, theirs = [expected(number)], []
    while stack:
        part = stack.pop()
        if isinstance(part, (tuple, list)):
            stack += reversed(part)
        else:
            theirs.append(part)
    same(USED[number][0], tuple(ours), tuple(theirs))


@pytest.mark.parametrize("group", few(range(len(GROUPS)), 0))
def test_kernels_give_the_interpreters_numbers(group: int, queue: Any) -> None:
    text, launches = kernels(GROUPS[group], OPENCL)
    built = cl.Program(queue.context, WARNINGS + text).build(FLAGS, cache_dir=False)
    assert not built.get_build_info(queue.device, cl.program_build_info.LOG).strip()
    wrong = []
    for number in GROUPS[group]:
        try:
            check(number, list(results(queue, built, number, launches)))
        except AssertionError as e:
            wrong.append(f"{number} {USED[number][0]}: {e}")
    assert not wrong, "\n".join(wrong)


def test_a_kernel_has_its_text_and_its_launches() -> None:
    found, _ = lowered(FIRST["nn.softmax"])
    (run,) = [item for item in found.run if isinstance(item, Run)]
    text, launches = program(run.kernel)
    assert len(launches) == len(run.kernel.stages)
    assert all(f"__kernel void {launch.name}(" in text for launch in launches)
    assert launches[0].buffers[0] == "arg0"
    assert "out0" in launches[-1].buffers


@pytest.mark.parametrize("step", ["opencl", "cuda"])
def test_emit_writes_the_kernels(step: str) -> None:
    mod, _ = case_program([(FIRST["nn.dense"], USED[FIRST["nn.dense"]])])
    text = emit(mod, step)
    assert "left out" not in text
    assert "// nn.dense" in text
    assert {"opencl": "__kernel void", "cuda": "__global__ void"}[step] in text
