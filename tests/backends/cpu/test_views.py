"""Values that lie in the memory of others: no bytes are copied for them, and results stay the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from relaylang.backends import compile_module
from relaylang.backends.cpu import lower_module
from relaylang.backends.cpu.isa import GENERIC
from relaylang.backends.cpu.program import Program, Run, copied_bytes
from relaylang.backends.cpu.views import Plan
from relaylang.interpreter import evaluate
from relaylang.ir import Constant, Expr, Function, If, IRModule, TensorType, Tuple, TupleGetItem, Var
from relaylang.typing import check
from tests.backends.cpu.test_random import flat
from tests.backends.cpu.test_sharing import op
from tests.shared import few

QUICK = "c -num-threads=2 -cflags=-O1"


def var(name: str, *shape: int) -> Var:
    return Var(name, TensorType(shape, "float32"))


def relu(value: Expr) -> Expr:
    return op("nn.relu", value)


def joined(*values: Expr, axis: int = 1) -> Expr:
    return op("concatenate", Tuple(values), axis=axis)


#: Channels last: for these, the backend does not change a program's layout.
LAST = {"data_layout": "NHWC", "kernel_layout": "HWIO"}


def conv(value: Expr, weight: Expr, channels: int, size: int = 1, pad: int = 0, **attrs: Any) -> Expr:
    attrs = attrs or LAST
    return op("nn.conv2d", value, weight, kernel_size=[size, size], padding=[pad] * 4, channels=channels, **attrs)


def pool(value: Expr, size: int, kind: str = "max") -> Expr:
    return op(f"nn.{kind}_pool2d", value, pool_size=[size, size], layout="NHWC")


def module(*results: Expr, params: list[Var]) -> IRModule:
    return IRModule.from_expr(Function(params, results[0] if len(results) == 1 else Tuple(results)))


def program(mod: IRModule, *bound: str) -> Program:
    return lower_module(mod, "main", bound, GENERIC)


def texts(found: Program) -> list[str]:
    return [item.text.split(":")[0] for item in found.run if isinstance(item, Run)]


def whole_numbers(mod: IRModule, seed: int = 0) -> dict[str, np.ndarray]:
    """Arguments in whole numbers, so that sums and products in float32 are exact in any order."""
    rng = np.random.default_rng(seed)
    return {p.name_hint: rng.integers(-3, 4, p.type_annotation.shape).astype("float32") for p in mod["main"].params}


def agrees(mod: IRModule, seed: int = 0, held: tuple[str, ...] = ()) -> None:
    """The compiled program computes what the interpreter computes, to the bit."""
    values = whole_numbers(mod, seed)
    wanted = evaluate(mod, *values.values())
    compiled = compile_module(mod, QUICK, params={n: values[n] for n in held})
    for _ in range(2):
        found = compiled.run(**{n: v for n, v in values.items() if n not in held})
        for ours, theirs in zip(flat((found,)), flat((wanted,)), strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_a_concatenation_of_results_is_no_kernel() -> None:
    x, v, w = var("x", 1, 5, 6, 4), var("v", 1, 1, 4, 3), var("w", 1, 1, 4, 5)
    both = joined(relu(conv(x, v, 3)), relu(conv(x, w, 5)), axis=3)
    mod = module(pool(both, 2), params=[x, v, w])
    assert texts(program(mod)) == ["nn.conv2d > nn.relu", "nn.conv2d > nn.relu", "nn.max_pool2d"]
    assert copied_bytes(program(mod)) == 0
    agrees(mod)


def test_operands_without_elements_are_left_out_of_concatenations() -> None:
    x, v, w = var("x", 1, 5, 6, 4), var("v", 1, 1, 4, 3), var("w", 1, 1, 4, 5)
    none = Constant(np.zeros((1, 5, 6, 0), "float32"))
    both = joined(none, relu(conv(x, v, 3)), none, relu(conv(x, w, 5)), axis=3)
    mod = module(pool(both, 2), joined(none, none, axis=3), params=[x, v, w])
    assert texts(program(mod))[:3] == ["nn.conv2d > nn.relu", "nn.conv2d > nn.relu", "nn.max_pool2d"]
    assert copied_bytes(program(mod)) == 0
    agrees(mod)


@pytest.mark.parametrize("axis", [1, 2, 3])
@pytest.mark.parametrize("batch", [1, 2])
def test_a_chain_of_concatenations_lies_in_the_last_ones_memory(axis: int, batch: int) -> None:
    x = var("x", batch, 3, 4, 5)
    value = op("exp", op("cumsum", x, axis=1))
    for _ in range(4):
        value = joined(value, op("tanh", pool(value, 1)) if axis == 1 else relu(value), axis=axis)
    mod = module(op("nn.softmax", value), params=[x])
    found = program(mod)
    assert "concatenate" not in texts(found)
    sizes = {id(s): s.bytes for item in found.run for s in item.outputs if s.kind == "made"}
    # Beside the chain, a sum is in memory, the copy that softmax reads in lines, or nothing.
    assert sorted(sizes.values())[-1] >= 4 * batch * 3 * 4 * 5 * 16


def test_a_list_of_results_that_grows_lies_in_one_piece() -> None:
    x = var("x", 2, 4, 4, 4)
    weights = [var(f"w{n}", 1, 1, 4 * (n + 1), 4) for n in range(5)]
    parts = [op("sigmoid", op("cumsum", x, axis=1))]
    for weight in weights:
        parts.append(conv(joined(*parts, axis=3) if len(parts) > 1 else parts[0], weight, 4))
    mod = module(op("nn.global_avg_pool2d", joined(*parts, axis=3), layout="NHWC"), params=[x, *weights])
    found = program(mod)
    assert texts(found).count("nn.conv2d") == 5 and len(texts(found)) == 8
    assert copied_bytes(found) == 0


def test_what_cannot_lie_in_place_is_copied() -> None:
    x, w = var("x", 1, 5, 6, 4), var("w", 1, 1, 4, 3)
    y = conv(x, w, 3)
    # An input, a value twice, and one that is an output: three copies, one place.
    z = conv(x, w, 3)
    mod = module(joined(x, y, y, z, axis=3), z, params=[x, w])
    assert copied_bytes(program(mod)) == 4 * 30 * (4 + 3 + 3)
    agrees(mod)
    # A value of the loaded program stays apart from those of each run.
    held = joined(op("cumsum", op("exp", w), axis=0), op("cumsum", var("u", 1, 1, 4, 3), axis=0))
    u = held.args[0].fields[1].args[0]  # type: ignore[attr-defined]
    mod = module(held, params=[w, u])
    assert copied_bytes(program(mod, "w")) == 4 * 12


def test_pieces_are_read_where_they_lie() -> None:
    x = var("x", 2, 6, 5, 4)
    made = op("cumsum", x, axis=1)
    parts = op("split", made, indices_or_sections=3, axis=1)
    low = pool(TupleGetItem(parts, 0), 2)
    high = op("sum", TupleGetItem(parts, 2), axis=[1])
    cut = pool(op("strided_slice", made, begin=[1], end=[5], strides=[2], axes=[1]), 1, "avg")
    mod = module(low, high, cut, params=[x])
    found = program(mod)
    assert not {"split", "strided_slice"} & set(texts(found))
    assert copied_bytes(found) == 0
    agrees(mod)


def test_an_output_is_no_piece_of_another_value() -> None:
    x = var("x", 2, 6)
    made = op("cumsum", x, axis=1)
    parts = op("split", made, indices_or_sections=2, axis=1)
    both = joined(made, op("cumsum", relu(x), axis=0))
    mod = module(TupleGetItem(parts, 0), both, made, op("reshape", both, newshape=[4, 6]), op("exp", both), params=[x])
    agrees(module(TupleGetItem(parts, 0), both, made, op("reshape", both, newshape=[4, 6]), params=[x]))
    assert program(mod)


def test_a_branchs_values_stay_its_own() -> None:
    x, flag = var("x", 2, 3), Var("flag", TensorType((), "bool"))
    made = op("cumsum", x, axis=0)
    chosen = If(flag, joined(op("cumsum", made, axis=1), made), joined(made, op("negative", op("cumsum", made, axis=0))))
    mod = module(joined(chosen, op("cumsum", x, axis=1)), joined(op("cumsum", made, axis=0), x), params=[x, flag])
    check(mod)
    given = np.arange(6, dtype="float32").reshape(2, 3)
    compiled = compile_module(mod, QUICK)
    for truth in (True, False):
        for ours, theirs in zip(compiled.run(given, np.asarray(truth)), evaluate(mod, given, np.asarray(truth)), strict=True):
            np.testing.assert_array_equal(ours, theirs)


class Maker:
    """A random program of operators that move and compute, on images of whole numbers."""

    def __init__(self, seed: int, length: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.last = bool(seed % 2)  # channels last
        self.batch = 1 + seed % 3 // 2
        self.params = [var(f"x{n}", *self.shape(c, h, w)) for n, (c, h, w) in enumerate([(4, 6, 6), (6, 6, 6), (2, 5, 7)])]
        self.values: list[tuple[Expr, tuple[int, ...]]] = [(p, tuple(p.type_annotation.shape)) for p in self.params]
        self.weights: list[Var] = []
        steps: list[Callable[[], None]] = [
            self.computed,
            self.added,
            self.concatenated,
            self.concatenated,
            self.parted,
            self.sliced,
            self.padded,
            self.padded,
            self.convolved,
            self.convolved,
            self.pooled,
            self.reshaped,
            self.summed,
        ]
        while len(self.values) < length:
            steps[self.rng.integers(len(steps))]()
        count = int(self.rng.integers(2, 6))
        results = [self.values[-1][0], *[self.values[int(n)][0] for n in self.rng.integers(3, len(self.values), count)]]
        self.mod = module(*results, params=[*self.params, *self.weights])

    def shape(self, channels: int, height: int, width: int) -> tuple[int, ...]:
        return (self.batch, height, width, channels) if self.last else (self.batch, channels, height, width)

    def pick(self) -> tuple[Expr, tuple[int, ...]]:
        # Young values rather than old ones.
        low = max(0, len(self.values) - 8) if self.rng.random() < 0.7 else 0
        return self.values[int(self.rng.integers(low, len(self.values)))]

    def put(self, value: Expr, shape: tuple[int, ...]) -> None:
        # Numbers that stay small.
        if np.prod(shape) <= 6000:
            self.values.append((value, shape))

    def computed(self) -> None:
        value, shape = self.pick()
        name = ("nn.relu", "negative", "abs", "sign")[self.rng.integers(4)]
        self.put(op(name, value), shape)

    def added(self) -> None:
        value, shape = self.pick()
        others = [v for v, s in self.values if s == shape]
        self.put(op("clip", op("add", value, others[self.rng.integers(len(others))]), a_min=-4.0, a_max=4.0), shape)

    def concatenated(self) -> None:
        _, shape = first = self.pick()
        axis = int(self.rng.integers(1, 4))
        fit = [(v, s) for v, s in self.values if s[:axis] + s[axis + 1 :] == shape[:axis] + shape[axis + 1 :]]
        taken = [first, *[fit[self.rng.integers(len(fit))] for _ in range(self.rng.integers(1, 4))]]
        extent = sum(s[axis] for _, s in taken)
        self.put(joined(*[v for v, _ in taken], axis=axis), (*shape[:axis], extent, *shape[axis + 1 :]))

    def parted(self) -> None:
        value, shape = self.pick()
        axis = int(self.rng.integers(1, 4))
        cuts = sorted({int(n) for n in self.rng.integers(1, max(2, shape[axis]), 2)} - {shape[axis]})
        if not cuts:
            return
        parts = op("split", value, indices_or_sections=cuts, axis=axis)
        ends = [0, *cuts, shape[axis]]
        for n in range(len(cuts) + 1):
            self.put(TupleGetItem(parts, n), (*shape[:axis], ends[n + 1] - ends[n], *shape[axis + 1 :]))

    def sliced(self) -> None:
        value, shape = self.pick()
        begin = [int(self.rng.integers(0, n)) if d else 0 for d, n in enumerate(shape)]
        step = [int(self.rng.integers(1, 3)) if d else 1 for d in range(4)]
        new = tuple(-(-(n - b) // s) for n, b, s in zip(shape, begin, step))
        self.put(op("strided_slice", value, begin=begin, end=list(shape), strides=step), new)

    def padded(self) -> None:
        value, shape = self.pick()
        width = [[int(n) for n in self.rng.integers(0, 3, 2)] if d else [0, 0] for d in range(4)]
        self.put(op("nn.pad", value, op("negative", _two()), pad_width=width), tuple(n + a + b for n, (a, b) in zip(shape, width)))

    def convolved(self) -> None:
        value, shape = self.pick()
        h, w, c = shape[1:] if self.last else (shape[2], shape[3], shape[1])
        size = int(self.rng.choice([1, 1, 3]))
        pad = int(self.rng.integers(0, 2)) if size == 3 else 0
        if min(h, w) + 2 * pad < size:
            return
        out = int(self.rng.integers(1, 9))
        weight = var(f"w{len(self.weights)}", *((size, size, c, out) if self.last else (out, c, size, size)))
        self.weights.append(weight)
        layout = LAST if self.last else {"data_layout": "NCHW"}
        made = op("clip", conv(value, weight, out, size, pad, **layout), a_min=-5.0, a_max=5.0)
        self.put(made, self.shape(out, h + 2 * pad - size + 1, w + 2 * pad - size + 1))

    def pooled(self) -> None:
        value, shape = self.pick()
        layout = "NHWC" if self.last else "NCHW"
        self.put(op("nn.max_pool2d", value, pool_size=[3, 3], padding=[1, 1, 1, 1], layout=layout), shape)

    def reshaped(self) -> None:
        value, shape = self.pick()
        new = tuple(int(n) for n in shape)
        if self.rng.random() < 0.5 and shape[1] % 2 == 0:
            new = (shape[0], shape[1] // 2, shape[2] * 2, shape[3])
        elif shape[2] % 2 == 0:
            new = (shape[0], shape[1] * 2, shape[2] // 2, shape[3])
        self.put(op("reshape", value, newshape=list(new)), new)

    def summed(self) -> None:
        value, shape = self.pick()
        axis = int(self.rng.integers(1, 4))
        new = (*shape[:axis], 1, *shape[axis + 1 :])
        self.put(op("clip", op("sum", value, axis=[axis], keepdims=True), a_min=-4.0, a_max=4.0), new)


def _two() -> Expr:
    return Constant(np.float32(2))


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", few(range(12), *range(4)))
def test_a_random_program_of_pieces(seed: int) -> None:
    maker = Maker(seed, 40)
    held = tuple(w.name_hint for w in maker.weights) if seed % 4 < 2 else ()
    agrees(maker.mod, seed, held)


@pytest.mark.sample(6)
@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(12, 100))
def test_many_random_programs_of_pieces(seed: int) -> None:
    agrees(Maker(seed, 30 + seed % 3 * 30).mod, seed)


@pytest.mark.sweep
def test_views_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Floats, too, are what they are when each value has memory of its own."""
    mods = [Maker(seed, 40).mod for seed in (2, 5, 8)]
    rng = np.random.default_rng(0)
    values = [{p.name_hint: rng.standard_normal(p.type_annotation.shape).astype("float32") for p in m["main"].params} for m in mods]
    ours = [compile_module(m, QUICK).run(**v) for m, v in zip(mods, values)]
    before = [copied_bytes(program(m)) for m in mods]
    monkeypatch.setattr(Plan, "_assemble", lambda *_: None)
    monkeypatch.setattr(Plan, "readable", lambda *_: False)
    assert all(0 <= a < copied_bytes(program(m)) for a, m in zip(before, mods))
    for mod, given, found in zip(mods, values, ours):
        for a, b in zip(found, compile_module(mod, QUICK).run(**given), strict=True):
            np.testing.assert_array_equal(a, b)


