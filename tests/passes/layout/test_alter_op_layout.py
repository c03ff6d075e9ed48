"""AlterOpLayout: operators in the layouts that suit a target, and their neighbours with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.backends.cpu.lower.channels import without_blocks
from relaylang.cli import main
from relaylang.diagnostics import RelayError
from relaylang.ir import (
    ANY,
    Call,
    Constant,
    Expr,
    Function,
    IRModule,
    TensorType,
    Tuple,
    TupleGetItem,
    Var,
    assert_structural_equal,
    const,
    post_order,
)
from relaylang.ops.build import op_call
from relaylang.ops.layouts import fitted, parts, transformed_like, turned_shape
from relaylang.passes.layout.registry import ALTER, INFER
from relaylang.rules.layout.rule import changed
from relaylang.testing.generators.layouts import Networks, named
from relaylang.testing.temp_op_attr import TempOpAttr
from relaylang.transform import (
    AlterOpLayout,
    CanonicalizeOps,
    FoldConstant,
    InferCorrectLayoutOutput,
    InferType,
    PassContext,
    Sequential,
    SimplifyInference,
    register_alter_op_layout,
    register_infer_correct_layout,
)
from tests.growth import assert_linear
from tests.passes.layout.test_layout import chain, changes, conv, lets, numbers, ops
from tests.passes.meaning import keeps_meaning

X = Var("x", TensorType((1, 8, 6, 6)))
MIXED = conv(X, 16, 8)


def altered(body: Expr, *params: Var, before: Any = ()) -> IRModule:
    """The altered program: it means the same, its text reads back, and altering it again changes nothing."""
    mod = InferType()(IRModule.from_expr(Function(list(params) or [X], body)))
    with PassContext(opt_level=3):
        mod = Sequential([*before, InferType()])(mod)
        new = keeps_meaning(Sequential([AlterOpLayout()]), mod)
        assert_structural_equal(Sequential([AlterOpLayout()])(new), new)
    read = relay.parse(relay.astext(new))
    assert_structural_equal(getattr(read, "module", read), new)
    return new


def in_blocks(of: int, out: int) -> Any:
    """A function that gives nn.conv2d channels in blocks of these sizes, where they divide."""

    def alter(attrs: Any, inputs: list[Expr], tinfos: list[Any], out_type: Any) -> Any:
        if attrs.groups != 1 or tinfos[0].shape[1] % of or tinfos[1].shape[0] % out:
            return None
        layouts = {"data_layout": f"NCHW{of}c", "kernel_layout": f"OIHW{of}i{out}o", "out_layout": f"NCHW{out}c"}
        return relay.nn.conv2d(*inputs, **{**attrs, **layouts})

    return alter


# What convolutions become by themselves


def test_convolutions_get_channels_in_blocks() -> None:
    node = op_call("nn.relu", [conv(X, 48, 8)])
    mod = altered(conv(conv(node, 20, 48), 20, 20, groups=20))
    found = [(c.attrs.data_layout, c.attrs.kernel_layout, c.attrs.out_layout) for c in named(mod, "nn.contrib_conv2d_NCHWc")]
    assert found == [("NCHW8c", "OIHW8i16o", "NCHW16c"), ("NCHW8c", "OIHW8i10o", "NCHW10c")]
    (alone,) = named(mod, "nn.contrib_depthwise_conv2d_NCHWc")
    assert (alone.attrs.data_layout, alone.attrs.kernel_layout) == ("NCHW10c", "OIHW1i10o")
    assert changes(mod) == ["NCHW16c>NCHW8c", "NCHW10c>NCHW"]


def test_odd_channels_and_groups() -> None:
    mod = altered(conv(X, 7, 8))
    assert [c.attrs.data_layout for c in named(mod, "nn.contrib_conv2d_NCHWc")] == ["NCHW4c"]
    assert ops(altered(conv(X, 4, 8, groups=2))) == ["nn.conv2d"]
    nhwc = op_call("nn.conv2d", [X, numbers(3, 3, 6, 4)], kernel_size=[3, 3], channels=4, data_layout="NHWC", kernel_layout="HWIO")
    assert ops(altered(nhwc)) == ["nn.conv2d"]


def test_extents_that_are_not_known() -> None:
    x = Var("x", TensorType((ANY, 8, ANY, 6)))
    mod = InferType()(IRModule.from_expr(Function([x], op_call("nn.bias_add", [conv(x, 16, 8), numbers(16)]))))
    new = AlterOpLayout()(mod)
    assert len(named(new, "nn.contrib_conv2d_NCHWc")) == 1
    value = np.random.default_rng(0).uniform(-1, 1, (2, 8, 5, 6)).astype("float32")
    np.testing.assert_allclose(relay.evaluate(InferType()(new), value), relay.evaluate(mod, value), rtol=1e-5, atol=1e-6)
    unknown = Var("x", TensorType((1, ANY, 6, 6)))
    node = op_call("nn.conv2d", [unknown, numbers(8, 8, 3, 3)], kernel_size=[3, 3])
    mod = InferType()(IRModule.from_expr(Function([unknown], node)))
    assert AlterOpLayout()(mod) is mod


def test_neighbours_follow() -> None:
    node = op_call("nn.bias_add", [conv(X, 16, 8), numbers(16)])
    node = op_call("multiply", [numbers(16, 1, 1), op_call("nn.relu", [node])])
    node = op_call("add", [node, const(np.float32(2))])
    node = op_call("maximum", [numbers(1, 16, 1, 1), op_call("add", [node, numbers(6, 6)])])
    node = op_call("nn.max_pool2d", [node], pool_size=[2, 2], strides=[2, 2])
    norm = op_call("nn.batch_norm", [node, *[numbers(16)] * 3, op_call("abs", [numbers(16)])], epsilon=0.5)
    node = op_call("nn.upsampling", [TupleGetItem(norm, 0)], scale_h=2, scale_w=2)
    mod = altered(op_call("nn.global_avg_pool2d", [node]), X, before=[SimplifyInference()])
    assert [c for c in changes(mod) if c.startswith("NCHW16c")] == ["NCHW16c>NCHW"]
    for name in ("nn.max_pool2d", "nn.upsampling", "nn.global_avg_pool2d"):
        assert [c.attrs.layout for c in named(mod, name)] == ["NCHW16c"]


def test_a_bias_is_brought_beside_the_blocks() -> None:
    bias = Var("b", TensorType((16,)))
    mod = altered(op_call("nn.bias_add", [MIXED, bias]), X, bias)
    total = named(mod, "add")[0].args[1]
    assert isinstance(total, Call) and total.attrs.dst_layout == "NCHW16c"
    assert len(named(mod, "expand_dims")) == 2


def test_blocks_of_one_for_what_is_spread() -> None:
    ones = op_call("sum", [conv(X, 16, 8)], axis=[1], keepdims=True)
    mod = altered(op_call("multiply", [conv(X, 16, 8), ones]))
    assert [c for c in changes(mod) if c.startswith("NCHW16c")] == ["NCHW16c>NCHW"]
    assert [tuple(c.checked_type.shape) for c in named(mod, "sum")] == [(1, 1, 6, 6, 1)]  # type: ignore[union-attr]


def test_residual_network_changes_layout_once() -> None:
    node = op_call("nn.relu", [conv(X, 16, 8)])
    for _ in range(3):
        node = op_call("nn.relu", [op_call("add", [conv(op_call("nn.relu", [conv(node, 16, 16)]), 16, 16), node])])
    mod = altered(op_call("nn.batch_flatten", [op_call("nn.global_avg_pool2d", [node])]))
    assert changes(mod) == ["NCHW16c>NCHW"]
    assert len(named(mod, "nn.contrib_conv2d_NCHWc")) == 7


# Parts, orders, reductions

KEPT = {  # what stays in blocks until the end
    "concatenate": lambda: op_call("concatenate", [Tuple([MIXED, op_call("nn.relu", [MIXED])])], axis=-3),
    "split": lambda: TupleGetItem(
        op_call("split", [op_call("concatenate", [Tuple([MIXED, MIXED])], axis=1)], indices_or_sections=[16], axis=1), 1
    ),
    "sections": lambda: TupleGetItem(
        op_call("split", [op_call("concatenate", [Tuple([MIXED, MIXED])], axis=1)], indices_or_sections=2, axis=-3), 0
    ),
    "split of rows": lambda: TupleGetItem(op_call("split", [MIXED], indices_or_sections=3, axis=2), 1),
    "pad": lambda: op_call("nn.pad", [MIXED, const(np.float32(1))], pad_width=[[0, 0], [0, 0], [1, 0], [0, 2]]),
    "slice": lambda: op_call(
        "strided_slice", [op_call("concatenate", [Tuple([MIXED, MIXED])], axis=1)], begin=[0, 16, 1], end=[1, 32, 9], strides=[1, 1, 2]
    ),
    "slice along axes": lambda: op_call(
        "strided_slice", [op_call("concatenate", [Tuple([MIXED, MIXED])], axis=1)], begin=[-16], end=[1000], strides=[1], axes=[1]
    ),
    "slice of sizes": lambda: op_call(
        "strided_slice",
        [op_call("concatenate", [Tuple([MIXED, MIXED])], axis=1)],
        begin=[0, 16],
        end=[-1, 16],
        strides=[1],
        slice_mode="size",
    ),
    "slice_like": lambda: op_call("slice_like", [MIXED, op_call("nn.max_pool2d", [MIXED], pool_size=[2, 2])], axes=[2, 3]),
    "take of rows": lambda: op_call("take", [MIXED, const(np.array([5, 0, 0, 2]))], axis=-2),
    "squeeze": lambda: op_call("squeeze", [op_call("nn.global_max_pool2d", [MIXED])], axis=[-1, 2]),
    "mean": lambda: op_call("mean", [MIXED], axis=[2, 3]),
    "max": lambda: op_call("max", [MIXED], axis=[0], exclude=True, keepdims=True),
    "topk": lambda: TupleGetItem(op_call("topk", [MIXED], k=2, axis=3, dtype="int32"), 0),
    "l2_normalize": lambda: op_call("nn.l2_normalize", [MIXED], eps=0.5, axis=[1]),
    "dropout": lambda: TupleGetItem(op_call("nn.dropout", [MIXED]), 0),
    "cast": lambda: op_call("cast_like", [op_call("cast", [MIXED], dtype="int32"), MIXED]),
}
BACK = {  # what needs the channels as they were
    "pad of channels": lambda: op_call("nn.pad", [MIXED, const(np.float32(1))], pad_width=[[0, 0], [1, 0], [0, 0], [0, 0]]),
    "take of channels": lambda: op_call("take", [MIXED, const(np.array([15, 0, 2]))], axis=1),
    "take by a matrix": lambda: op_call("take", [MIXED, const(np.array([[5, 0], [1, 2]]))], axis=2),
    "take of all": lambda: op_call("take", [MIXED, const(np.array([15, 0, 2]))], axis=None),
    "slice inside a block": lambda: op_call("strided_slice", [MIXED], begin=[0, 3], end=[1, 9], strides=[1]),
    "slice with steps": lambda: op_call("strided_slice", [MIXED], begin=[0, 0], end=[1, 16], strides=[1, 2]),
    "split inside a block": lambda: TupleGetItem(op_call("split", [MIXED], indices_or_sections=(5,), axis=1), 0),
    "transpose": lambda: op_call("transpose", [MIXED], axes=[0, 2, 3, 1]),
    "topk of channels": lambda: TupleGetItem(op_call("topk", [MIXED], k=2, axis=1, dtype="int32"), 1),
    "argmax of all": lambda: op_call("argmax", [MIXED], axis=None),
    "layer_norm": lambda: op_call("nn.layer_norm", [MIXED, numbers(16), numbers(16)], axis=1),
    "batch_norm": lambda: TupleGetItem(op_call("nn.batch_norm", [MIXED, *[numbers(16)] * 3, op_call("abs", [numbers(16)])]), 0),
    "prelu": lambda: op_call("nn.prelu", [MIXED, numbers(16)]),
    "reshape": lambda: op_call("reshape", [MIXED], newshape=[4, 4, 6, 6]),
    "lrn": lambda: op_call("nn.lrn", [MIXED]),
    "softmax": lambda: op_call("nn.softmax", [MIXED], axis=1),
    "where": lambda: op_call("where", [op_call("less", [MIXED, const(np.float32(0))]), MIXED, MIXED]),
}


@pytest.mark.parametrize("name", [*KEPT, *BACK])
def test_rule(name: str) -> None:
    body = (KEPT.get(name) or BACK[name])()
    mod = altered(op_call("nn.relu", [body]))
    last = mod["main"].body
    assert isinstance(last, Call) and last.op.name == ("layout_transform" if name in KEPT else "nn.relu")  # type: ignore[union-attr]


def test_argmax_of_channels_counts_as_before() -> None:
    mod = altered(op_call("argmax", [MIXED], axis=[1]))
    assert [c.attrs.axis for c in named(mod, "argmax")] == [(1, 4)]


# Programs that are in blocks already


def blocked_program(*bias: int) -> Expr:
    weight = numbers(2, 2, 3, 3, 4, 4)
    node = op_call("nn.conv2d", [B, weight], channels=8, kernel_size=[3, 3], data_layout="NCHW4c", kernel_layout="OIHW4i4o")
    return op_call("nn.relu", [op_call("add", [node, numbers(*bias)])])


B = Var("b", TensorType((1, 2, 6, 6, 4)))
OTHER = {
    "smaller": {"data_layout": "NCHW2c", "kernel_layout": "OIHW2i2o"},
    "none": {"data_layout": "NCHW", "kernel_layout": "OIHW"},
    "the same": {"data_layout": "NCHW4c", "kernel_layout": "OIHW4i4o"},
    "rows last": {"data_layout": "HWNC8c", "kernel_layout": "HWOI"},
}


@pytest.mark.parametrize("bias", [(1, 1, 1, 1, 4), (1, 2, 1, 1, 4), (), (1, 2, 4, 4, 1)])
@pytest.mark.parametrize("how", OTHER)
def test_other_blocks(how: str, bias: tuple[int, ...]) -> None:
    def alter(attrs: Any, inputs: list[Expr], tinfos: list[Any], out_type: Any) -> Expr:
        return relay.nn.conv2d(*inputs, **{**attrs, **OTHER[how]})  # type: ignore[no-any-return]

    with TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", alter):
        mod = altered(blocked_program(*bias), B)
    assert [c.attrs.data_layout for c in named(mod, "nn.conv2d")] == [OTHER[how]["data_layout"]]
    assert len(changes(mod)) == (how != "the same")


def test_what_no_layout_says_is_brought_back() -> None:
    def alter(attrs: Any, inputs: list[Expr], tinfos: list[Any], out_type: Any) -> Expr:
        return relay.nn.conv2d(*inputs, **{**attrs, **OTHER["none"]})  # type: ignore[no-any-return]

    with TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", alter):
        mod = altered(blocked_program(4, 4, 4), B)  # beside the rows, the columns, and the blocks' insides
        assert changes(mod) == ["NCHW>NCHW4c"]


def test_layouts_that_name_axes_otherwise() -> None:
    rows, columns = op_call("min", [MIXED], axis=[2]), op_call("min", [MIXED], axis=[3])
    mod = altered(op_call("add", [rows, columns]))
    assert changes(mod) == ["NCW16c>NCW"]
    turned = op_call("transpose", [MIXED], axes=[0, 1, 3, 2])
    assert len(named(altered(conv(turned, 16, 16)), "nn.contrib_conv2d_NCHWc")) == 2


# Functions of users


def test_a_function_for_as_long_as_a_block_lasts() -> None:
    def doubled(attrs: Any, inputs: list[Expr], tinfos: list[Any], out_type: Any) -> Expr:
        assert tinfos[0].shape == (1, 8, 6, 6) and out_type.shape == (1, 16, 6, 6) and attrs["data_layout"] == "NCHW"
        assert attrs.get_int_tuple("kernel_size") == (3, 3) and attrs.get_int("groups") == 1
        data, weight = inputs
        weight = relay.multiply(weight, relay.const(1.0, "float32"))
        return relay.nn.conv2d(data, weight, **attrs)  # type: ignore[no-any-return]

    with TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", doubled):
        mod = InferType()(IRModule.from_expr(Function([X], op_call("nn.relu", [MIXED]))))
        assert ops(keeps_meaning(AlterOpLayout(), mod)) == ["multiply", "nn.conv2d", "nn.relu"]
    assert ALTER == {}
    assert "nn.contrib_conv2d_NCHWc" in ops(altered(MIXED))


def test_none_leaves_a_call_as_it_is() -> None:
    mod = InferType()(IRModule.from_expr(Function([X], op_call("nn.global_max_pool2d", [X]))))
    asked: list[Any] = []
    with TempOpAttr("nn.global_max_pool2d", "FTVMAlterOpLayout", lambda *a: asked.append(a)):
        assert AlterOpLayout()(mod) is mod
    assert len(asked) == 1
    with TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", None):
        assert ops(altered(MIXED)) == ["nn.conv2d"]


def test_blocks_of_other_sizes_and_parts() -> None:
    def two_steps(attrs: Any, inputs: list[Expr], tinfos: list[Any], out_type: Any) -> Expr:
        layouts = {"data_layout": "NCHW8c", "kernel_layout": "OIHW4i8o2i", "out_layout": "NCHW4c"}
        return relay.nn.contrib_conv2d_nchwc(*inputs, **{**attrs, **layouts})  # type: ignore[no-any-return]

    with TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", two_steps):
        mod = altered(op_call("add", [MIXED, op_call("nn.relu", [conv(X, 16, 8)])]))
    assert changes(mod) == ["NCHW4c>NCHW"]
    assert len(named(mod, "layout_transform")) == 4  # the input once, two weights, the result


def test_different_blocks_meet() -> None:
    with TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", in_blocks(2, 4)):
        mod = altered(op_call("add", [conv(conv(X, 8, 8), 8, 8), conv(X, 8, 8)]))
    assert changes(mod) == ["NCHW4c>NCHW2c", "NCHW4c>NCHW"]


def test_an_operator_that_no_rule_is_for() -> None:
    with TempOpAttr("nn.softmax", "FTVMAlterOpLayout", lambda a, i, t, o: relay.nn.fast_softmax(*i, axis=a.axis)):
        assert "nn.fast_softmax" in ops(altered(op_call("nn.softmax", [MIXED], axis=1)))


def test_decorators_and_rules_of_users() -> None:
    @register_alter_op_layout("nn.conv2d")
    def alter(attrs: Any, inputs: list[Expr], tinfos: list[Any], out_type: Any) -> Any:
        return in_blocks(4, 8)(attrs, inputs, tinfos, out_type)

    @register_infer_correct_layout("where")
    def where(attrs: Any, new: Any, old: Any, types: Any) -> Any:
        layouts = new or old
        if layouts[0] is None or len(set(layouts)) != 1:
            return None
        return InferCorrectLayoutOutput(layouts, layouts[:1], attrs)

    try:
        mod = altered(op_call("nn.relu", [BACK["where"]()]))
        assert changes(mod) == ["NCHW8c>NCHW"]
    finally:
        del ALTER["nn.conv2d"], INFER["where"]


def wrong(function: Any, body: Expr = MIXED, key: str = "FTVMAlterOpLayout", op: str = "nn.conv2d") -> Any:
    mod = InferType()(IRModule.from_expr(Function([X], body)))
    with TempOpAttr(op, key, function), pytest.raises(RelayError) as found:
        AlterOpLayout()(mod)
    return found.value.diagnostics[0]


def test_functions_that_do_wrong() -> None:
    def with_layouts(**layouts: str) -> Any:
        return lambda attrs, inputs, tinfos, out_type: Call(MIXED.op, inputs, changed(attrs, **layouts))  # type: ignore[attr-defined]

    assert wrong(lambda *a: 1 // 0).code == "R0502"
    assert wrong(lambda *a: "conv").code == "R0503"
    assert wrong(lambda *a: a[1][0]).code == "R0503"
    said = wrong(with_layouts(data_layout="NCHW3c"))
    assert said.code == "R0504" and "cannot be brought from NCHW into NCHW3c" in said.title
    assert wrong(with_layouts(data_layout="NCQW")).code == "R0504"
    assert wrong(with_layouts(out_layout="NCHW5c")).code == "R0504"
    assert wrong(with_layouts(out_dtype="float64")).code == "R0504"
    assert wrong(lambda a, i, t, o: relay.nn.relu(i[0])).code == "R0504"
    assert wrong(lambda a, i, t, o: relay.nn.softmax(i[0])).code == "R0504"
    assert wrong(lambda a, i, t, o: relay.sum(i[0]), op_call("nn.softmax", [MIXED]), op="nn.softmax").code == "R0504"
    assert wrong(lambda *a: [][0], key="FInferCorrectLayout").code == "R0502"
    assert wrong(lambda *a: ["NCHW"], key="FInferCorrectLayout").code == "R0503"
    with pytest.raises(RelayError) as found:
        TempOpAttr("nn.conf2d", "FTVMAlterOpLayout", None)
    assert found.value.diagnostics[0].code == "R0501"
    with pytest.raises(RelayError):
        register_alter_op_layout("nn.conf2d")


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, mine = tmp_path / "net.relay", tmp_path / "mine.py"
    program.write_text(
        "def @main(%x: Tensor[(1, 8, 6, 6), float32], %w: Tensor[(8, 8, 1, 1), float32]) {\n"
        "  nn.relu(nn.conv2d(%x, %w, channels=8, kernel_size=[1, 1]))\n}\n"
    )
    assert main(["opt", str(program), "--passes", "AlterOpLayout", "--verify", "--no-types"]) == 0
    assert 'out_layout="NCHW8c"' in capsys.readouterr().out
    mine.write_text(
        "import relaylang as relay\nfrom relaylang.transform import register_alter_op_layout\n\n"
        "@register_alter_op_layout('nn.conv2d')\ndef alter(attrs, inputs, tinfos, out_type):\n"
        "    return relay.nn.conv2d(*inputs, **{**attrs, 'data_layout': 'NCHW2c'})\n"
    )
    try:
        assert main(["opt", str(program), "--load", str(mine), "--passes", "AlterOpLayout", "--no-types"]) == 0
    finally:
        ALTER.pop("nn.conv2d", None)
    assert 'data_layout="NCHW2c"' in capsys.readouterr().out


# Whole programs


@pytest.mark.sample(4)
@pytest.mark.parametrize("seed", range(16))
def test_random_networks_mean_the_same(seed: int) -> None:
    mod = Networks(seed).module(10)
    with PassContext(opt_level=3):
        passes = Sequential([CanonicalizeOps(), AlterOpLayout()] if seed % 2 else [AlterOpLayout()])
        new = keeps_meaning(passes, mod, seed)
        assert_structural_equal(passes(new), new)
        with TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", in_blocks(*[(2, 3), (4, 2), (1, 6), (3, 4)][seed % 4])):
            keeps_meaning(passes, mod, seed)


@pytest.mark.parametrize("seed", range(20, 30))
def test_and_without_blocks_again(seed: int) -> None:
    with PassContext(opt_level=3):
        mod = InferType()(Sequential([CanonicalizeOps(), AlterOpLayout()])(Networks(seed).module(10)))

    def back(m: IRModule) -> IRModule:
        return m.with_functions({gv: without_blocks(f, m) for gv, f in m.functions.items()})  # type: ignore[misc]

    new = keeps_meaning(back, mod, seed)
    assert not any("NCHWc" in name for name in ops(new))


def test_the_compiler_undoes_blocks() -> None:
    node = op_call("nn.relu", [op_call("nn.bias_add", [conv(X, 16, 8), numbers(16)])])
    mod = altered(op_call("nn.max_pool2d", [conv(node, 16, 16, groups=16)], pool_size=[2, 2]))
    with PassContext(opt_level=3):
        mod = InferType()(FoldConstant()(mod))
    function = without_blocks(mod["main"], mod)
    calls = [n for n in post_order(function) if isinstance(n, Call) and named_op(n) == "layout_transform"]
    assert all(isinstance(c.args[0], Constant) for c in calls)  # weights, which are known when it is compiled


def named_op(call: Call) -> str:
    return getattr(call.op, "name", "")


def test_the_compiler_takes_blocks() -> None:
    node = op_call("nn.max_pool2d", [op_call("nn.bias_add", [conv(X, 16, 8), numbers(16)])], pool_size=[2, 2], strides=[2, 2])
    node = op_call("nn.global_avg_pool2d", [op_call("nn.relu", [conv(node, 16, 16, groups=16)])])
    mod = altered(node)
    value = np.random.default_rng(0).uniform(-1, 1, (1, 8, 6, 6)).astype("float32")
    compiled = relay.build(mod, target="c").run(x=value)
    np.testing.assert_allclose(np.asarray(compiled).reshape(1, 16, 1, 1), relay.evaluate(mod, value), rtol=1e-4, atol=1e-5)


@pytest.mark.sweep
@pytest.mark.parametrize("make", [chain, lets])
def test_long_programs(make: Any) -> None:
    def prepare(n: int) -> Any:
        mod = make(n)
        return lambda: AlterOpLayout()(mod)

    assert_linear(prepare, small=400)


# Layouts as texts


def test_layouts() -> None:
    assert parts("OIHW4i8o2i") == (("O", 0), ("I", 0), ("H", 0), ("W", 0), ("i", 4), ("o", 8), ("i", 2))
    for bad in ("4", "NCHW4", "NCc", "NN", "NC4d", "NC0c", "n"):
        with pytest.raises(ValueError, match=bad):
            parts(bad)
    assert turned_shape((1, 16, 5, 5), "NCHW", "NHWC4c") == (1, 5, 5, 4, 4)
    assert turned_shape((1, 4, 5, 5, 4), "NCHW4c", "NCHW8c") == (1, 2, 5, 5, 8)
    assert turned_shape((1, 6, 5, 5), "NCHW", "NCHW4c") is None
    assert turned_shape((1, 6, 5), "NCHW", "NCHW4c") is None
    assert transformed_like("NW", "NC", "NC4c") == "NW4w"
    assert transformed_like("C", "NCHW", "NCHW4c") == "NAHC4a"
    assert transformed_like("", "NCHW", "NCHW4c") == ""
    assert transformed_like("NCHW4c", "NCHW", "NHWC") is None
    assert fitted("NCHW4c", "NCHW", (1, 1, 5, 5)) == "NCHW1c"
    assert fitted("NAHC4a", "C", (5,)) == "NAHC1a"
