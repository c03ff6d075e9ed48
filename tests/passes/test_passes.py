"""Every pass keeps what random programs compute; each does what it is for; each is linear."""

from __future__ import annotations

import numpy as np
import pytest

import relaylang as relay
from relaylang.interpreter import evaluate
from relaylang.ir import Call, Constant, Function, GlobalVar, IRModule, Let, TensorType, Tuple, Var, post_order
from relaylang.ir.structural import assert_structural_equal, structural_equal
from relaylang.ops.build import op_call
from relaylang.rules.dynamic_to_static import RULES as STATIC
from relaylang.syntax import astext
from relaylang.testing.generators.programs import Programs, T, inputs
from relaylang.transform import PASSES, InferType, Pass, PassContext, Sequential, Verify
from tests.passes.meaning import keeps_meaning

#: Passes that keep every program's meaning up to rounding, with options to try.
KEEPING = [
    "FoldConstant", "EliminateCommonSubexpr", "DeadCodeElimination", "DeadCodeElimination(inline_once=True)", "Inline",
    "RemoveUnusedFunctions", "SimplifyExpr", "CanonicalizeOps", "CanonicalizeCast", "DefuseOps", "EtaExpand",
    "EtaExpand(expand_global_var=True)", "LambdaLift", "DivToMul", "FoldExplicitPadding", "FlattenAtrousConv",
    "DynamicToStatic", "SplitArgs(3)", "AnnotateSpans", "SimplifyInference", "FuseOps", "ToANormalForm",
    "ToGraphNormalForm", "ToBasicBlockNormalForm",
]  # fmt: skip


def made(text: str) -> Pass:
    (found,) = relay.transform.parse_passes(text)
    return found


def module(text: str) -> IRModule:
    return InferType()(relay.parse(text))


def after(name: str, text: str) -> IRModule:
    """The module after a pass, which must keep its meaning."""
    with PassContext(opt_level=4):
        return keeps_meaning(Sequential([made(name)]), module(text))


def ops(mod: IRModule, entry: str = "main") -> list[str]:
    return [n.op.name for n in post_order(mod[entry]) if isinstance(n, Call) and hasattr(n.op, "name")]


def main(body: str, params: str = "%x: Tensor[(2, 3), float32]") -> str:
    return f"def @main({params}) {{ {body} }}"


@pytest.mark.parametrize("name", KEEPING)
def test_random_programs_compute_the_same(name: str) -> None:
    with PassContext(opt_level=4):
        for seed in range(8):
            keeps_meaning(Sequential([made(name)]), Programs(seed).module(), seed)


def test_random_sequences_of_passes_compute_the_same() -> None:
    for seed in range(14):
        programs = Programs(1000 + seed)
        names = programs.rng.sample([n for n in KEEPING if n != "AnnotateSpans"], 5)
        with PassContext(opt_level=4, instruments=[Verify()]):
            keeps_meaning(Sequential([made(n) for n in names]), programs.module(10), seed)


# ---- FoldConstant


def test_constants_are_folded() -> None:
    mod = after("FoldConstant", main("%0 = add(1f, 2f); let %c = multiply(%0, 2f); add(%x, negative(%c))"))
    assert ops(mod) == ["add"]
    (constant,) = [n for n in post_order(mod["main"]) if isinstance(n, Constant)]
    assert constant.data == -6 and mod["main"].body.checked_type == T


def test_tuples_branches_and_shapes_are_folded() -> None:
    assert ops(after("FoldConstant", main("%0 = (%x, 1f); %0.0"))) == []
    assert ops(after("FoldConstant", main("if (True) { %x } else { exp(%x) }"))) == []
    mod = after("FoldConstant", main("(shape_of(%x, dtype=\"int32\"), ndarray_size(%x, dtype=\"int32\"))"))
    assert ops(mod) == [] and [n.data.tolist() for n in mod["main"].body.fields] == [[2, 3], 6]


def test_what_must_not_be_folded_stays() -> None:
    assert ops(after("FoldConstant", main("add(%x, zeros(shape=[2, 3], dtype=\"float32\"))"))) == ["zeros", "add"]
    quantize = main('add(%x, qnn.dequantize(qnn.quantize(1f, 0.5f, 0, out_dtype="int8"), 0.5f, 0, out_dtype="float32"))')
    assert "qnn.quantize" in ops(after("FoldConstant", quantize))
    assert ops(after("FoldConstant(fold_qnn=True)", quantize)) == ["add"]


# ---- EliminateCommonSubexpr, DeadCodeElimination, RemoveUnusedFunctions, Inline