def test_rows_that_are_no_box_of_the_result_stay_apart() -> None:
    """Images and lines of the data are one row of blocks, their results are not."""
    x, w = var("x", 2, 5, 6, 4), var("w", 1, 3, 4, 8)
    made = op("nn.conv2d", x, w, kernel_size=[1, 3], padding=[0, 1, 0, 1], channels=8, **LAST)
    agrees(module(op("clip", made, a_min=-5.0, a_max=5.0), params=[x, w]))


def test_what_computes_on_a_concatenation_reads_it_as_one() -> None:
    x, v, w = var("x", 1, 5, 6, 4), var("v", 1, 1, 4, 3), var("w", 1, 1, 4, 5)
    both = joined(conv(x, v, 3), conv(x, w, 5), axis=3)
    mod = module(op("tanh", both), op("sum", relu(both), axis=[3]), params=[x, v, w])
    assert texts(program(mod)) == ["nn.conv2d", "nn.conv2d", "tanh", "nn.relu > sum"]
    # Nothing writes an input in place: the selection inside the kernel takes no copy.
    mod = module(op("tanh", joined(x, conv(x, v, 3), axis=3)), params=[x, v])
    assert texts(program(mod)) == ["nn.conv2d", "concatenate > tanh"]
    agrees(module(relu(both), relu(joined(x, conv(x, v, 3), axis=3)), params=[x, v, w]))


