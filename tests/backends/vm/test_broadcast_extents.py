"""Unknown extents that broadcast: where one of them is 1, a second kernel computes what the first one is not for."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from relaylang.backends.cpu.lower import lowered
from relaylang.backends.vm import compile_vm
from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.ir import IRModule, TensorType
from relaylang.ir.binding import bind_params
from relaylang.ops import OPS, Trait
from relaylang.runtime.artifact import read_sealed, write_sealed
from relaylang.runtime.vm.executable import VMExecutable, loads
from relaylang.typing import check
from tests.backends.vm.agree import assert_same, outcome
from tests.backends.vm.test_programs import module

#: Programs, and the shapes of their arguments. Any extent of `?` may be 1 in a run, of the arguments named behind the shapes.
PROGRAMS: dict[str, tuple[str, list[tuple[int, ...]], Sequence[int]]] = {
    "one operator": (
        "def @main(%a: Tensor[(?, ?), float32], %b: Tensor[(?, ?), float32]) { add(%a, %b) }",
        [(3, 5), (3, 5)],
        (0, 1),
    ),
    "other ranks": (
        "def @main(%a: Tensor[(?), float32], %b: Tensor[(?, 4, ?), float32]) { tanh(subtract(%a, %b)) }",
        [(3,), (2, 4, 3)],
        (0, 1),
    ),
    "an extent that is known": (
        "def @main(%a: Tensor[(?, 4), float32], %b: Tensor[(3, ?), float32]) { maximum(%a, %b) }",
        [(3, 4), (3, 4)],
        (0, 1),
    ),
    "a chain": (
        """
def @main(%a: Tensor[(?, ?), float32], %b: Tensor[(?, ?), float32], %c: Tensor[(?, ?), float32], %d: Tensor[(?), float32]) {
  let %x = add(%a, %b);
  let %y = subtract(multiply(%x, %c), %d);
  (%y, sum(%y, axis=[0]), nn.softmax(%y), transpose(%x), add(%y, %a), where(less(%a, %b), %c, %d), concatenate((%y, %y), axis=1)) }
""",
        [(3, 4), (3, 4), (3, 4), (4,)],
        (0, 1, 2, 3),
    ),
    "elements that move": (
        """
def @main(%a: Tensor[(?, ?), int32], %b: Tensor[(?, ?), int32]) {
  let %c = add(%a, %b);
  (cumsum(%c, axis=0), argmax(%c, axis=[1]), reshape(%c, newshape=[-1]), strided_slice(%c, begin=[0, 0], end=[2, 2]),
   repeat(%c, repeats=2, axis=0), reverse(%c, axis=1), stack((%c, %c), axis=0), broadcast_to_like(%a, %c),
   shape_of(%c, dtype="int64")) }
""",
        [(3, 4), (3, 4)],
        (0, 1),
    ),
    "short floats": (
        """
def @main(%a: Tensor[(?, ?), float16], %b: Tensor[(?, ?), float16], %c: Tensor[(?, ?), bool]) {
  nn.relu(where(%c, add(%a, %b), %b)) }
""",
        [(3, 4), (3, 4), (3, 4)],
        (0, 1, 2),
    ),
    "a convolution": (
        """
def @main(%x: Tensor[(?, 3, ?, ?), float32], %w: Tensor[(8, 3, 3, 3), float32], %r: Tensor[(?, ?, ?, ?), float32]) {
  let %y = nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=8, kernel_size=[3, 3]);
  (nn.relu(add(%y, %r)), mean(multiply(%r, %y), axis=[2, 3])) }
""",
        [(2, 3, 6, 7), (8, 3, 3, 3), (2, 8, 6, 7)],
        (0, 2),
    ),
    "a dense layer": (
        """
def @main(%x: Tensor[(?, 16), float32], %w: Tensor[(24, 16), float32], %r: Tensor[(?, ?), float32]) {
  let %y = nn.dense(%x, %w);
  nn.softmax(add(tanh(add(%y, %r)), %y)) }
""",
        [(5, 16), (24, 16), (5, 24)],
        (0, 2),
    ),
    "attention": (
        """