def test_common_subexpressions_are_one_node() -> None:
    mod = after("EliminateCommonSubexpr", main("%0 = add(%x, 1f); %1 = add(%x, 1f); multiply(nn.relu(%0), nn.relu(%1))"))
    assert ops(mod) == ["add", "nn.relu", "multiply"]
    mod = after("EliminateCommonSubexpr", main("add(sum(%x, axis=[0]), sum(%x, axis=[1], keepdims=True))"))
    assert ops(mod).count("sum") == 2
    kept = relay.transform.EliminateCommonSubexpr(lambda e: True)(module(main("add(exp(%x), exp(%x))")))
    assert ops(kept).count("exp") == 2


def test_dead_lets_go_and_effects_stay() -> None:
    assert ops(after("DeadCodeElimination", main("let %a = exp(%x); let %b = nn.relu(%a); let %c = tanh(%x); %c"))) == ["tanh"]
    loop = "let %f = fn (%y: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] { %f(%y) }; %x"
    assert not any(isinstance(n, Let) for n in post_order(after("DeadCodeElimination", main(loop))["main"]))
    write = "let %r = ref(%x); let %u = ref_write(%r, exp(%x)); ref_read(%r)"
    mod = after("DeadCodeElimination(inline_once=True)", main(write))
    assert sum(isinstance(n, Let) for n in post_order(mod["main"])) == 2
    gone = relay.transform.DeadCodeElimination(ignore_impurity=True)(module(main(write)))
    assert sum(isinstance(n, Let) for n in post_order(gone["main"])) == 1
    once = after("DeadCodeElimination(inline_once=True)", main("let %a = exp(%x); let %b = nn.relu(%a); add(%b, %b)"))
    assert sum(isinstance(n, Let) for n in post_order(once["main"])) == 1


def test_references_that_nobody_needs_and_loops_without_effects_go() -> None:
    text = main("""
      let %r = ref(%x);
      let %loop = fn (%i: int32, %a: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] {
        if (less(%i, 1)) { %a } else { %loop(subtract(%i, 1), exp(%a)) }
      };
      let %dead = %loop(2, %x);
      tanh(%x)""")
    assert_structural_equal(after("DeadCodeElimination", text), module(main("tanh(%x)")))
    kept = text.replace("%a } else", "ref_write(%r, %a); %a } else")
    assert not structural_equal(after("DeadCodeElimination", kept), module(main("tanh(%x)")))


def test_what_stands_once_is_put_there_also_beside_effects() -> None:
    text = main("let %r = ref(%x); let %a = exp(%x); ref_write(%r, tanh(%x)); let %b = negative(%a); add(%b, ref_read(%r))")
    mod = after("DeadCodeElimination(inline_once=True)", text)
    assert [n.variable.name_hint for n in post_order(mod["main"]) if isinstance(n, Let)] == ["_", "r"]


CALLS = """
def @twice(%a: Tensor[(2, 3), float32], Inline=1) { let %t = add(%a, %a); %t }
def @other(%a: Tensor[(2, 3), float32]) { @unused(%a) }
def @unused(%a: Tensor[(2, 3), float32]) { %a }
def @main(%x: Tensor[(2, 3), float32]) { add(@twice(%x), @twice(exp(%x))) }
"""


def test_marked_functions_that_nobody_calls_stay() -> None:
    mod = after("Inline", CALLS + "def @entry(%a: Tensor[(2, 3), float32], Inline=1) { @other(%a) }")
    assert "entry" in mod and "twice" not in mod


def test_functions_are_inlined_and_unused_ones_go() -> None:
    mod = after("Inline", CALLS)
    assert [gv.name_hint for gv in mod.functions] == ["other", "unused", "main"]
    assert ops(mod).count("add") == 3 and not any(isinstance(n, GlobalVar) for n in post_order(mod["main"]))
    kept = after("RemoveUnusedFunctions", CALLS)
    assert [gv.name_hint for gv in kept.functions] == ["twice", "main"]
    some = relay.transform.RemoveUnusedFunctions(["other"])(module(CALLS))
    assert [gv.name_hint for gv in some.functions] == ["other", "unused"]


# ---- CanonicalizeOps, CanonicalizeCast, DefuseOps, FastMath, DivToMul


def test_bias_add_is_add() -> None:
    text = main("nn.bias_add(%x, %b)", "%x: Tensor[(1, 3, 2, 2), float32], %b: Tensor[(3), float32]")
    assert ops(after("CanonicalizeOps", text)) == ["expand_dims", "add"]


def test_casts_are_made_for_each_use() -> None:
    mod = after("CanonicalizeCast", main('%0 = cast(%x, dtype="float64"); add(exp(%0), log(%0))'))
    assert ops(mod).count("cast") == 2


def test_defusing_undoes_fusing() -> None:
    mod = module(main("nn.relu(add(exp(%x), 1f))"))
    again = Sequential([PASSES["FuseOps"](), PASSES["DefuseOps"]()])
    with PassContext(opt_level=4):
        assert_structural_equal(again(mod), mod)


