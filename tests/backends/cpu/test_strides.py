"""Kernels on tensors whose elements lie apart: results are right, and nothing between the elements changes."""

from __future__ import annotations

import ctypes
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relaylang.backends.cpu.cc import Compiler, Unit
from relaylang.backends.cpu.emit import Emitter
from relaylang.backends.cpu.isa import GENERIC
from relaylang.backends.cpu.kernel import Kernel, nbytes
from relaylang.backends.cpu.lower import ANCHORS, RECIPES
from relaylang.backends.cpu.lower.storage import through_float32
from relaylang.backends.cpu.lowering import lower_function
from relaylang.backends.cpu.program import PackIn, Run, Slot
from relaylang.diagnostics import RelayError
from relaylang.interpreter import KERNELS
from relaylang.ir import Call, Function, IRModule, Tuple, Var, post_order
from relaylang.kernels.index import is_contiguous, reshaped
from relaylang.kernels.nest import Buf
from relaylang.ops import get, make_attrs
from relaylang.passes.decompose import decompose
from relaylang.rules.decompositions.layouts import LAST
from relaylang.typing import check
from tests.backends.cpu.test_ops import USED, expression, same
from tests.shared import few

#: What lies between the elements.
_OTHER = 0x5A
SHOWN = '__attribute__((visibility("default")))'


@pytest.mark.parametrize(
    ("shape", "strides", "new", "wanted"),
    [
        ((2, 3, 4), (12, 4, 1), (6, 4), (4, 1)),
        ((2, 3, 4), (24, 8, 1), (6, 4), (8, 1)),
        ((2, 3, 4), (24, 8, 1), (2, 3, 2, 2), (24, 8, 2, 1)),
        ((2, 3, 4), (24, 8, 1), (2, 12), None),
        ((2, 3, 4), (24, 8, 1), (1, 6, 1, 4), (1, 8, 1, 1)),
        ((1, 3, 1, 4), (999, 4, 999, 1), (12,), (1,)),
        ((4,), (3,), (2, 2), (6, 3)),
        ((2, 3), (0, 1), (6,), None),
        ((), (), (1, 1), (1, 1)),
        ((2, 0), (7, 7), (0, 5), (5, 1)),
    ],
)
def test_strides_of_a_reshaped_array(shape: Any, strides: Any, new: Any, wanted: Any) -> None:
    found = reshaped(shape, strides, new)
    assert (found if found is None else tuple(found)) == wanted