def @main(%x: Tensor[(?, ?, 8), float32], %y: Tensor[(?, ?, 8), float32], %m: Tensor[(?, ?, ?), float32]) {
  let %s = nn.softmax(add(multiply(nn.batch_matmul(%x, %y, transpose_b=True), 0.5f), %m));
  nn.batch_matmul(%s, %y, transpose_b=False) }
""",
        [(3, 5, 8), (3, 40, 8), (3, 5, 40)],
        (0, 1, 2),
    ),
    "attention without a mask": (
        """
def @main(%x: Tensor[(?, ?, 8), float32], %y: Tensor[(?, ?, 8), float32]) {
  nn.batch_matmul(nn.softmax(nn.batch_matmul(%x, %y, transpose_b=True)), %y, transpose_b=False) }
""",
        [(3, 5, 8), (3, 40, 8)],
        (0, 1),
    ),
    "sums of what was broadcast": (
        """
def @main(%a: Tensor[(?, ?), float32], %b: Tensor[(?, ?), float32]) {
  let %c = tanh(add(%a, %b));
  (collapse_sum_like(%c, %a), collapse_sum_like(multiply(%c, %a), %b), collapse_sum_like(greater(%c, 0f), greater(%b, 0f)),
   variance(%c, %a, axis=[1])) }
""",
        [(3, 4), (3, 4)],
        (0, 1),
    ),
    "a loop": (
        """
def @main(%a: Tensor[(?, ?), float32], %b: Tensor[(?, ?), float32]) {
  let %loop = fn (%i: int32, %s: Tensor[(?, ?), float32]) -> Tensor[(?, ?), float32] {
    if (less(%i, 5)) { %loop(add(%i, 1), tanh(add(%s, %b))) } else { %s } };
  %loop(0, add(%a, %b)) }
""",
        [(3, 4), (3, 4)],
        (0, 1),
    ),
    "branches": (
        """
def @main(%a: Tensor[(?, ?), float32], %b: Tensor[(?, ?), float32]) {
  let %c = add(%a, %b);
  if (less(sum(%c), 0f)) { multiply(%c, %a) } else { subtract(%b, %c) } }