def test_fast_math_and_reciprocals() -> None:
    mod = module(main("nn.softmax(tanh(exp(%x)))"))
    with PassContext(opt_level=4):
        fast = Sequential([PASSES["FastMath"]()])(mod)
    assert ops(fast) == ["fast_exp", "fast_tanh", "nn.fast_softmax"]
    x = inputs(0, mod["main"])
    np.testing.assert_allclose(evaluate(mod, *x), evaluate(fast, *x), rtol=1e-3, atol=1e-4)
    assert ops(after("DivToMul", main("divide(%x, 4f)"))) == ["multiply"]


# ---- functions


def test_lambdas_are_lifted() -> None:
    text = main(
        "let %f = fn (%y: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] {\n"
        "  if (less(sum(%y), 9f)) { %f(add(%y, add(%x, 9f))) } else { %y } };\n%f(abs(%x))",
    )
    mod = after("LambdaLift", text)
    assert len(mod.functions) == 2 and mod["lifted_name0"].attrs["Closure"] == 1
    plain = after("LambdaLift", main("let %f = fn (%y: Tensor[(2, 3), float32]) { exp(%y) }; %f(%f(%x))"))
    assert not any(isinstance(n, Function) for n in post_order(plain["main"].body))


def test_constructors_are_eta_expanded() -> None:
    text = (
        "type List[A] { Cons(A, List[A]), Nil }\n"
        "def @build(%f: fn (int32, List[int32]) -> List[int32]) { %f(1, Nil) }\ndef @main() { @build(Cons) }"
    )
    mod = Sequential([PASSES["EtaExpand"](expand_constructor=True)])(module(text))
    InferType()(mod)
    call = mod["main"].body
    assert isinstance(call.args[0], Function)
    assert str(evaluate(mod)) == str(evaluate(module(text)))


@pytest.mark.parametrize("body", ["let %f = Cons; (%f(1, Nil), %f(2f, Nil))", "let %f = @first; (%f(1, 2f), %f(2f, 1))"])
def test_what_is_used_with_several_types_is_eta_expanded_with_type_parameters(body: str) -> None:
    text = "type List[A] { Cons(A, List[A]), Nil }\ndef @first[A, B](%x: A, %y: B) -> A { %x }\n" + f"def @main() {{ {body} }}"
    mod = PASSES["EtaExpand"](expand_constructor=True, expand_global_var=True)(module(text))
    assert InferType()(mod)["main"].body.value.type_params
    assert str(evaluate(mod)) == str(evaluate(module(text)))


# ---- convolutions


def test_padding_is_folded() -> None:
    params = "%x: Tensor[(1, 2, 5, 5), float32], %w: Tensor[(3, 2, 3, 3), float32]"
    pad = "nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 2], [0, 1]])"
    mod = after("FoldExplicitPadding", main(f"nn.conv2d({pad}, %w, padding=[1, 1, 1, 1], kernel_size=[3, 3])", params))
    assert ops(mod) == ["nn.conv2d"] and mod["main"].body.attrs.padding == (2, 1, 3, 2)
    one = pad.replace("0f", "1f", 1)
    assert "nn.pad" in ops(after("FoldExplicitPadding", main(f"nn.conv2d({one}, %w, kernel_size=[3, 3])", params)))
    channels = pad.replace("[[0, 0], [0, 0]", "[[0, 0], [1, 1]")
    wide = params.replace("(3, 2,", "(3, 4,")
    assert "nn.pad" in ops(after("FoldExplicitPadding", main(f"nn.conv2d({channels}, %w, kernel_size=[3, 3])", wide)))
    forms = {"count_include_pad=True": True, "count_include_pad=False": True, "padding=[1, 0]": False, "ceil_mode=True": False}
    for own, folded in {**forms, "padding=[1, 0], count_include_pad=True": True}.items():
        pool = f"nn.avg_pool2d({pad}, pool_size=[2, 2], {own})"
        assert ops(after("FoldExplicitPadding", main(pool, params))) == ["nn.pad"] * (not folded) + ["nn.avg_pool2d"]


def test_atrous_convolutions_are_flattened() -> None:
    text = main(
        "%0 = nn.space_to_batch_nd(%x, block_shape=[2, 2], paddings=[[2, 3], [2, 3]]);\n"
        '%1 = nn.conv2d(%0, %w, kernel_size=[3, 3], data_layout="NHWC", kernel_layout="HWIO");\n'
        "nn.batch_to_space_nd(%1, block_shape=[2, 2], crops=[[0, 1], [0, 1]])",
        "%x: Tensor[(1, 5, 5, 2), float32], %w: Tensor[(3, 3, 2, 3), float32]",
    )
    mod = after("FlattenAtrousConv", text)
    assert ops(mod) == ["nn.conv2d"] and mod["main"].body.attrs.dilation == (2, 2)


