"""Operators behind operators whose result has an open extent that is computed: the VM beside the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from relaylang.backends.vm import compile_vm
from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.runtime.vm.executable import VMExecutable
from relaylang.syntax import parse
from relaylang.typing import check
from tests.backends.vm.agree import assert_same, outcome

_PAD = "nn.pad(%x, 0f, pad_width=[[1, 0], [0, 0]])"
_IMAGE = "reshape(%x, newshape=[1, 1, -1, 4])"
#: Matrices with computed extents, of `%x: Tensor[(?, 4), float32]`.
PRODUCERS = {
    "pad": _PAD,
    "pad of both axes": "nn.pad(%x, 1f, pad_width=[[2, 1], [1, 3]])",
    "pad of a pad": f"nn.pad({_PAD}, 1f, pad_width=[[0, 2], [0, 0]])",
    "mirror": "nn.mirror_pad(%x, pad_width=[[1, 1], [0, 0]])",
    "concatenate": "concatenate((%x, %x), axis=0)",
    "concatenate with a constant": 'concatenate((%x, ones(shape=[2, 4], dtype="float32")), axis=0)',
    "slice": "strided_slice(%x, begin=[1], end=[100], strides=[2], axes=[0])",
    "slice from the end": "strided_slice(%x, begin=[-1], end=[-100], strides=[-1], axes=[0])",
    "slice without ends": "strided_slice(%x, begin=[0], end=[-1], strides=[1], axes=[0])",
    "repeat": "repeat(%x, repeats=2, axis=0)",
    "tile": "tile(%x, reps=[3, 2])",
    "transposed": f"transpose({_PAD}, axes=[1, 0])",
    "reshaped": f"reshape({_PAD}, newshape=[-1, 2])",
    "flat": f"reshape({_PAD}, newshape=[1, -1])",
    "element-wise": f"nn.relu({_PAD})",
    "softmax": f"nn.softmax({_PAD})",
    "dense": f'nn.dense({_PAD}, ones(shape=[4, 4], dtype="float32"), units=4)',
    "pool": f"reshape(nn.max_pool2d({_IMAGE}, pool_size=[2, 1], strides=[1, 1], padding=[1, 0, 0, 0]), newshape=[-1, 4])",
    "strided pool": f"reshape(nn.avg_pool2d({_IMAGE}, pool_size=[2, 1], strides=[2, 1], ceil_mode=True), newshape=[-1, 4])",
    "upsampling": f"reshape(nn.upsampling({_IMAGE}, scale_h=2f, scale_w=1f), newshape=[-1, 4])",
}
#: Functions of a matrix `%p`.
CONSUMERS = [
    "nn.dense(%p, %p, units=None)",
    "nn.matmul(%p, transpose(%p, axes=[1, 0]), units=None)",
    "nn.matmul(%p, %p, units=None, transpose_a=True)",
    "nn.batch_matmul(expand_dims(%p, axis=0), expand_dims(%p, axis=0), transpose_b=True)",
    "nn.batch_matmul(expand_dims(%p, axis=1), expand_dims(%p, axis=1), transpose_b=True)",
    "nn.batch_matmul(expand_dims(%p, axis=2), expand_dims(%p, axis=1), transpose_b=False)",
    'nn.dense(cast(%p, dtype="int8"), cast(%p, dtype="int8"), units=None, out_dtype="int32")',
    'nn.dense(cast(%p, dtype="float64"), cast(%p, dtype="float64"), units=None)',
    *[f"{op}(%p, axis={axis})" for op in ("sum", "mean", "max", "argmax", "prod") for axis in ("None", "[0]", "[1]", "[0, 1]")],
    "sum(expand_dims(%p, axis=1), axis=[0, 1])",
    "sum(stack((%p, %p), axis=1), axis=[1, 2])",
    "variance(%p, mean(%p, axis=[0, 1], keepdims=True), axis=[0, 1])",
    "nn.softmax(%p)",
    "nn.softmax(%p, axis=0)",
    "nn.layer_norm(%p, sum(%p, axis=[0]), sum(%p, axis=[0]))",
    "nn.l2_normalize(%p, eps=0.1f, axis=[0, 1])",
    "nn.batch_flatten(expand_dims(%p, axis=0))",
    "reshape(%p, newshape=[-1])",
    "reshape(transpose(%p, axes=[1, 0]), newshape=[-1])",
    "concatenate((%p, %p), axis=0)",
    "nn.pad(%p, 2f, pad_width=[[1, 1], [0, 1]])",
    "strided_slice(%p, begin=[0], end=[1000], strides=[2], axes=[0])",
    "cumsum(%p)",
    "take(%p, 0, axis=0)",
    'nn.conv2d(reshape(%p, newshape=[1, 1, -1, 2]), ones(shape=[2, 1, 1, 2], dtype="float32"), channels=2, kernel_size=[1, 2])',
    "nn.max_pool2d(reshape(%p, newshape=[1, 1, -1, 2]), pool_size=[2, 1], strides=[2, 1], padding=[1, 0])",
    "nn.global_avg_pool2d(reshape(%p, newshape=[1, 2, -1, 1]))",
    'einsum((%p, %p), equation="ij,kj->ik")',
]


def assert_agrees(producer: str, consumers: list[str]) -> VMExecutable:
    """Every consumer of a producer's result gives what the interpreter gives."""
    head = "(%x: Tensor[(?, 4), float32])"
    texts = [f"def @f{n}{head} {{ %0 = {producer}; {text.replace('%p', '%0')} }}" for n, text in enumerate(consumers)]
    module = parse("\n".join(texts)).module
    assert module is not None
    check(module)
    made = compile_vm(module, entries=[f"f{n}" for n in range(len(consumers))])
    for rows in (3, 6):
        x = (np.arange(rows * 4, dtype="float32").reshape(rows, 4) % 7 - 2) / 4
        for n in range(len(consumers)):
            assert_same(made.call(f"f{n}", (x,), {}), evaluate(module, x, entry=f"f{n}"), rtol=1e-4, atol=1e-4)
    return made


