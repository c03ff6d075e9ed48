"""Kernels as OpenCL C: a driver builds them without warnings, and they give the interpreter's numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from relaylang.backends.cpu import emit
from relaylang.backends.cpu.flatten import Calls
from relaylang.backends.cpu.isa import SCALAR
from relaylang.backends.cpu.kernel import nbytes
from relaylang.backends.cpu.program import Copy, PackIn, Program, Run, Slot, View, walk
from relaylang.backends.vm.sized import sized
from relaylang.interpreter import evaluate
from relaylang.kernels.device import Launch, Module
from relaylang.kernels.evaluate import extent
from relaylang.kernels.nest import Buf
from relaylang.kernels.opencl import OPENCL, program
from relaylang.syntax import parse
from relaylang.typing import check as check_types
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
    """A program's memory, which kernels get copies of. `sizes` are the extents that are known when they run."""

    def __init__(self, queue: Any, found: Program, values: dict[str, np.ndarray], sizes: Mapping[str, int] = {}) -> None:
        self.queue = queue
        self.found = found
        self.values = values
        self.sizes = sizes
        self.slots: dict[int, np.ndarray] = {}

    def of(self, place: Slot | View) -> np.ndarray:
        """The bytes of a slot, or from a view's first element on."""
        slot = place.slot if isinstance(place, View) else place
        if id(slot) not in self.slots:
            held = self.slots[id(slot)] = np.zeros(self.number(slot.bytes), np.uint8)
            if slot.kind in ("input", "param"):
                name = self.found.inputs[slot.number][0] if slot.kind == "input" else self.found.params[slot.number][0]
                value = self.found.constants.get(name) if slot.kind == "param" else self.values[name]
                assert value is not None
                data = np.frombuffer(np.ascontiguousarray(value).tobytes(), np.uint8)
                held[: data.size] = data
        start = self.number(place.start) if isinstance(place, View) else 0
        return self.slots[id(slot)][start * _size(slot.dtype) :]

    def number(self, size: int) -> int:
        """The number of an extent."""
        return extent(size, self.sizes)

    def run(self, built: Any, launches: Sequence[Launch], places: dict[str, Slot | View], work: Sequence[Buf] = ()) -> None:
        """Run launches on buffers by their names."""
        before = {name: self.of(place) for name, place in places.items()}
        before |= {buf.name: np.zeros(self.number(nbytes(buf)), np.uint8) for buf in work}
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        used = {name for launch in launches for name in launch.buffers}
        buffers = {name: cl.Buffer(self.queue.context, flags, hostbuf=data.copy()) for name, data in before.items() if name in used}
        for launch in launches:
            args = [*(buffers[name] for name in launch.buffers), *(np.int64(self.sizes[name]) for name in launch.sizes)]
            # One work item more than there are units.
            cl.Kernel(built, launch.name)(self.queue, (self.number(launch.units) + 1,), (1,), *args)
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
    return outcome(Memory(queue, found, values), built, launches)


def outcome(memory: Memory, built: Any, launches: dict[int, list[Launch]]) -> Iterator[np.ndarray]:
    """The results of a program, from left to right."""
    found = memory.found
    outputs: dict[int, Slot] = {}
    for item in [*found.prepare, *found.run]:
        assert isinstance(item, (Run, PackIn, Copy))
        outputs.update({slot.number: slot for slot in item.outputs if slot.kind == "output"})
        if isinstance(item, Copy):
            source, target = memory.of(item.source), memory.of(item.outputs[0])
            size = memory.number(item.source.size) * _size(item.source.slot.dtype)
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
            memory.run(built, launches[id(kernel)][len(kernel.packs) :], places, [*kernel.work, kernel.fault])
    for n, spec in enumerate(found.outputs):
        dtype = np.dtype(spec.dtype)
        shape = [memory.number(e) for e in spec.shape]
        yield memory.of(outputs[n])[: math.prod(shape) * dtype.itemsize].view(dtype).reshape(shape)


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


