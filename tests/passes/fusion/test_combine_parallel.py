"""Parallel products become one, with what follows them; every program computes the same before and after."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import relaylang as relay
from relaylang.ir import Call, Expr, Function, IRModule, TensorType, Tuple, Var, post_order
from relaylang.ir.structural import assert_structural_equal, structural_equal
from relaylang.ops.build import op_call
from relaylang.syntax import astext
from relaylang.testing.generators.branches import Branches
from relaylang.transform import InferType, PassContext, parse_passes
from tests.growth import assert_linear
from tests.passes.meaning import keeps_meaning

PASSES = {
    "conv2d": "CombineParallelConv2D(2)",
    "batch": "CombineParallelDense(2)",
    "dense": "CombineParallelDense(2, False)",
    "batch_matmul": "CombineParallelBatchMatmul(2)",
}


def after(family: str, mod: IRModule) -> IRModule:
    (transform,) = parse_passes(PASSES[family])
    with PassContext(opt_level=4):
        return keeps_meaning(transform, mod)


def module(text: str) -> IRModule:
    return InferType()(relay.parse(text))


def ops(mod: IRModule) -> list[str]:
    """The operators in the order in which they run."""
    return [n.op.name for n in post_order(mod["main"]) if isinstance(n, Call) and hasattr(n.op, "name")]


def becomes(family: str, before: str, body: str) -> None:
    """A program's body becomes another, with the types that a fresh check finds."""
    mod = module(before)
    new = after(family, mod)
    wanted = module(before.split("{")[0] + "{" + body + "}")
    assert_structural_equal(new, wanted)
    fresh = module(astext(new, show_types=False))
    assert [n.checked_type for n in post_order(fresh["main"])] == [n.checked_type for n in post_order(new["main"])]


def piece(whole: str, begin: list[int], size: list[int]) -> str:
    ones = [1] * len(begin)
    return f'strided_slice({whole}, begin={begin}, end={size}, strides={ones}, slice_mode="size", axes=None)'


def stays(family: str, text: str) -> None:
    mod = module(text)
    assert structural_equal(after(family, mod), mod)


@pytest.mark.sweep
@pytest.mark.sample(2)
@pytest.mark.parametrize("family", PASSES)
def test_random_branches_compute_the_same(family: str) -> None:
    joined = 0
    for seed in range(25):
        mod = Branches(seed, "dense" if family == "batch" else family).module()
        new = after(family, mod)
        joined += len(ops(new)) != len(ops(mod))
        fresh = InferType()(relay.parse(astext(new, show_types=False)))
        assert fresh["main"].checked_type == new["main"].checked_type
        assert_structural_equal(Function(fresh["main"].params, fresh["main"].body), Function(new["main"].params, new["main"].body))
    assert joined > 15


# ---- steps that are joined

CONV = "def @main(%x: Tensor[(1, 4, 5, 5), float32], %v: Tensor[(2, 4, 1, 1), float32], %w: Tensor[(3, 4, 1, 1), float32], "


def test_scales_and_activations_behind_convolutions() -> None:
    becomes(
        "conv2d",
        CONV
        + """%s: Tensor[(2, 1, 1), float32], %t: Tensor[(3, 1, 1), float32]) {
            %0 = nn.conv2d(%x, %v, padding=[0, 0, 0, 0]);
            %1 = nn.conv2d(%x, %w, padding=[0, 0, 0, 0]);
            (nn.relu(multiply(%s, %0)), add(nn.relu(multiply(%t, %1)), %t))
        }""",
        f""" %0 = concatenate((%v, %w), axis=0);
            %1 = multiply(concatenate((%s, %t), axis=0), nn.conv2d(%x, %0, padding=[0, 0, 0, 0], channels=5));
            %2 = nn.relu(%1);
            %3 = {piece("%2", [0, 0], [-1, 2])};
            %4 = {piece("%2", [0, 2], [-1, 3])};
            (%3, add(%4, %t))
        """,
    )


def test_biases_along_the_channels() -> None:
    becomes(
        "conv2d",
        CONV
        + """%s: Tensor[(2), float32], %t: Tensor[(3), float32]) {
            %0 = nn.conv2d(%x, %v, padding=[0, 0, 0, 0]);
            %1 = nn.conv2d(%x, %w, padding=[0, 0, 0, 0]);
            (nn.prelu(nn.bias_add(%0, %s), %s), nn.prelu(nn.bias_add(%1, %t), %t))
        }""",
        f""" %0 = nn.conv2d(%x, concatenate((%v, %w), axis=0), padding=[0, 0, 0, 0], channels=5);
            %1 = nn.prelu(nn.bias_add(%0, concatenate((%s, %t), axis=0)), concatenate((%s, %t), axis=0));
            ({piece("%1", [0, 0], [-1, 2])},
             {piece("%1", [0, 2], [-1, 3])})
        """,
    )