def test_what_depends_on_parameters_alone_is_computed_once() -> None:
    x, mean, scale = var("x", 4, 5, 6), var("mean", 6), var("scale", 6)
    factor = op("divide", scale, op("sqrt", op("add", mean, Constant(np.float32(1e-5)))))
    mod = module(op("tanh", op("multiply", x, factor)), params=[x, mean, scale])
    assert texts(program(mod)) == ["add > sqrt > divide > multiply > tanh"]
    assert texts(program(mod, "mean")) == ["divide > multiply > tanh"]
    assert texts(program(mod, "mean", "scale")) == ["multiply > tanh"]
    # A number is written into the kernel, and a small vector is not spread out beforehand.
    wide = op("broadcast_to", op("exp", mean), shape=[40, 6])
    number = op("exp", Constant(np.float32(2)))
    mod = module(op("add", op("multiply", var("y", 40, 6), wide), number), params=[mean])
    y = mod["main"].body.args[0].args[0]
    mod = module(mod["main"].body, params=[y, mean])
    assert texts(program(mod, "mean")) == ["broadcast_to > multiply > exp > add"]


def test_a_convolution_reads_its_border_in_place() -> None:
    x, v, w, u = var("x", 2, 6, 7, 4), var("v", 3, 3, 4, 5), var("w", 3, 3, 5, 3), var("u", 5, 5, 5, 2)
    made = relu(conv(x, v, 5, 3, 1))
    far = op("nn.conv2d", made, u, kernel_size=[5, 5], padding=[2, 2, 2, 2], channels=2, **LAST)
    mod = module(conv(made, w, 3, 3, 1), far, op("tanh", made), params=[x, v, w, u])
    found = program(mod)
    # Of the border, the widest is filled once; the input alone is copied.
    assert texts(found) == ["nn.conv2d > nn.relu", "nn.pad", "nn.conv2d", "nn.conv2d", "tanh"]
    assert copied_bytes(found) == 4 * 2 * 8 * 9 * 4
    agrees(module(conv(made, w, 3, 3, 1), far, relu(made), params=[x, v, w, u]))