def test_products_and_sums_of_padded_rows_are_compiled() -> None:
    first = ("nn.dense(%p", "nn.batch_matmul(expand_dims(%p, axis=0", "sum(%p, axis=None", "mean(%p, axis=None")
    made = assert_agrees(_PAD, [text for text in CONSUMERS if text.startswith(first)])
    assert made.loaded.hosts == {}


@pytest.mark.sample(4)
@pytest.mark.sweep
@pytest.mark.parametrize("name", PRODUCERS)
def test_every_operator_behind_a_computed_extent(name: str) -> None:
    assert_agrees(PRODUCERS[name], CONSUMERS)


def test_regions_that_are_the_same_program_share_their_kernels() -> None:
    steps = 30
    body = "".join(f'let %s{n + 1} = cast(argwhere(%s{n}), dtype="bool"); ' for n in range(steps))
    text = f"def @main(%x: Tensor[(?, 2), bool]) {{ let %s0 = logical_not(%x); {body}%s{steps} }}"
    module = parse(text).module
    assert module is not None
    check(module)
    made = compile_vm(module)
    regions = [packed.region for packed in made.program.packed if packed.region >= 0]
    assert len(regions) >= steps and len(set(regions)) < 5
    x = np.array([[0, 1], [1, 0], [0, 0]], bool)
    assert_same(made.run(x), evaluate(module, x))


def test_a_chain_of_shapes_is_one_kernel() -> None:
    steps = 30
    body = "".join(f'let %s{n + 1} = shape_of(dyn.ones(%s{n}, shape=None, dtype="float32"), dtype="int32"); ' for n in range(steps))
    text = f'def @main(%x: Tensor[(?, 5, 2), float32]) {{ let %s0 = shape_of(%x, dtype="int32"); {body}%s{steps} }}'
    module = parse(text).module
    assert module is not None
    check(module)
    made = compile_vm(module)
    assert [packed.region >= 0 for packed in made.program.packed] == [True]
    assert made.run(np.zeros((3, 5, 2), "float32")).tolist() == [3, 5, 2]