def test_channels_last_and_a_new_axis_in_front() -> None:
    becomes(
        "conv2d",
        """def @main(%x: Tensor[(1, 5, 5, 4), float32], %v: Tensor[(1, 1, 4, 2), float32], %b: Tensor[(2), float32]) {
            %0 = nn.conv2d(%x, %v, padding=[0, 0, 0, 0], data_layout="NHWC", kernel_layout="HWIO");
            %1 = nn.conv2d(%x, %v, padding=[0, 0, 0, 0], data_layout="NHWC", kernel_layout="HWIO");
            (add(expand_dims(%0, axis=0), %b), add(expand_dims(%1, axis=0), %b))
        }""",
        f""" %2 = concatenate((%v, %v), axis=3);
            %0 = nn.conv2d(%x, %2, padding=[0, 0, 0, 0], channels=4, data_layout="NHWC", kernel_layout="HWIO");
            %1 = add(expand_dims(%0, axis=0), concatenate((%b, %b), axis=0));
            ({piece("%1", [0, 0, 0, 0, 0], [-1, -1, -1, -1, 2])},
             {piece("%1", [0, 0, 0, 0, 2], [-1, -1, -1, -1, 2])})
        """,
    )


DENSE = "def @main(%x: Tensor[(3, 4), float32], %v: Tensor[(5, 4), float32], %w: Tensor[(2, 4), float32], "


def test_dense_layers_of_other_widths_with_what_is_one_value_for_all_outputs() -> None:
    becomes(
        "dense",
        DENSE
        + """%a: float32, %b: Tensor[(3, 1), float32], %c: Tensor[(3, 2), float32], %d: float32) {
            %0 = multiply(nn.dense(%x, %v, units=None), %a);
            %1 = multiply(nn.dense(%x, %w, units=None), %d);
            (maximum(%0, %b), maximum(%1, %c))
        }""",
        f""" %0 = nn.dense(%x, concatenate((%v, %w), axis=0), units=7);
            %1 = repeat(expand_dims(%a, axis=-1), repeats=5, axis=0);
            %2 = repeat(expand_dims(%d, axis=-1), repeats=2, axis=0);
            %3 = multiply(%0, concatenate((%1, %2), axis=0));
            %4 = maximum(%3, concatenate((repeat(%b, repeats=5, axis=1), %c), axis=1));
            ({piece("%4", [0, 0], [-1, 5])},
             {piece("%4", [0, 5], [-1, 2])})
        """,
    )


def test_an_operand_of_more_axes_and_an_axis_behind_the_outputs() -> None:
    becomes(
        "dense",
        DENSE
        + """%b: Tensor[(9, 3, 5), float32], %c: Tensor[(9, 3, 2), float32]) {
            (expand_dims(add(%b, nn.dense(%x, %v, units=None)), axis=3), expand_dims(add(%c, nn.dense(%x, %w, units=None)), axis=3))
        }""",
        f""" %0 = nn.dense(%x, concatenate((%v, %w), axis=0), units=7);
            %1 = expand_dims(add(concatenate((%b, %c), axis=2), %0), axis=3);
            ({piece("%1", [0, 0, 0, 0], [-1, -1, 5, -1])},
             {piece("%1", [0, 0, 5, 0], [-1, -1, 2, -1])})
        """,
    )


def test_dense_layers_as_a_batch() -> None:
    becomes(
        "batch",
        """def @main(%x: Tensor[(3, 4), float32], %v: Tensor[(5, 4), float32], %b: Tensor[(5), float32], %c: float32) {
            %0 = add(nn.bias_add(nn.dense(%x, %v, units=None), %b), %c);
            %1 = add(nn.bias_add(nn.dense(%x, %v, units=None), %b), 1f);
            (expand_dims(nn.relu(%0), axis=0), expand_dims(nn.relu(%1), axis=0))
        }""",
        """ %0 = nn.batch_matmul(stack((%x, %x), axis=0), stack((%v, %v), axis=0), transpose_b=True);
            %1 = add(%0, stack((expand_dims(%b, axis=0), expand_dims(%b, axis=0)), axis=0));
            %2 = stack((expand_dims(%c, axis=0, num_newaxis=2), expand_dims(1f, axis=0, num_newaxis=2)), axis=0);
            %3 = expand_dims(nn.relu(add(%1, %2)), axis=1);
            %4 = split(%3, indices_or_sections=2, axis=0);
            (squeeze(%4.0, axis=[0]), squeeze(%4.1, axis=[0]))
        """,
    )