""",
        [(3, 4), (3, 4)],
        (0, 1),
    ),
}


def patterns(mod: IRModule, shapes: Sequence[tuple[int, ...]], vary: Sequence[int]) -> Iterator[list[tuple[int, ...]]]:
    """The shapes, with 1 in place of some extents: none, one, and many of each other."""
    types = [p.checked_type for p in mod["main"].params]
    places = [(n, axis) for n in vary for axis, d in enumerate(types[n].shape) if not isinstance(d, int)]  # type: ignore[union-attr]
    rng = np.random.default_rng(0)
    some = [list(itertools.compress(places, rng.integers(0, 2, len(places)))) for _ in range(16)]
    for ones in [[], *([place] for place in places), *some]:
        yield [tuple(1 if (n, axis) in ones else d for axis, d in enumerate(shape)) for n, shape in enumerate(shapes)]


def argument(ty: Any, shape: Sequence[int], rng: np.random.Generator) -> np.ndarray:
    assert isinstance(ty, TensorType)
    if ty.dtype.startswith("float"):
        return np.asarray(rng.integers(-8, 9, shape) / 8, ty.dtype)
    return np.asarray(rng.integers(0, 2 if ty.dtype == "bool" else 5, shape), ty.dtype)


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_whose_extents_broadcast(name: str) -> None:
    """Compiled code computes all that the interpreter computes, from the first run of a loaded file on."""
    text, shapes, vary = PROGRAMS[name]
    mod = module(text)
    executable = loads(compile_vm(mod, "c -cflags=-O1").content())
    rng, compared = np.random.default_rng(1), 0
    for extents in patterns(mod, shapes, vary):
        args = [argument(p.checked_type, shape, rng) for p, shape in zip(mod["main"].params, extents)]
        wanted, failure = outcome(lambda args=args: evaluate(mod, *args))
        if failure is None:
            assert_same(executable.run(*args), wanted)
            assert executable.fallbacks() == []
            compared += 1
    assert compared > 3


def _operators() -> list[str]:
    names = [name for name in sorted(lowered()) if name in OPS and Trait.BROADCAST in OPS[name].traits]
    assert len(names) > 20
    return names


def _function(name: str) -> str:
    dtype = "bool" if "logical" in name else "int32" if "bitwise" in name or "shift" in name else "float32"
    types = [f"Tensor[(?, ?), {dtype}]"] * 2
    types = ["Tensor[(?, ?), bool]", *types] if name == "where" else types
    params = [f"%p{n}" for n in range(len(types))]
    head = ", ".join(f"{p}: {ty}" for p, ty in zip(params, types))
    return f"def @{name}({head}) {{ {name}({', '.join(params)}) }}"


def test_every_operator_that_broadcasts() -> None:
    names = _operators()
    mod = module("\n".join(map(_function, names)))
    executable = compile_vm(mod, "c -cflags=-O0", entries=names)
    assert [packed.other for packed in executable.program.packed] == [n + 1 if n % 2 == 0 else -1 for n in range(2 * len(names))]
    rng = np.random.default_rng(0)
    for name in names:
        params = mod[name].params
        for ones in itertools.product((3, 1), (4, 1), repeat=2):
            shapes = [ones[:2], ones[2:], (ones[0], ones[3])][-len(params) :]
            args = [argument(p.checked_type, shape, rng) for p, shape in zip(params, shapes)]
            args[1] = args[1] + args[1].dtype.type(1) if args[1].dtype != bool else args[1]
            with np.errstate(all="ignore"):
                wanted = evaluate(mod[name], *args)
            assert_same(executable.call(name, tuple(args)), wanted)
    assert executable.fallbacks() == []


QUANTISED = """
def @main(%a: Tensor[(?, ?), int8], %b: Tensor[(?, ?), int8], %x: Tensor[(?, ?), float32], %s: Tensor[(?), float32]) {
  (qnn.add(%a, %b, 0.5f, 1, 0.25f, 2, 0.75f, 0), qnn.mul(%a, %b, 0.5f, 1, 0.25f, 2, 0.75f, 0),
   qnn.subtract(%a, %b, 0.5f, 1, 0.25f, 2, 0.75f, 0), qnn.simulated_quantize(%x, 1, %s, 0)) }
"""


def test_quantised_operators() -> None:
    mod = module(QUANTISED)
    executable = compile_vm(mod)
    rng = np.random.default_rng(0)
    for one, two, scales in (((4, 9), (1, 9), 3), ((1, 9), (4, 1), 1), ((4, 9), (4, 9), 1), ((1, 1), (4, 9), 3)):
        x = rng.integers(-9, 9, (2, 3)).astype("float32")
        ints = [rng.integers(-128, 128, shape).astype("int8") for shape in (one, two)]
        args = [*ints, x, np.full(scales, 0.5, "float32")]
        assert_same(executable.run(*args), evaluate(mod, *args))
    assert executable.fallbacks() == []


@pytest.mark.parametrize("shapes", [((0, 5), (1, 5)), ((0, 1), (1, 5)), ((3, 1), (1, 0)), ((0, 0), (1, 1))])
def test_results_without_elements(shapes: tuple[tuple[int, int], tuple[int, int]]) -> None:
    mod = module("def @main(%a: Tensor[(?, ?), float32], %b: Tensor[(?, ?), float32]) { tanh(add(%a, %b)) }")
    executable = compile_vm(mod)
    args = [np.ones(shape, "float32") for shape in shapes]
    assert_same(executable.run(*args), evaluate(mod, *args))
    assert executable.fallbacks() == []


@pytest.mark.parametrize(
    "text",
    [
        "def @main(%a: Tensor[(?, ?), float32]) { add(%a, tanh(%a)) }",
        "def @main(%a: Tensor[(?, 4), float32], %b: Tensor[(4), float32]) { add(%a, %b) }",
        "def @main(%a: Tensor[(?, ?), float32], %w: Tensor[(?, ?), float32]) { nn.relu(nn.dense(%a, %w, units=None)) }",
        "def @main(%a: Tensor[(?, ?), float32]) { subtract(%a, max(%a, axis=[1], keepdims=True)) }",
        "def @main(%a: Tensor[(?), float32]) { add(nn.pad(%a, 0f, pad_width=[[1, 1]]), nn.pad(%a, 1f, pad_width=[[0, 2]])) }",
    ],
)
def test_kernels_without_broadcasts_are_compiled_once(text: str) -> None:
    assert [packed.other for packed in compile_vm(module(text)).program.packed] == [-1]


def test_extents_that_neither_agree_nor_are_1() -> None:
    """The error is the interpreter's. The report says what the code is for."""
    mod = module("def @main(%a: Tensor[(?, 3), float32], %b: Tensor[(?, 3), float32]) { tanh(add(%a, %b)) }")
    executable = compile_vm(mod)
    args = np.ones((4, 3), "float32"), np.ones((2, 3), "float32")
    assert outcome(lambda: executable.run(*args)) == outcome(lambda: evaluate(mod, *args))
    (fallback,) = executable.fallbacks()
    condition = "x0.shape[0] == x1.shape[0] || x0.shape[0] == 1 || x1.shape[0] == 1"
    assert fallback.why == f"x0 (4, 3), x1 (2, 3): the code is for ({condition})"