@pytest.mark.parametrize("seed", range(20))
def test_a_reshaped_array_has_the_elements_that_numpy_gives_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    base = np.arange(6 * 8 * 8).reshape(6, 8, 8)
    view = base[:: rng.integers(1, 3), : rng.integers(1, 3) * 4, : rng.choice([4, 6, 8])]
    sizes = [int(n) for n in rng.permutation(np.array([1, *view.shape]))]
    for new in (sizes, [view.shape[0] * view.shape[1], view.shape[2]], [view.shape[0], 2, -1, 2], [-1]):
        wanted = view.reshape(new)
        found = reshaped(view.shape, [s // 8 for s in view.strides], wanted.shape)
        assert (found is not None) == np.shares_memory(wanted, base)
        if found is not None:
            seen = np.lib.stride_tricks.as_strided(view, wanted.shape, [8 * s for s in found])
            np.testing.assert_array_equal(seen, wanted)


def test_the_strides_of_an_axis_of_one_element_say_nothing() -> None:
    assert is_contiguous((2, 1, 3), (3, 77, 1))
    assert not is_contiguous((2, 1, 3), (4, 77, 1))
    assert Buf("a", (2, 1, 3), "int8", (3, 5, 1)).contiguous


def apart(value: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Memory with room between the elements of a tensor, and the tensor in it."""
    if 0 in value.shape:
        return value, value
    steps = [1 + int(rng.integers(0, 2)) * (d < value.ndim - 1) for d in range(value.ndim)]
    room = [n * s + int(rng.integers(1, 4)) for n, s in zip(value.shape, steps)]
    whole = np.full(room, 0, value.dtype)
    whole.view(np.uint8 if whole.ndim else whole.dtype)[...] = _OTHER
    part = whole[(*[slice(1, 1 + n * s, s) for n, s in zip(value.shape, steps)], ...)]
    part[...] = value
    return whole, part


class Left(Exception):
    """No kernel takes a case; the message is the reason."""


def room(size: int) -> tuple[np.ndarray, int]:
    """Zeroed memory, and the aligned address in it where so many bytes begin."""
    whole = np.zeros(size + 64, np.uint8)
    return whole, whole.ctypes.data + -whole.ctypes.data % 64


def strides(part: np.ndarray) -> list[int] | None:
    return [s // part.itemsize for s in part.strides] if part.size else None


def lowered(number: int, rng: np.random.Generator) -> tuple[Kernel, list[Any], list[Any], Any]:
    """A case's kernel on strided tensors, its operands and results in their memory, and the wanted results."""
    name, attrs, args, _ = USED[number]
    call, values = expression(USED[number], number)
    params = [node for node in post_order(call) if isinstance(node, Var)]
    mod = IRModule.from_expr(Function(params, call))
    check(mod)
    function = mod["main"]
    if decompose(decompose(function), rules=LAST) is not function:
        raise Left("other operators replace it before kernels are made")
    if sum(isinstance(node, Call) for node in post_order(through_float32(function, GENERIC))) > 1:
        raise Left("it computes in another type than its operands'")
    op = get(name)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        wanted = KERNELS[name](make_attrs(op.attrs, attrs) if op.attrs is not None else None, *args)
    results = list(wanted) if isinstance(wanted, tuple) else [wanted]
    given = [apart(np.asarray(values[p.name_hint]), rng) for p in function.params]
    outs = [apart(np.full_like(np.asarray(r), 0), rng) for r in results]
    primitive = Function(function.params, function.body, None, (), {"Primitive": 1})
    places = [strides(p) for _, p in given], [strides(p) for _, p in outs]
    try:
        kernel = lower_function(primitive, f"KERNEL{number}", Compiler({}).isa, {}, *places)
    except RelayError as refusal:
        if refusal.diagnostics[0].code != "R0632":
            raise
        raise Left(refusal.diagnostics[0].title) from None
    return kernel, given, outs, wanted


#: Operators with a lowering of their own; an empty result needs no code.
_DIRECT = [n for n, c in enumerate(USED) if c[0] in RECIPES or c[0] in ANCHORS]
_FIRST = {USED[n][0]: n for n in reversed(_DIRECT)}.values()


class Library:
    """Kernels of cases, compiled together."""

    def __init__(self, numbers: list[int], folder: Path) -> None:
        self.cases: dict[int, Any] = {}
        emitter = Emitter(Compiler({}).isa, False)
        self.calls: dict[int, tuple[list[str], list[str]]] = {}
        exported = []
        for number in numbers:
            try:
                found = lowered(number, np.random.default_rng(number))
            except Exception as e:
                self.cases[number] = e
                continue
            self.cases[number] = found
            kernel = found[0]
            packs = [emitter.code.pack(PackIn(kernel, p, [], Slot("made", 0, (1,), "int8")), False) for p in kernel.packs]
            stages = emitter.code.kernel(Run(kernel, [], [], [], "test", Function([], Tuple([]))), False)
            self.calls[number] = packs, [name for name, _ in stages]
            body = [f"{n}(b, 0, {s.units});" for n, s in stages]
            exported.append(f"{SHOWN} void run{number}(void* const* b) {{ {' '.join(body)} }}")
            exported += [f"{SHOWN} void pack{number}_{i}(void* const* b) {{ {n}(b); }}" for i, n in enumerate(packs)]
        pieces = emitter.code.pieces.values()
        helpers = {h for p in pieces for h in p.helpers}
        text = emitter._text(["#define R_LOCAL static"], [*[p.text for p in pieces], *exported], helpers)
        path = folder / "kernels.so"
        path.write_bytes(Compiler({"cflags": "-O1"}).compile([Unit(text)], text))
        self.library = ctypes.CDLL(str(path))

    def run(self, number: int) -> None:
        kernel, given, outs, _ = self.cases[number]
        inputs = {b.name: a[1].ctypes.data for b, a in zip(kernel.params, given)}
        packed = [room(nbytes(p.target)) for p in kernel.packs]
        for i, pack in enumerate(kernel.packs):
            slots = [*[inputs[b.name] for b in pack.sources], packed[i][1]]
            self.library[f"pack{number}_{i}"]((ctypes.c_void_p * len(slots))(*slots))
        work = [room(sum(nbytes(b) for b in kernel.work))] * bool(kernel.work)
        fault = np.zeros(kernel.fault.size, np.int64)
        slots = [
            *inputs.values(),
            *[p for _, p in packed],
            *[a[1].ctypes.data for a in outs],
            *[p for _, p in work],
            fault.ctypes.data,
        ]
        self.library[f"run{number}"]((ctypes.c_void_p * len(slots))(*slots))


@pytest.fixture(scope="module")
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Library:
    asked = {i.callspec.params["number"] for i in request.session.items if getattr(i, "function", None) is test_op}
    return Library(sorted(asked), tmp_path_factory.mktemp("strides"))


@pytest.mark.parametrize("number", few(_DIRECT, *[*_FIRST][::9]), ids=[f"{n}-{USED[n][0]}" for n in _DIRECT])
def test_op(number: int, library: Library) -> None:
    """The operator reads strided operands and writes strided results, and nothing between their elements."""
    found = library.cases[number]
    if isinstance(found, Left):
        pytest.skip(str(found))
    if isinstance(found, Exception):
        raise found
    library.run(number)
    _, _, outs, wanted = found
    results = tuple(part for _, part in outs)
    same(USED[number][0], results if isinstance(wanted, tuple) else results[0], wanted)
    for whole, part in outs:
        part.view(np.uint8 if part.ndim and part.strides[-1] == part.itemsize else part.dtype)[...] = 0
        left = np.frombuffer(whole.tobytes(), np.uint8)
        assert set(left.tolist()) <= {0, _OTHER}
        if part.size:
            assert (left == _OTHER).sum() == whole.nbytes - part.nbytes