#: Programs with open extents, and shapes of their inputs.
OPEN: dict[str, tuple[str, list[list[tuple[int, ...]]]]] = {
    "element-wise": (
        "%x: Tensor[(?, 5), float32], %y: Tensor[(5), float32]) { (exp(add(%x, %y)),) }",
        [[(n, 5), (5,)] for n in (1, 7, 300)],
    ),
    "sum": ("%x: Tensor[(?, ?), float32]) { (sum(%x, axis=[1]),) }", [[(1, 1)], [(6, 33)], [(40, 3)]]),
    "softmax": ("%x: Tensor[(3, ?), float32]) { (nn.softmax(%x),) }", [[(3, 1)], [(3, 17)], [(3, 260)]]),
    "dense": (
        "%x: Tensor[(?, 6), float32], %y: Tensor[(4, 6), float32]) { (nn.dense(%x, %y),) }",
        [[(n, 6), (4, 6)] for n in (1, 9, 65)],
    ),
    "batch_matmul": (
        "%x: Tensor[(2, ?, ?), float32], %y: Tensor[(2, 7, ?), float32]) { (nn.batch_matmul(%x, %y, transpose_b=True),) }",
        [[(2, n, m), (2, 7, m)] for n, m in ((1, 1), (5, 12), (30, 4))],
    ),
    "conv2d": (
        "%x: Tensor[(1, 3, ?, ?), float32], %y: Tensor[(4, 3, 3, 3), float32]) { (nn.conv2d(%x, %y, padding=[1, 1, 1, 1]),) }",
        [[(1, 3, n, m), (4, 3, 3, 3)] for n, m in ((3, 4), (8, 5), (17, 20))],
    ),
    "pool": (
        "%x: Tensor[(1, 3, ?, ?), float32]) { (nn.max_pool2d(%x, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1]),) }",
        [[(1, 3, n, m)] for n, m in ((4, 5), (9, 12), (20, 21))],
    ),
    "transpose": ("%x: Tensor[(?, 4, ?), float32]) { (transpose(%x, axes=[2, 0, 1]),) }", [[(1, 4, 2)], [(5, 4, 9)], [(31, 4, 17)]]),
    "concatenate": (
        "%x: Tensor[(?, 4), float32], %y: Tensor[(?, 4), float32]) { (concatenate((%x, %y)),) }",
        [[(n, 4), (m, 4)] for n, m in ((1, 1), (3, 8), (50, 2))],
    ),
    "chain": (
        "%x: Tensor[(?, 6), float32], %y: Tensor[(4, 6), float32]) { (nn.log_softmax(nn.relu(nn.dense(%x, %y))),) }",
        [[(n, 6), (4, 6)] for n in (1, 10, 33)],
    ),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", OPEN)
def test_open_extents(name: str, queue: Any) -> None:
    text, cases = OPEN[name]
    mod = parse(f'#[version = "0.0.5"]\ndef @main({text}').module
    assert mod is not None and not check_types(mod)
    made = sized(mod, SCALAR, Calls())
    assert made is not None
    module, launches = Module(OPENCL), {}
    for item in walk([*made.program.prepare, *made.program.run]):
        if isinstance(item, Run) and id(item.kernel) not in launches:
            launches[id(item.kernel)] = module.add(item.kernel)
    built = cl.Program(queue.context, WARNINGS + module.text()).build(FLAGS, cache_dir=False)
    assert not built.get_build_info(queue.device, cl.program_build_info.LOG).strip()
    rng = np.random.default_rng(0)
    for shapes in cases:
        values = {row[0]: rng.standard_normal(shape).astype(np.float32) for row, shape in zip(made.program.inputs, shapes)}
        extents = [e for shape in shapes for e in shape]
        sizes = {f"size{n}": extents[int(text[2:-1])] for n, text in enumerate(made.sizes)}  # d[0], d[1] and so on
        (ours,) = outcome(Memory(queue, made.program, values, sizes), built, launches)
        (theirs,) = evaluate(mod, *values.values())
        np.testing.assert_allclose(ours, np.asarray(theirs), rtol=2e-5, atol=2e-6)


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