@pytest.mark.parametrize("extent", [2**40, 2**62])
def test_a_kernel_that_needs_more_memory_than_there_is_says_so(extent: int) -> None:
    module = parse(f'def @main() {{ zeros(shape=[{extent}], dtype="float32") }}').module
    assert module is not None
    check(module)
    with pytest.raises(RelayError) as caught:
        compile_vm(module).run()
    assert caught.value.diagnostics[0].code == "R0408"


@pytest.mark.parametrize("columns", [1, 47, 49, 100])
def test_weights_of_a_computed_depth(columns: int) -> None:
    """Constant weights are packed before the first run, in which the depth of the data is known."""
    image = "nn.avg_pool2d(%x, pool_size=[2, 2], strides=[2, 2])"
    weight = f'reshape(arange(0f, {8 * columns}f, 1f, dtype="float32"), newshape=[{columns}, 8])'
    body = f"nn.dense(nn.batch_flatten({image}), {weight}, units={columns})"
    mod = parse(f'#[version = "0.0.5"]\ndef @main(%x: Tensor[(?, 2, ?, ?), float32]) {{ {body} }}').module
    check(mod)
    made = compile_vm(mod)
    for rows in (1, 2, 9):
        x = np.random.default_rng(rows).integers(-4, 5, (rows, 2, 4, 4)).astype("float32")
        assert_same(made.call("main", (x,)), evaluate(mod, x))
    assert made.loaded.hosts == {}


#: begin, end and stride: forwards, backwards, beyond both ends, and with nothing between them
SLICES = [(0, 2, 1), (0, 9, 2), (-1, 9, 1), (-9, 9, 1), (-1, -9, -1), (5, -9, -2), (1, 0, -1), (1, -9, -3)]
SLICES += [(0, 0, 1), (0, 0, -1), (2, 0, 1), (0, 2, -1), (-9, 2, -1)]


@pytest.mark.parametrize("shape", [(3,), (3, 4), (3, 4, 3), (2, 1, 2)])
def test_slices_whose_extents_have_a_small_bound(shape: tuple[int, ...]) -> None:
    """An extent that is known to be small is still not a number: loops over it are not written out."""
    ends = ", ".join(f"%{name}: Tensor[({len(shape)}), int32]" for name in ("b", "e", "s"))
    body = "dyn.strided_slice(%x, %b, %e, %s, begin=None, end=None, strides=None, axes=None)"
    mod = parse(f'#[version = "0.0.5"]\ndef @main(%x: Tensor[{shape}, float32], {ends}) {{ nn.relu({body}) }}').module
    check(mod)
    made = compile_vm(mod)
    x = np.random.default_rng(0).standard_normal(shape).astype("float32")
    for begin, end, stride in SLICES:
        slices = [np.full(len(shape), value, "int32") for value in (begin, end, stride)]
        assert_same(made.call("main", (x, *slices)), evaluate(mod, x, *slices))
    assert made.fallbacks() == []
    # Nothing is cut by a stride of 0.
    slices = [np.full(len(shape), value, "int32") for value in (0, 2, 0)]
    assert outcome(lambda: made.call("main", (x, *slices))) == outcome(lambda: evaluate(mod, x, *slices))


@pytest.mark.parametrize(
    "begin, end, stride", [(0, 5, 1), (-1, -100, -1), (-3, 1000, 1), (-4, -1, 1), (1, -1, 2), (4, 0, -2), (5, -400, -3), (0, 300, 7)]
)
def test_slices_beyond_an_open_extent(begin: int, end: int, stride: int) -> None:
    """Bounds lie where the extent of a run lets them."""
    body = f"strided_slice(%x, begin=[{begin}], end=[{end}], strides=[{stride}], axes=[0])"
    mod = parse(f'#[version = "0.0.5"]\ndef @main(%x: Tensor[(?, 2), float32]) {{ {body} }}').module
    check(mod)
    made = compile_vm(mod)
    for rows in (3, 5, 9, 300):
        x = np.random.default_rng(rows).standard_normal((rows, 2)).astype("float32")
        assert_same(made.call("main", (x,)), evaluate(mod, x))
    assert made.loaded.hosts == {}