def test_matrix_products_with_biases() -> None:
    becomes(
        "batch_matmul",
        """def @main(%x: Tensor[(2, 3, 4), float32], %v: Tensor[(2, 5, 4), float32], %b: Tensor[(5), float32], %c: float32) {
            %0 = add(nn.batch_matmul(%x, %v, transpose_b=True), %b);
            %1 = add(nn.batch_matmul(%x, %v, transpose_b=True), %b);
            (multiply(%0, %c), multiply(%1, 2f))
        }""",
        f""" %0 = nn.batch_matmul(%x, concatenate((%v, %v), axis=1), transpose_b=True);
            %1 = add(%0, concatenate((%b, %b), axis=-1));
            %2 = (repeat(expand_dims(%c, axis=-1), repeats=5, axis=0), repeat(expand_dims(2f, axis=-1), repeats=5, axis=0));
            %3 = multiply(%1, concatenate(%2, axis=-1));
            ({piece("%3", [0, 0, 0], [-1, -1, 5])},
             {piece("%3", [0, 0, 5], [-1, -1, 5])})
        """,
    )


def test_an_unknown_number_of_rows() -> None:
    body = "(nn.relu(nn.dense(%x, %v, units=None)), nn.relu(nn.dense(%x, %w, units=None)))"
    (transform,) = parse_passes(PASSES["dense"])
    new = InferType()(transform(module(DENSE.replace("(3, 4)", "(?, 4)") + "%b: float32) {" + body + "}")))
    assert sorted(ops(new)) == ["concatenate", "nn.dense", "nn.relu", "strided_slice", "strided_slice"]


# ---- and those that are not


@pytest.mark.parametrize(
    "first, second, joined",
    [
        ("nn.relu(%0)", "exp(%1)", 0),
        ("clip(%0, a_min=0f, a_max=1f)", "clip(%1, a_min=0f, a_max=2f)", 0),
        ("clip(%0, a_min=0f, a_max=1f)", "clip(%1, a_min=0f, a_max=1f)", 1),
        ("multiply(%0, 2f)", "multiply(%1, 2f)", 0),  # one value for all channels
        ("add(%0, %0)", "add(%1, %1)", 0),
        ("add(%0, %s)", "add(%s, %1)", 0),
        ("add(%0, %s)", "subtract(%1, %s)", 0),
        ("add(%0, %s)", "nn.relu(%1)", 0),
        ("nn.softmax(%0)", "nn.softmax(%1)", 0),
        ("trilu(%0, 0)", "trilu(%1, 0)", 0),  # by place
        ("repeat(%0, repeats=2, axis=1)", "repeat(%1, repeats=2, axis=1)", 0),
        ("multiply(%0, %1)", "nn.relu(nn.relu(%1))", 0),  # one branch needs the other
        ('cast(%0, dtype="int8")', 'cast(%1, dtype="int8")', 1),
        ("nn.relu(negative(%0))", "negative(negative(%1))", 1),
    ],
)
def test_which_steps_are_joined(first: str, second: str, joined: int) -> None:
    body = """
        %0 = nn.conv2d(%x, %v, padding=[0, 0, 0, 0]);
        %1 = nn.conv2d(%x, %w, padding=[0, 0, 0, 0]);
    """
    head = CONV.replace("(3, 4, 1, 1)", "(2, 4, 1, 1)") + "%s: Tensor[(2, 1, 1), float32])"
    mod = module(f"{head} {{ {body} ({first}, {second}) }}")
    new = after("conv2d", mod)
    assert ops(new).count("nn.conv2d") == 1 and ops(new).count("strided_slice") == 2
    kept = ("nn.conv2d", "strided_slice", "concatenate")
    assert len(ops(mod)) - 2 - len([o for o in ops(new) if o not in kept]) == joined


@pytest.mark.parametrize(
    "body",
    [
        "(nn.conv2d(%x, %v, padding=[1, 1, 1, 1]), nn.conv2d(%x, %w, padding=[0, 0, 0, 0]))",
        "(nn.conv2d(%x, %v, padding=[0, 0, 0, 0]), nn.conv2d(exp(%x), %w, padding=[0, 0, 0, 0]))",
        "(nn.conv2d(%x, %v, padding=[0, 0, 0, 0]), nn.conv2d(%x, %u, padding=[0, 0, 0, 0]))",  # another size
        "if (%c) { nn.conv2d(%x, %v, padding=[0, 0, 0, 0]) } else { nn.conv2d(%x, exp(%v), padding=[0, 0, 0, 0]) }",
        "let %y = exp(%v); (nn.conv2d(%x, %v, padding=[0, 0, 0, 0]), nn.conv2d(%x, %y, padding=[0, 0, 0, 0]))",
    ],
)
def test_products_that_differ_stay(body: str) -> None:
    stays("conv2d", CONV + "%u: Tensor[(2, 4, 3, 3), float32], %c: bool) {" + body + "}")