def test_short_lines_of_a_convolution_stay_together() -> None:
    """A convolution of single pixels takes an image as one line; a border inside would cut it."""
    x, v, w = var("x", 1, 6, 7, 4), var("v", 1, 1, 4, 5), var("w", 3, 3, 5, 3)
    assert texts(program(module(conv(relu(conv(x, v, 5)), w, 3, 3, 1), params=[x, v, w]))) == ["nn.conv2d > nn.relu", "nn.conv2d"]
    x = var("x", 1, 40, 40, 4)
    assert "nn.pad" in texts(program(module(conv(relu(conv(x, v, 5)), w, 3, 3, 1), params=[x, v, w])))


@pytest.mark.sample(3)
@pytest.mark.parametrize("rows", [1, 3, 20])
def test_products_read_transposed_operands_in_place(rows: int) -> None:
    """The heads of attention: no transposition has a kernel."""
    x, y = var("x", 1, rows, 36), var("y", 1, 24, 36)

    def heads(value: Expr, count: int, order: list[int]) -> Expr:
        split = op("transpose", op("reshape", value, newshape=[1, count, 4, 9]), axes=order)
        return op("reshape", split, newshape=[4, *([9, count] if order[-1] == 1 else [count, 9])])

    query, keys, values = op("cumsum", x, axis=1), op("cumsum", y, axis=1), op("cumsum", y, axis=2)
    scores = op("nn.batch_matmul", heads(query, rows, [0, 2, 1, 3]), heads(keys, 24, [0, 2, 3, 1]))
    mod = module(op("nn.batch_matmul", scores, heads(values, 24, [0, 2, 1, 3])), params=[x, y])
    assert sorted(texts(program(mod))) == ["cumsum"] * 3 + ["nn.batch_matmul"] * 2
    agrees(module(*mod["main"].body.args, params=[x, y]))  # whose sums are exact in float32
    wanted, values = evaluate(mod, *whole_numbers(mod).values()), whole_numbers(mod)
    np.testing.assert_allclose(compile_module(mod, QUICK).run(**values), wanted, rtol=1e-6)