def test_a_failure_of_the_second_kernel_has_its_place() -> None:
    mod = module("""
def @main(%a: Tensor[(?, ?), float32], %b: Tensor[(?, ?), float32], %i: Tensor[(1, ?), int64], %u: Tensor[(?, ?), float32]) {
  scatter_nd(add(%a, %b), %i, %u, mode="add") }
""")
    executable = compile_vm(mod)
    a, b, u = np.ones((3, 4), "float32"), np.ones((1, 4), "float32"), np.ones((2, 4), "float32")
    for index in ([0, 2], [1, 7]):
        args = (a, b, np.int64([index]), u)
        got, failure = outcome(lambda args=args: executable.run(*args))
        wanted, expected = outcome(lambda args=args: evaluate(mod, *args))
        assert failure == expected and (failure is None) == (7 not in index)
        if failure is None:
            assert_same(got, wanted)
    assert executable.fallbacks() == []


def test_both_kernels_read_the_same_weights() -> None:
    """Weights are prepared once."""
    mod = module("""
def @main(%x: Tensor[(?, 32), float32], %w: Tensor[(64, 32), float32], %r: Tensor[(?, ?), float32]) {
  nn.relu(add(nn.dense(%x, %w), %r)) }
""")
    weight = np.random.default_rng(0).standard_normal((64, 32)).astype("float32")
    bound = bind_params(mod, {"w": weight})
    check(bound)
    executable = loads(compile_vm(bound).content())
    first, second = executable.program.packed
    assert second.shares and not first.shares and first.fixed == second.fixed > 0
    for shape in ((5, 64), (1, 64), (5, 1), (1, 1)):
        args = np.ones((5, 32), "float32"), np.full(shape, 2, "float32")
        assert_same(executable.run(*args), evaluate(bound, *args), 1e-4, 1e-4)
    assert executable.fallbacks() == []


@pytest.fixture(scope="module")
def content() -> bytes:
    return compile_vm(module("def @main(%a: Tensor[(?), float32], %b: Tensor[(?), float32]) { add(%a, %b) }")).content()


def _with_other(content: bytes, kernel: int, number: int) -> VMExecutable:
    files = read_sealed(content, "x")
    manifest = json.loads(files["manifest.json"])
    manifest["packed"][kernel]["other"] = number
    return loads(write_sealed({**files, "manifest.json": json.dumps(manifest).encode()}))


def test_a_file_has_both_kernels(content: bytes) -> None:
    executable = loads(content)
    first, second = executable.program.packed
    assert (first.other, second.other) == (1, -1) and first.module is second.module
    assert "k1 = compiled for unknown extents that broadcast" in executable.listing()
    assert executable.content() == content


@pytest.mark.parametrize(("kernel", "number"), [(0, 2), (0, -2), (0, 0), (1, 0), (1, 1)])
def test_kernels_that_take_over_from_others(content: bytes, kernel: int, number: int) -> None:
    with pytest.raises(RelayError) as failed:
        _with_other(content, kernel, number)
    assert failed.value.diagnostics[0].code == "R0641"
