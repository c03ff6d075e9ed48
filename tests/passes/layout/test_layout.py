"""ConvertLayout: the same values, few changes of layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.ir import (
    ANY,
    Call,
    Expr,
    Function,
    If,
    IRModule,
    Let,
    TensorType,
    Tuple,
    TupleGetItem,
    Var,
    assert_structural_equal,
    const,
    post_order,
)
from relaylang.ops.build import op_call
from relaylang.rules.conversions import RULES as CONVERSIONS
from relaylang.testing.generators.layouts import Networks, named
from relaylang.transform import (
    ConvertLayout,
    InferType,
    LayoutConfig,
    Pass,
    PassContext,
    Sequential,
    TempOpAttr,
)
from tests.growth import assert_linear
from tests.passes.meaning import keeps_meaning


def numbers(*shape: int, seed: int = 0) -> Expr:
    return const(np.random.default_rng(seed).uniform(-1, 1, shape).astype("float32"))


def conv(x: Expr, out: int, inputs: int, groups: int = 1) -> Expr:
    weight = numbers(out, inputs // groups, 3, 3, seed=out)
    return op_call("nn.conv2d", [x, weight], kernel_size=[3, 3], channels=out, padding=[1, 1], groups=groups)


def at_level_3(item: Pass, mod: IRModule) -> IRModule:
    with PassContext(opt_level=3):
        return Sequential([item])(mod)


def converted(body: Expr, params: Var | list[Var], layouts: dict[str, list[str]]) -> IRModule:
    """The converted program: it means the same, its text reads back, and converting it again changes nothing."""
    params = [params] if isinstance(params, Var) else params
    mod = InferType()(IRModule.from_expr(Function(params, body)))
    new = keeps_meaning(lambda m: at_level_3(ConvertLayout(layouts), m), mod)
    read = relay.parse(relay.astext(new))
    assert_structural_equal(getattr(read, "module", read), new)
    again = at_level_3(ConvertLayout(layouts), new)
    assert_structural_equal(again, new)
    return new


def ops(mod: IRModule) -> list[str]:
    return [n.op.name for n in post_order(mod["main"]) if isinstance(n, Call) and hasattr(n.op, "name")]


def changes(mod: IRModule) -> list[str]:
    """The changes of layout of values that are not constants or parameters, nor such with further axes."""
    found = []
    for call in named(mod, "layout_transform"):
        value = call.args[0]
        while isinstance(value, Call) and value.op.name == "expand_dims":  # type: ignore[union-attr]
            value = value.args[0]
        if isinstance(value, Call):
            found.append(f"{call.attrs.src_layout}>{call.attrs.dst_layout}")
    return found


X = Var("x", TensorType((1, 4, 6, 6)))
NHWC = {"nn.conv2d": ["NHWC", "default"]}
BLOCKS = {"nn.conv2d": ["NCHW4c", "OIHW4o4i"]}


def test_a_network_is_turned_at_its_ends_only() -> None:
    node = op_call("nn.relu", [op_call("nn.bias_add", [conv(X, 8, 4), numbers(8)])])
    node = op_call("add", [op_call("nn.max_pool2d", [node], pool_size=[2, 2], strides=[2, 2]), numbers(8, 1, 1)])
    node = op_call("nn.pad", [node, const(0.5)], pad_width=[[0, 0], [0, 0], [1, 0], [0, 1]])
    node = op_call("concatenate", [Tuple([node, conv(node, 3, 8)])], axis=1)
    node = op_call("multiply", [node, const(2.0)])
    node = op_call("nn.batch_flatten", [op_call("nn.global_avg_pool2d", [conv(node, 5, 11)])])
    mod = converted(node, X, NHWC)
    calls = named(mod, "layout_transform")
    assert [c.attrs.dst_layout for c in calls if isinstance(c.args[0], Var)] == ["NHWC"]
    assert changes(mod).count("NHWC>NCHW") == 1
    assert all(c.attrs.data_layout == "NHWC" for c in named(mod, "nn.conv2d"))


def test_and_back_again() -> None:
    node = op_call("nn.relu", [conv(X, 8, 4)])
    there = converted(node, X, NHWC)
    back = keeps_meaning(lambda m: at_level_3(ConvertLayout({"nn.conv2d": ["NCHW", "default"]}), m), there)
    assert [c.attrs.data_layout for c in named(back, "nn.conv2d")] == ["NCHW"]


def test_depthwise_kernels_and_residuals() -> None:
    node = conv(X, 4, 4, groups=4)
    node = op_call("add", [op_call("nn.relu", [node]), X])
    mod = converted(node, X, NHWC)
    assert [c.attrs.kernel_layout for c in named(mod, "nn.conv2d")] == ["HWOI"]
    explicit = converted(conv(X, 8, 4), X, {"nn.conv2d": ["NHWC", "OHWI"]})
    assert "layout_transform" in ops(explicit)


def test_what_has_other_shapes_is_turned_back() -> None:
    node = op_call("add", [conv(X, 8, 4), numbers(6, 6)])
    node = op_call("sum", [op_call("transpose", [node], axes=[0, 2, 3, 1])], axis=[1])
    assert ops(converted(node, X, NHWC)).count("layout_transform") >= 2


# Blocks


def test_channels_go_into_blocks_where_they_divide() -> None:
    image = Var("image", TensorType((1, 3, 6, 6)))
    first = conv(image, 8, 3)  # three channels make no block of four
    node = op_call("nn.relu", [op_call("nn.bias_add", [conv(first, 8, 8), numbers(8)])])
    node = op_call("nn.max_pool2d", [conv(node, 8, 8, groups=8)], pool_size=[2, 2])
    mod = converted(conv(node, 10, 8), image, BLOCKS)
    assert len(named(mod, "nn.conv2d")) == 2
    (blocked,) = named(mod, "nn.contrib_conv2d_NCHWc")
    assert (blocked.attrs.data_layout, blocked.attrs.kernel_layout) == ("NCHW4c", "OIHW4o4i")
    (alone,) = named(mod, "nn.contrib_depthwise_conv2d_NCHWc")
    assert alone.attrs.kernel_layout == "OIHW4o1i"
    assert "nn.bias_add" not in ops(mod)  # it is an addition of a bias in blocks
    assert named(mod, "nn.max_pool2d")[0].attrs.layout == "NCHW4c"


@pytest.mark.parametrize(
    "layouts",
    [["NCHW4c", "OIHW4i4o"], ["NCHW2c", "OIHW2i8o2i"], ["NHWC4c", "HWIO4i"], ["CHWN", "IHWO"], ["HWNC", "default"], ["NCHW", "HWIO"]],
)
def test_every_layout_of_the_axes_is_taken(layouts: list[str]) -> None:
    node = op_call("nn.relu", [conv(op_call("tanh", [conv(X, 8, 4)]), 16, 8)])
    mod = converted(node, X, {"nn.conv2d": layouts})
    assert layouts[0] in [c.attrs.data_layout for n in ops(mod) if "conv2d" in n for c in named(mod, n)]


# All operators

Q = [const(np.int32(1)), const(np.int32(2)), const(np.float32(0.5)), const(np.float32(0.25))]


def data(*shape: int, dtype: str = "float32") -> Var:
    return Var("d", TensorType(shape, dtype))


def qweight(*shape: int) -> Expr:
    return const(np.random.default_rng(1).integers(-3, 4, shape).astype("int8"))


ROIS = const(np.array([[0, 0, 0, 4, 4], [0, 1, 2, 5, 3]], "float32"))
GRAD = const(np.random.default_rng(2).integers(-3, 4, (1, 3, 4, 4)).astype("float32"))
#: Operator -> (its data, its other operands, its attributes, the layouts that are asked for, the layout that it has then).
CASES: dict[str, tuple[Var, list[Expr], dict[str, Any], list[str], str]] = {
    "nn.conv1d": (data(1, 4, 6), [numbers(3, 4, 3)], {"channels": 3, "kernel_size": [3]}, ["NWC", "default"], "NWC"),
    "nn.conv2d": (data(1, 4, 6, 6), [numbers(3, 4, 3, 3)], {"channels": 3, "kernel_size": [3, 3]}, ["NHWC", "OHWI"], "NHWC"),
    "nn.conv3d": (
        data(1, 4, 3, 6, 6),
        [numbers(3, 4, 2, 3, 3)],
        {"channels": 3, "kernel_size": [2, 3, 3]},
        ["NDHWC", "default"],
        "NDHWC",
    ),
    "nn.conv1d_transpose": (data(1, 4, 6), [numbers(4, 3, 3)], {"channels": 3, "kernel_size": [3]}, ["NWC", "default"], "NWC"),
    "nn.conv2d_transpose": (
        data(1, 4, 6, 6),
        [numbers(4, 3, 3, 3)],
        {"channels": 3, "kernel_size": [3, 3]},
        ["NHWC", "default"],
        "NHWC",
    ),
    "nn.conv3d_transpose": (
        data(1, 4, 3, 6, 6),
        [numbers(4, 3, 2, 3, 3)],
        {"channels": 3, "kernel_size": [2, 3, 3]},
        ["NDHWC", "default"],
        "NDHWC",
    ),
    "nn.deformable_conv2d": (
        data(1, 4, 6, 6),
        [numbers(1, 18, 4, 4), numbers(3, 4, 3, 3)],
        {"channels": 3, "kernel_size": [3, 3]},
        ["NHWC", "default"],
        "NHWC",
    ),
    "nn.conv2d_backward_weight": (
        data(1, 4, 6, 6),
        [],
        {"channels": 3, "kernel_size": [3, 3], "kernel_layout": "NCHW", "out_layout": "OIHW"},
        ["NHWC", "HWIO"],
        "NHWC",
    ),
    "qnn.conv2d": (
        data(1, 4, 6, 6, dtype="uint8"),
        [qweight(3, 4, 3, 3), *Q],
        {"channels": 3, "kernel_size": [3, 3], "out_dtype": "int32"},
        ["NHWC", "default"],
        "NHWC",
    ),
    "qnn.conv2d_transpose": (
        data(1, 4, 6, 6, dtype="uint8"),
        [qweight(4, 3, 3, 3), *Q],
        {"channels": 3, "kernel_size": [3, 3], "out_dtype": "int32"},
        ["NHWC", "default"],
        "NHWC",
    ),
    "qnn.avg_pool2d": (
        data(1, 4, 6, 6, dtype="uint8"),
        [Q[2], Q[0], Q[3], Q[1]],
        {"pool_size": [2, 2], "strides": [1, 1], "padding": [0, 0], "dilation": [1, 1]},
        ["NHWC"],
        "NHWC",
    ),
    "vision.roi_align": (
        data(1, 4, 6, 6),
        [ROIS],
        {"pooled_size": [2, 2], "spatial_scale": 1.0, "sample_ratio": 2},
        ["NHWC", "default"],
        "NHWC",
    ),
    "vision.roi_pool": (data(1, 4, 6, 6), [ROIS], {"pooled_size": [2, 2], "spatial_scale": 1.0}, ["NHWC", "default"], "NHWC"),
    "nn.upsampling": (data(1, 4, 3, 3), [], {"scale_h": 2.0, "scale_w": 1.0}, ["NCHW2c"], "NCHW2c"),
    "nn.upsampling3d": (data(1, 4, 2, 3, 3), [], {"scale_d": 1.0, "scale_h": 2.0, "scale_w": 1.0}, ["NDHWC"], "NDHWC"),
    "image.resize1d": (data(1, 4, 3), [], {"size": [5], "roi": [0.0] * 2}, ["NWC"], "NWC"),
    "image.resize2d": (data(1, 4, 3, 3), [], {"size": [5, 4], "roi": [0.0] * 4}, ["NHWC"], "NHWC"),
    "image.resize3d": (data(1, 4, 2, 3, 3), [], {"size": [3, 5, 4], "roi": [0.0] * 6}, ["NDHWC"], "NDHWC"),
    "nn.global_max_pool2d": (data(1, 4, 6, 6), [], {}, ["NCHW2c"], "NCHW2c"),
    "nn.global_avg_pool2d": (data(1, 4, 6, 6), [], {}, ["NHWC"], "NHWC"),
    **{
        f"nn.{kind}_pool{n}d": (
            data(1, 4, *[6] * n),
            [],
            {"pool_size": [2] * n, "strides": [2] * n, "padding": [0] * n, "dilation": [1] * n},
            ["N" + "DHW"[3 - n :] + "C"],
            "N" + "DHW"[3 - n :] + "C",
        )
        for kind in ("max", "avg")
        for n in (1, 2, 3)
    },
    **{
        f"nn.adaptive_{kind}_pool{n}d": (
            data(1, 4, *[6] * n),
            [],
            {"output_size": [2] * n},
            ["NC" + "DHW"[3 - n :] + "2c"],
            "NC" + "DHW"[3 - n :] + "2c",
        )
        for kind in ("max", "avg")
        for n in (1, 2, 3)
    },
}


def test_every_operator_that_can_be_converted_has_a_case() -> None:
    assert set(CASES) == set(CONVERSIONS)


@pytest.mark.parametrize("name", sorted(CASES))
def test_operator(name: str) -> None:
    x, others, attrs, layouts, layout = CASES[name]
    args = [GRAD, x] if name == "nn.conv2d_backward_weight" else [x, *others]
    mod = converted(op_call(name, args, **attrs), x, {name: layouts})
    (made,) = named(mod, name)
    assert layout in (getattr(made.attrs, "data_layout", None), getattr(made.attrs, "layout", None))
    assert len(named(mod, "layout_transform")) >= 2


def test_quantised_network_keeps_its_layout() -> None:
    x = Var("x", TensorType((1, 4, 6, 6), "uint8"))
    node = op_call("qnn.conv2d", [x, qweight(8, 4, 3, 3), *Q], channels=8, kernel_size=[3, 3], padding=[1, 1], out_dtype="int32")
    node = op_call("nn.bias_add", [node, const(np.arange(8, dtype="int32"))])
    scales = const(np.linspace(0.1, 0.2, 8).astype("float32"))
    one = op_call("qnn.requantize", [node, scales, Q[0], Q[2], Q[1]], axis=1, out_dtype="uint8")
    two = op_call("qnn.requantize", [node, Q[3], Q[0], Q[2], Q[1]], axis=1, out_dtype="uint8")
    both = op_call("qnn.add", [one, two, *[Q[2], Q[1]] * 3])
    joined = op_call("qnn.concatenate", [Tuple([both, one]), Tuple([Q[2], Q[2]]), Tuple([Q[1], Q[1]]), Q[2], Q[1]], axis=1)
    real = op_call("qnn.dequantize", [joined, Q[2], Q[1]], axis=1, out_dtype="float32")
    node = op_call("qnn.quantize", [real, Q[2], Q[1]], axis=1, out_dtype="uint8")
    mod = converted(node, x, {"qnn.conv2d": ["NHWC", "default"]})
    assert changes(mod) == ["NHWC>NCHW"]
    assert [c.attrs.axis for n in ("qnn.requantize", "qnn.concatenate") for c in named(mod, n)] == [3, 3, 3]


@pytest.mark.parametrize(
    "layouts",
    [
        {"nn.conv2d": ["NCHW4c", "default"]},
        {"nn.conv2d": []},
        {"nn.conv2d": "NHWC"},
        {"nn.conv2d": ["NHWC", "HWIO", "NHWC"]},
        {"nn.conv2d": ["default", "default"]},
        {"nn.conv2d": ["NHWX", "default"]},
        {"nn.conv2d": ["NCHW0c", "OIHW4i"]},
        {"nn.conv2d": ["NCHW4", "OIHW4i"]},
        {"nn.conv2d": ["NHWC", "OIH"]},
        {"nn.conv2d": ["CHWN", "default"]},
        {"nn.conv2d": ["NWHC", "OIHW"]},
        {"nn.conv2d": ["NHWC", 3]},
        {"nn.max_pool2d": ["NHWC", "default"]},
        {"nn.conf2d": ["NHWC", "default"]},
        {3: ["NHWC"]},
        {"vision.roi_align": ["NHWC", "N5"]},
        {"vision.roi_pool": ["CHWN", "default"]},
        {"image.resize2d": ["NCWH"]},
        [1],
    ],
)
def test_other_layouts_are_refused(layouts: Any) -> None:
    with pytest.raises(RelayError) as wrong:
        ConvertLayout(layouts)(InferType()(IRModule.from_expr(Function([X], conv(X, 8, 4)))))
    assert wrong.value.diagnostics[0].code == "R0501"


# Programs


def test_values_of_lets_branches_and_tuples_keep_their_layout() -> None:
    flag = Var("flag", TensorType((), "bool"))
    a, pair = Var("a"), Var("pair")
    branch = If(flag, op_call("nn.relu", [a]), op_call("tanh", [a]))
    body: Expr = op_call("add", [TupleGetItem(pair, 0), TupleGetItem(pair, 1)])
    body = Let(a, conv(X, 8, 4), Let(pair, Tuple([branch, a]), body))
    mod = converted(body, [X, flag], NHWC)
    assert changes(mod) == ["NHWC>NCHW"]


def test_effects_in_a_tuple_stay() -> None:
    text = """
    def @main(%x: Tensor[(1, 4, 6, 6), float32], %w: Tensor[(4, 4, 1, 1), float32]) {
      let %r = ref(%x);
      let %t = (nn.conv2d(%x, %w, channels=4, kernel_size=[1, 1]), ref_write(%r, nn.relu(%x))).0;
      (%t, ref_read(%r))
    }"""
    read = relay.parse(text)
    keeps_meaning(lambda m: at_level_3(ConvertLayout(NHWC), m), getattr(read, "module", read))


def test_functions_are_converted_and_their_types_stay() -> None:
    text = """
    def @part(%x: Tensor[(1, 4, 6, 6), float32], %w: Tensor[(4, 4, 1, 1), float32]) -> Tensor[(1, 4, 6, 6), float32] {
      nn.conv2d(%x, %w, channels=4, kernel_size=[1, 1])
    }
    def @main(%x: Tensor[(1, 4, 6, 6), float32], %w: Tensor[(4, 4, 1, 1), float32]) {
      let %f = fn (%y: Tensor[(1, 4, 6, 6), float32]) { nn.relu(nn.conv2d(%y, %w, channels=4, kernel_size=[1, 1])) };
      let %g = fn (%y: Tensor[(1, 4, 6, 6), float32], Primitive=1) { nn.relu(%y) };
      @part(%f(%g(%x)), %w)
    }"""
    read = relay.parse(text)
    mod = InferType()(getattr(read, "module", read))
    new = keeps_meaning(lambda m: at_level_3(ConvertLayout(NHWC), m), mod)
    assert mod["part"].checked_type == new["part"].checked_type
    assert [c.attrs.data_layout for e in ("main", "part") for c in named(new, "nn.conv2d", e)] == ["NHWC"] * 2


def test_extents_that_are_not_known() -> None:
    x = Var("x", TensorType((ANY, 4, ANY, 6)))
    node = op_call("add", [op_call("nn.relu", [conv(x, 8, 4)]), numbers(8, 1, 1)])
    node = op_call("strided_slice", [op_call("nn.max_pool2d", [node], pool_size=[2, 2])], begin=[0, 0], end=[1, 4], strides=[1])
    mod = InferType()(IRModule.from_expr(Function([x], node)))
    for layouts in (NHWC, BLOCKS):
        new = InferType()(at_level_3(ConvertLayout(layouts), mod))
        value = np.random.default_rng(0).uniform(-1, 1, (2, 4, 5, 6)).astype("float32")
        np.testing.assert_allclose(relay.evaluate(new, value), relay.evaluate(mod, value), rtol=1e-5, atol=1e-6)


def test_skipped_layers_and_registered_functions() -> None:
    mod = InferType()(IRModule.from_expr(Function([X], conv(conv(X, 4, 4), 4, 4))))
    with LayoutConfig(skip_layers=[0]):
        new = at_level_3(ConvertLayout(NHWC), mod)
    assert sorted(c.attrs.data_layout for c in named(new, "nn.conv2d")) == ["NCHW", "NHWC"]
    assert LayoutConfig.current is None

    def mine(attrs: Any, inputs: list[Expr], tinfos: list[Any], layouts: list[str]) -> Expr:
        assert (layouts, tinfos[1].shape, attrs["data_layout"]) == (["rows"], (4, 4, 3, 3), "NCHW")
        return relay.nn.conv2d(*inputs, **{**attrs, "data_layout": "NHWC"})  # type: ignore[no-any-return]

    with TempOpAttr("nn.conv2d", "FTVMConvertOpLayout", mine):
        new = keeps_meaning(lambda m: at_level_3(ConvertLayout({"nn.conv2d": ["rows"]}), m), mod)
    assert [c.attrs.data_layout for c in named(new, "nn.conv2d")] == ["NHWC", "NHWC"]


def test_nothing_changes_where_nothing_is_asked_for() -> None:
    mod = InferType()(IRModule.from_expr(Function([X], op_call("add", [conv(X, 8, 4), numbers(8, 1, 1)]))))
    assert ConvertLayout({"nn.conv2d": ["NCHW", "default"]})(mod) is mod
    assert ConvertLayout({})(mod) is mod


@pytest.mark.sample(4)
@pytest.mark.parametrize("layouts", [NHWC, BLOCKS, {"nn.conv2d": ["CHWN", "IHWO"], "nn.max_pool2d": ["NHWC"]}])
@pytest.mark.parametrize("seed", range(12))
def test_random_networks_mean_the_same(seed: int, layouts: dict[str, list[str]]) -> None:
    mod = Networks(seed).module(10)
    new = keeps_meaning(lambda m: at_level_3(ConvertLayout(layouts), m), mod, seed)
    for entry in ("main", "part"):
        convs = sum(len(named(new, n, entry)) for n in ("nn.conv2d", "nn.contrib_conv2d_NCHWc", "nn.contrib_depthwise_conv2d_NCHWc"))
        assert convs == len(named(mod, "nn.conv2d", entry))  # shared calls stay shared
    assert_structural_equal(at_level_3(ConvertLayout(layouts), new), new)
    read = relay.parse(relay.astext(new))
    assert_structural_equal(getattr(read, "module", read), new)


def chain(n: int) -> IRModule:
    weight = Var("w", TensorType((4, 4, 1, 1)))
    node: Expr = op_call("nn.conv2d", [X, weight], kernel_size=[1, 1], channels=4)
    for i in range(n):
        node = op_call("nn.relu", [node]) if i % 3 else op_call("add", [node, X])
    return InferType()(IRModule.from_expr(Function([X, weight], node)))


def lets(n: int) -> IRModule:
    weight = Var("w", TensorType((4, 4, 1, 1)))
    bound: list[tuple[Var, Expr]] = []
    last: Expr = X
    for i in range(n):
        value = op_call("nn.relu", [last]) if i % 10 else op_call("nn.conv2d", [last, weight], kernel_size=[1, 1], channels=4)
        last = Var(f"v{i}")
        bound.append((last, value))
    for var, value in reversed(bound):
        last = Let(var, value, last)
    return InferType()(IRModule.from_expr(Function([X, weight], last)))


@pytest.mark.sweep
@pytest.mark.parametrize("make", [chain, lets])
def test_long_programs(make: Any) -> None:
    def prepare(n: int) -> Any:
        mod = make(n)
        return lambda: ConvertLayout(NHWC)(mod)

    assert_linear(prepare, small=400)


def test_an_operator_that_follows_others_may_be_named() -> None:
    """TVM's scripts name operators that ConvertLayout has no layouts for, such as batch_norm."""
    body = op_call("nn.relu", [conv(X, 4, 4)])
    plain = converted(body, X, {"nn.conv2d": ["NHWC", "default"]})
    assert_structural_equal(converted(body, X, {"nn.conv2d": ["NHWC", "default"], "nn.batch_norm": ["NHWC", "default"]}), plain)


@pytest.mark.parametrize(
    "slices",
    [
        {"begin": [0, 1], "end": [1, -1, 5], "strides": [1, 1, 2, 1]},
        {"begin": [0, 1], "end": [1, 4], "strides": [1]},
        {"begin": [0, 0, 0], "end": [1, 4, 6], "strides": [1, 3]},
        {"begin": [0], "end": [1, 3, 4, 5], "strides": None},
    ],
)
def test_slices_whose_bounds_are_not_all_given(slices: dict[str, Any]) -> None:
    mod = converted(op_call("strided_slice", [conv(X, 4, 4)], **slices), X, {"nn.conv2d": ["NHWC", "default"]})
    assert ops(mod)[-2:] == ["strided_slice", "layout_transform"]