def test_transposed_values_have_one_kernel_where_a_reader_needs_their_order() -> None:
    x, w = var("x", 40, 50), var("w", 40, 7)
    turned = op("transpose", op("cumsum", x, axis=0), axes=[1, 0])
    mod = module(op("cumsum", turned, axis=1), op("nn.matmul", turned, w), params=[x, w])
    assert texts(program(mod)).count("transpose") == 1
    agrees(mod)
    mod = module(turned, op("nn.matmul", turned, w), params=[x, w])
    assert texts(program(mod)).count("transpose") == 1
    agrees(mod)


def test_pixels_that_are_taken_keep_their_channels_last() -> None:
    x, v, w = var("x", 1, 4, 5, 6), var("v", 3, 4, 1, 1), var("w", 2, 3, 3, 3)
    first = {"data_layout": "NCHW", "kernel_layout": "OIHW"}
    value = conv(x, v, 3, **first)
    for axis, extent in ((2, 10), (3, 12)):
        value = op("take", value, Constant(np.arange(extent) // 2), axis=axis, mode="clip")
    mod = module(conv(value, w, 2, 3, 1, **first), params=[x, v, w])
    made = [t for t in texts(program(mod, "v", "w")) if "take" in t]
    assert made and not any("transpose" in t or "reshape" in t for t in made)
    agrees(mod, held=("v", "w"))