def test_groups_of_channels_stay() -> None:
    stays(
        "conv2d",
        """def @main(%x: Tensor[(1, 4, 5, 5), float32], %v: Tensor[(4, 1, 1, 1), float32]) {
            (nn.conv2d(%x, %v, padding=[0, 0, 0, 0], groups=4), nn.conv2d(%x, exp(%v), padding=[0, 0, 0, 0], groups=4))
        }""",
    )


def test_a_product_in_the_weight_or_operand_of_another() -> None:
    # The second stage's weights and biases are products themselves: those of one level are joined, no whole waits for itself.
    mod = module(
        """def @main(%x: Tensor[(4, 4), float32], %v: Tensor[(4, 4), float32], %w: Tensor[(4, 4), float32]) {
            %0 = nn.dense(%x, %v, units=None);
            %1 = nn.dense(%x, %w, units=None);
            %2 = nn.dense(%w, %v, units=None);
            %3 = nn.dense(%w, %w, units=None);
            %4 = add(nn.dense(%0, %2, units=None), %3);
            %5 = add(nn.dense(%0, %3, units=None), %2);
            (add(nn.dense(%x, %2, units=None), %1), %4, %5)
        }"""
    )
    for family in ("dense", "batch"):
        new = after(family, mod)
        assert ops(new).count("nn.dense") + ops(new).count("nn.batch_matmul") == 4


def test_branches_of_one_function_and_of_lets() -> None:
    new = after(
        "dense",
        module(
            """def @main(%x: Tensor[(4, 4), float32], %v: Tensor[(4, 4), float32], %c: bool) {
                let %a = nn.relu(nn.dense(%x, %v, units=None));
                let %b = nn.relu(nn.dense(%x, %v, units=None));
                let %f = fn (%y: Tensor[(4, 4), float32], %w: Tensor[(4, 4), float32]) {
                    add(nn.dense(%y, %w, units=None), nn.dense(%y, exp(%w), units=None))
                };
                if (%c) { add(nn.dense(%b, %v, units=None), nn.dense(%b, exp(%v), units=None)) } else { %f(%a, %b) }
            }"""
        ),
    )
    assert ops(new).count("nn.dense") == 3 and ops(new).count("nn.relu") == 1


def test_a_function_without_enough_branches_is_the_same_one() -> None:
    mod = module(DENSE + "%b: float32) { nn.dense(%x, %v, units=None) }")
    (transform,) = parse_passes("CombineParallelDense(2, False)")
    assert transform(mod) is mod


# ---- size


def wide(n: int) -> IRModule:
    x = Var("x", TensorType((2, 2)))
    weights = [Var(f"w{i}", TensorType((2, 2))) for i in range(n)]
    branches: list[Expr] = [op_call("nn.relu", [op_call("nn.dense", [x, w], units=2)]) for w in weights]
    return IRModule.from_expr(Function([x, *weights], Tuple(branches)))


def deep(n: int) -> IRModule:
    x, w = Var("x", TensorType((2, 2))), Var("w", TensorType((2, 2)))
    node: Expr = x
    for _ in range(n):
        pair = [op_call("nn.relu", [op_call("add", [op_call("nn.dense", [node, w], units=2), w])]) for _ in range(2)]
        node = op_call("add", list(pair))
    return IRModule.from_expr(Function([x, w], node))


def long(n: int) -> IRModule:
    x, w = Var("x", TensorType((2, 2))), Var("w", TensorType((2, 2)))
    branches: list[Expr] = [op_call("nn.dense", [x, w], units=2) for _ in range(2)]
    for _ in range(n):
        branches = [op_call("add", [b, w]) for b in branches]
    return IRModule.from_expr(Function([x, w], Tuple(branches)))


@pytest.mark.sweep
@pytest.mark.parametrize("family", ["batch", "dense"])
@pytest.mark.parametrize("shape", [wide, deep, long])
def test_combining_is_linear(family: str, shape: Callable[[int], IRModule]) -> None:
    (transform,) = parse_passes(PASSES[family])

    def prepare(n: int) -> Callable[[], object]:
        mod = InferType()(shape(n))
        return lambda: transform(mod)

    assert_linear(prepare)
    new = prepare(2_000)()
    assert isinstance(new, IRModule)
    assert ops(new).count("nn.dense") + ops(new).count("nn.batch_matmul") in (1, 2_000)