def test_dynamic_operators_become_static() -> None:
    two = Constant(np.array([3, 2], "int64"))
    x = Var("x", T)
    first = op_call("dyn.reshape", [x, op_call("add", [two, Constant(np.array(0, "int64"))])])
    second = op_call("dyn.reshape", [op_call("exp", [x]), op_call("shape_of", [first], dtype="int64")])
    mod = InferType()(IRModule.from_expr(Function([x], op_call("nn.relu", [second]))))
    new = keeps_meaning(Sequential([made("DynamicToStatic")]), mod)
    assert ops(new) == ["exp", "reshape", "nn.relu"] and new["main"].body.checked_type == TensorType((3, 2))


@pytest.mark.parametrize(
    "name, shape, operands, attrs",
    [
        ("dyn.reshape", (2, 3), [[3, -1]], {}),
        ("dyn.broadcast_to", (1, 3), [[4, 2, 3]], {}),
        ("dyn.tile", (2, 3), [[2, 1, 2]], {}),
        ("dyn.squeeze", (1, 2, 1, 3), [[0, 2]], {}),
        ("dyn.expand_dims", (2, 3), [1], {"num_newaxis": 2}),
        ("dyn.topk", (2, 5), [3], {"axis": -1, "ret_type": "both", "dtype": "int32"}),
        ("dyn.strided_slice", (4, 6), [[1, 0], [3, 5], [1, 2]], {"slice_mode": "end"}),
        ("dyn.strided_slice", (4, 6), [[1, 0], [3, 5], [1, 1]], {"slice_mode": "size"}),
        ("dyn.nn.pad", (2, 3), [[[1, 0], [0, 2]], np.float32(1.5)], {"pad_mode": "constant"}),
        ("dyn.nn.upsampling", (1, 2, 3, 3), [np.float64(2), np.float64(3)], {}),
        ("dyn.nn.upsampling3d", (1, 2, 2, 2, 2), [np.float64(2), np.float64(1), np.float64(3)], {}),
        ("dyn.image.resize2d", (1, 2, 4, 4), [[6, 3], np.zeros(4, "float32")], {"layout": "NCHW", "method": "linear"}),
        ("dyn.zeros", None, [[2, 3]], {"dtype": "float32"}),
        ("dyn.ones", None, [[2, 3]], {"dtype": "int8"}),
        ("dyn.full", (), [[2, 3]], {"dtype": "float32"}),
    ],
)
def test_each_dynamic_operator_becomes_static(
    name: str, shape: tuple[int, ...] | None, operands: list[object], attrs: dict[str, object]
) -> None:
    x = Var("x", TensorType(shape if shape is not None else ()))
    given = [Constant(np.asarray(v, np.asarray(v).dtype)) for v in operands]
    body = op_call(name, [x, *given] if shape is not None else list(given), **attrs)
    mod = InferType()(IRModule.from_expr(Function([x], body)))
    new = keeps_meaning(Sequential([made("DynamicToStatic")]), mod)
    assert ops(new) == [name.removeprefix("dyn.")]


def test_indices_and_one_hot_become_static() -> None:
    i, on, off = Var("i", TensorType((3,), "int32")), Constant(np.float32(1)), Constant(np.float32(0))
    hot = op_call("dyn.one_hot", [i, on, off, Constant(np.int32(12))], axis=-1, dtype="float32")
    sparse = op_call("dyn.sparse_to_dense", [Constant(np.array([1, 4, 6])), op_call("cast", [i], dtype="float32"), off,
                                             Constant(np.array([9]))])  # fmt: skip
    mod = InferType()(IRModule.from_expr(Function([i], Tuple([hot, sparse]))))
    new = keeps_meaning(Sequential([made("DynamicToStatic")]), mod)
    assert ops(new) == ["one_hot", "cast", "sparse_to_dense"]
    assert {name for name in relay.ops.OPS if name.startswith("dyn.")} == set(STATIC)


def test_wide_concatenations_are_split() -> None:
    x = Var("x", T)
    mod = IRModule.from_expr(Function([x], op_call("concatenate", [Tuple([x] * 10)], axis=1)))
    new = keeps_meaning(Sequential([made("SplitArgs(4)")]), mod)
    assert ops(new).count("concatenate") == 5
    assert structural_equal(made("SplitArgs(100)")(mod), mod)


def test_annotated_spans_are_places_in_the_text() -> None:
    mod = made("AnnotateSpans")(module(main("exp(%x)")))
    assert mod["main"].body.span.text == "exp(%x)" and "exp(%x)" in astext(mod)
